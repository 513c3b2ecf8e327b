// Links that outlive their attachment: stealing, resuming, durable subscriptions.
'use strict';

const { test, assert, bodies, once, quiet, refused, send, sleep, take, within, OURS } = require('./harness');

test('the same link of the same container is stolen', async (world) => {
  const queue = world.name();
  const identity = { container_id: world.name() };
  const options = { name: 'the-link' };
  const first = await world.receiver(await world.connect(identity), queue, options);
  const error = refused(first);
  const second = await world.receiver(await world.connect(identity), queue, options);
  assert.equal((await error).condition, 'amqp:link:stolen');
  second.add_credit(1);
  await send(await world.sender(await world.connect(), queue), 'x');
  assert.deepEqual(bodies(await take(second, 1)), ['x']);
}, OURS);

test('two receivers of one name and different containers', async (world) => {
  const queue = world.name();
  const receivers = [];
  for (let index = 0; index < 2; index += 1) {
    receivers.push(await world.receiver(await world.connect(), queue, { name: 'the-link' }));
  }
  await sleep(50);
  assert.ok(receivers.every((receiver) => receiver.is_remote_open()));
});

const subscription = (topic) => ({
  address: topic,
  capabilities: ['topic'],
  durable: 2,
  expiry_policy: 'never',
});

test('a durable subscription stays when it is detached', async (world) => {
  const topic = world.name();
  const identity = { container_id: world.name() };
  let connection = await world.connect(identity);
  const options = { name: 'inbox' };
  const first = await world.receiver(connection, subscription(topic), options);
  first.detach();
  await sleep(50);
  connection.close();
  await once(connection, 'connection_close');
  await send(await world.sender(await world.connect(), { address: topic, capabilities: ['topic'] }), 1, 2);
  connection = await world.connect(identity);
  const second = await world.receiver(connection, subscription(topic), options);
  second.add_credit(10);
  const got = await take(second, 2);
  assert.deepEqual(bodies(got), [1, 2]);
  for (const { delivery } of got) delivery.accept();
  // rhea forgets links by name: the next one of this name has to come after the answer.
  second.detach();
  await once(second, 'receiver_close');
  // Without a source it is asked for what it is, and deleted when it closes.
  const lookup = connection.open_receiver({ name: 'inbox', credit_window: 0, source: null });
  lookup.on('receiver_error', () => {});
  await once(lookup, 'receiver_open');
  assert.equal(lookup.source.address, topic);
  lookup.close();
  await once(lookup, 'receiver_close');
  const gone = connection.open_receiver({ name: 'inbox', credit_window: 0, source: null });
  assert.equal((await refused(gone)).condition, 'amqp:not-found');
}, OURS);

test('a closed subscription is gone', async (world) => {
  const topic = world.name();
  const connection = await world.connect({ container_id: world.name() });
  const first = await world.receiver(connection, subscription(topic), { name: 'inbox' });
  first.close();
  await once(first, 'receiver_close');
  await send(await world.sender(connection, { address: topic, capabilities: ['topic'] }), 'lost');
  const second = await world.receiver(connection, subscription(topic), { name: 'inbox' });
  second.add_credit(10);
  await quiet(second);
});

test('a resumed link says what is unsettled', async (world) => {
  const queue = world.name();
  const identity = { container_id: world.name() };
  const source = { address: queue, durable: 2, expiry_policy: 'never' };
  const lost = await world.connect(identity);
  const first = await world.receiver(lost, source, { name: 'resumed' });
  await send(await world.sender(await world.connect(), queue), 1, 2, 3);
  first.add_credit(3);
  const tags = (await take(first, 3)).map(({ delivery }) => delivery.tag);
  lost.socket.destroy();
  await sleep(50);
  const connection = await world.connect(identity);
  const unsettled = Object.fromEntries(tags.map((tag) => [tag.toString('latin1'), null]));
  const second = await world.receiver(connection, source, { name: 'resumed', unsettled });
  second.add_credit(10);
  const again = await within(take(second, 3), 'the same deliveries');
  assert.deepEqual(bodies(again).sort(), [1, 2, 3]);
}, OURS);

test('shared subscriptions share', async (world) => {
  const topic = world.name();
  const source = { address: topic, capabilities: ['topic', 'shared', 'global'] };
  const receivers = [];
  for (const suffix of ['|global', '|global2']) {
    const receiver = await world.receiver(await world.connect(), source, { name: `${topic}${suffix}` });
    receiver.add_credit(5);
    receivers.push(receiver);
  }
  const sender = await world.sender(await world.connect(), { address: topic, capabilities: ['topic'] });
  await send(sender, ...Array.from({ length: 10 }, (_, number) => number));
  const first = bodies(await take(receivers[0], 5));
  const second = bodies(await take(receivers[1], 5));
  assert.deepEqual([...first, ...second].sort(), Array.from({ length: 10 }, (_, number) => number));
});
