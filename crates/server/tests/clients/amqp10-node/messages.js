// Messages: what is in them, and that it arrives as it was.
'use strict';

const { test, assert, bodies, once, outcome, rhea, send, sleep, take, types } = require('./harness');

test('a message arrives as it was sent', async (world) => {
  const connection = await world.connect();
  const queue = world.name();
  const sender = await world.sender(connection, queue);
  const now = new Date(1_700_000_000_123);
  await send(sender, {
    message_id: 'id', user_id: Buffer.from('guest'), to: queue, subject: 's', reply_to: 'r',
    correlation_id: 'c', content_type: 'text/plain', content_encoding: 'utf-8', creation_time: now,
    group_id: 'g', group_sequence: 7, reply_to_group_id: 'h', durable: true, priority: 3, ttl: 60_000,
    message_annotations: { 'x-opt-own': types.wrap_long(5) },
    application_properties: {
      text: 'ü', flag: true, nothing: null, int: types.wrap_int(-3), ulong: types.wrap_ulong(9),
      double: types.wrap_double(0.5), bytes: types.wrap_binary(Buffer.from([0, 255])),
    },
    footer: { sum: 'f' },
    body: 'body',
  });
  const receiver = await world.receiver(connection, queue);
  receiver.add_credit(1);
  const [{ message }] = await take(receiver, 1);
  const expected = {
    message_id: 'id', to: queue, subject: 's', reply_to: 'r', correlation_id: 'c', content_type: 'text/plain',
    content_encoding: 'utf-8', group_id: 'g', group_sequence: 7, reply_to_group_id: 'h', durable: true,
    priority: 3, body: 'body',
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(message[name], value, name);
  assert.equal(message.creation_time.getTime(), now.getTime());
  assert.ok(message.ttl > 0 && message.ttl <= 60_000, `ttl ${message.ttl}`);
  assert.equal(message.message_annotations['x-opt-own'], 5);
  const found = message.application_properties;
  assert.equal(found.text, 'ü');
  assert.equal(found.flag, true);
  assert.equal(found.nothing, null);
  assert.equal(found.int, -3);
  assert.equal(found.ulong, 9);
  assert.equal(found.double, 0.5);
  assert.deepEqual(found.bytes, Buffer.from([0, 255]));
  assert.equal(message.footer.sum, 'f');
  assert.ok(!message.first_acquirer || message.delivery_count === 0);
});

test('bodies of every kind', async (world) => {
  const connection = await world.connect();
  const queue = world.name();
  const sender = await world.sender(connection, queue);
  const sent = [
    'text', 7, null, true, ['list', 1], { key: 'value' },
    rhea.message.data_section(Buffer.from('data')),
    rhea.message.data_sections([Buffer.from('a'), Buffer.from('b')]),
    rhea.message.sequence_section([1, 'two']),
    rhea.message.sequence_sections([[1], [2, 3]]),
  ];
  await send(sender, ...sent.map((body) => ({ body })));
  const receiver = await world.receiver(connection, queue);
  receiver.add_credit(sent.length);
  const got = await take(receiver, sent.length);
  for (const [index, { message }] of got.entries()) {
    const before = sent[index];
    if (before && before.typecode) {
      assert.equal(message.body.typecode, before.typecode);
      assert.equal(message.body.multiple, before.multiple);
      assert.deepEqual(message.body.content, before.content);
    } else {
      assert.deepEqual(message.body, before);
    }
  }
});

test('large messages, in many frames both ways', async (world) => {
  const connection = await world.connect({ max_frame_size: 1024 });
  const queue = world.name();
  const sender = await world.sender(connection, queue);
  const body = 'x0123456789'.repeat(100_000);
  await send(sender, body, 'small');
  const receiver = await world.receiver(connection, queue);
  receiver.add_credit(2);
  assert.deepEqual(bodies(await take(receiver, 2)), [body, 'small']);
});

test('messages of several links interleave on a session', async (world) => {
  const connection = await world.connect({ max_frame_size: 2048 });
  const queues = [world.name(), world.name(), world.name()];
  const senders = [];
  const receivers = [];
  for (const queue of queues) {
    senders.push(await world.sender(connection, queue));
    const receiver = await world.receiver(connection, queue);
    receiver.add_credit(100);
    receivers.push(receiver);
  }
  const sent = [];
  for (let number = 0; number < 60; number += 1) {
    sent.push(send(senders[number % 3], `${number} ${'y'.repeat((number * 997) % 20_000)}`));
  }
  await Promise.all(sent);
  for (const [index, receiver] of receivers.entries()) {
    const numbers = bodies(await take(receiver, 20)).map((body) => Number(body.split(' ')[0]));
    assert.deepEqual(numbers, Array.from({ length: 20 }, (_, place) => place * 3 + index));
  }
});

test('many sessions of a connection', async (world) => {
  const connection = await world.connect();
  const queue = world.name();
  for (let number = 0; number < 20; number += 1) {
    const session = await world.session(connection);
    await send(await world.sender(session, queue), number);
    if (number % 2 === 0) session.close();
  }
  const receiver = await world.receiver(await world.session(connection), queue);
  receiver.add_credit(20);
  assert.deepEqual(bodies(await take(receiver, 20)), Array.from({ length: 20 }, (_, number) => number));
});

test('settled messages need no answer', async (world) => {
  const connection = await world.connect();
  const queue = world.name();
  const sender = await world.sender(connection, queue, { snd_settle_mode: 1 });
  for (let number = 0; number < 100; number += 1) sender.send({ body: number });
  const receiver = await world.receiver(connection, queue, { snd_settle_mode: 1 });
  receiver.add_credit(100);
  const got = await take(receiver, 100);
  assert.ok(got.every(({ delivery }) => delivery.remote_settled), 'they come settled');
  receiver.close();
  assert.deepEqual(await world.drain(queue), []);
});

test('a delay by annotation', async (world) => {
  const connection = await world.connect();
  const queue = world.name();
  const sender = await world.sender(connection, queue);
  const begun = Date.now();
  const delayed = (body, name, value) =>
    ({ body, message_annotations: { [name]: types.wrap_long(value) } });
  await send(
    sender,
    delayed('by time', 'x-opt-delivery-time', begun + 500),
    delayed('by delay', 'x-opt-delivery-delay', 300),
    'at once',
  );
  const receiver = await world.receiver(connection, queue);
  receiver.add_credit(3);
  await take(receiver, 2);
  assert.ok(Date.now() - begun >= 300);
  await take(receiver, 3);
  assert.ok(Date.now() - begun >= 500);
  assert.deepEqual(bodies(receiver.got), ['at once', 'by delay', 'by time']);
});

test('an idle connection is kept, by empty frames', async (world) => {
  const connection = await world.connect({ idle_time_out: 400 });
  await sleep(1500);
  const sender = await world.sender(connection, world.name());
  assert.equal(outcome((await send(sender, 'x'))[0]), 'accepted');
});

test('a broker says what it is', async (world) => {
  const connection = await world.connect();
  const { offered_capabilities: offered, properties } = connection;
  for (const capability of ['ANONYMOUS-RELAY', 'SHARED-SUBS', 'DELAYED_DELIVERY']) {
    assert.ok(offered.includes(capability), `${capability} of ${offered}`);
  }
  assert.ok(properties.product && properties.version, JSON.stringify(properties));
  connection.close();
  await once(connection, 'connection_close');
});
