// Addresses and nodes: queues, topics, dynamic nodes, the anonymous terminus, management.
'use strict';

const {
  test, assert, bodies, once, outcome, quiet, refused, rhea, send, sleep, take, types, Management, OURS,
} = require('./harness');

// Lifetime policies of dynamic nodes, by their descriptors.
const ON_CLOSE = 0x2b;
const ON_NO_LINKS = 0x2c;
const ON_NO_MESSAGES = 0x2d;

const lifetime = (code) => ({ 'lifetime-policy': types.wrap_described([], code) });

test('addresses of queues', async (world) => {
  const management = await Management.open(world);
  const name = await management.queue(`${world.name()} ü/%`);
  const connection = await world.connect();
  const encoded = `/queues/${encodeURIComponent(name)}`;
  for (const address of [encoded, `queue://${name}`, name]) {
    await send(await world.sender(connection, address), address);
    const receiver = await world.receiver(connection, address);
    receiver.add_credit(1);
    const [{ delivery }] = await take(receiver, 1);
    assert.deepEqual(bodies(receiver.got), [address]);
    delivery.accept();
    receiver.close();
  }
}, OURS);

test('addresses of exchanges', async (world) => {
  const management = await Management.open(world);
  const queue = await management.queue(world.name());
  const binding = { source: 'amq.topic', destination_queue: queue, binding_key: `${queue}.*`, arguments: {} };
  assert.equal((await management.request('POST', '/bindings', binding)).status, '204');
  const connection = await world.connect();
  await send(await world.sender(connection, `/exchanges/amq.topic/${queue}.key`), 'by the address');
  await send(await world.sender(connection, '/exchanges/amq.topic'), {
    subject: `${queue}.subject`,
    body: 'by the subject',
  });
  assert.deepEqual(bodies(await world.drain(`/queues/${queue}`)), ['by the address', 'by the subject']);
});

test('topics by prefix and by capability', async (world) => {
  const connection = await world.connect();
  const topic = world.name();
  const byPrefix = await world.receiver(connection, `topic://${topic}`);
  const byCapability = await world.receiver(connection, { address: topic, capabilities: ['topic'] });
  byPrefix.add_credit(10);
  byCapability.add_credit(10);
  await send(await world.sender(connection, { address: topic, capabilities: ['topic'] }), 1);
  await send(await world.sender(connection, `topic://${topic}`), 2);
  assert.deepEqual(bodies(await take(byPrefix, 2)), [1, 2]);
  assert.deepEqual(bodies(await take(byCapability, 2)), [1, 2]);
});

test('a dynamic queue for answers', async (world) => {
  const connection = await world.connect();
  const answers = await world.receiver(connection, { dynamic: true });
  const { address } = answers.source;
  assert.ok(address, 'it has an address');
  answers.add_credit(1);
  const other = await world.connect();
  await send(await world.sender(other, address), 'answer');
  assert.deepEqual(bodies(await take(answers, 1)), ['answer']);
  connection.close();
  await once(connection, 'connection_close');
  const sender = other.open_sender({ target: address });
  assert.equal((await refused(sender)).condition, 'amqp:not-found');
});

test('dynamic nodes go by their lifetime', async (world) => {
  const connection = await world.connect();
  const make = async (code) => {
    const source = { dynamic: true, dynamic_node_properties: lifetime(code) };
    const receiver = await world.receiver(connection, source);
    const { address } = receiver.source;
    const sender = await world.sender(connection, address);
    await send(sender, 'x');
    receiver.close();
    await once(receiver, 'receiver_close');
    return { address, sender };
  };
  const isThere = async (address) => {
    const probe = connection.open_sender({ target: address });
    const refusal = refused(probe).then(() => false);
    const found = await Promise.race([once(probe, 'sendable').then(() => true), refusal]);
    if (found) probe.close();
    return found;
  };
  const onClose = await make(ON_CLOSE);
  assert.equal(await isThere(onClose.address), false, 'gone with the link that made it');
  const onNoLinks = await make(ON_NO_LINKS);
  assert.equal(await isThere(onNoLinks.address), true, 'it still has a sender');
  onNoLinks.sender.close();
  await once(onNoLinks.sender, 'sender_close');
  const onNoMessages = await make(ON_NO_MESSAGES);
  assert.equal(await isThere(onNoMessages.address), true, 'it still has a message');
  assert.equal((await world.drain(onNoMessages.address)).length, 1);
  // The other connection's settlement may come after this one's question.
  await sleep(200);
  assert.equal(await isThere(onNoMessages.address), false, 'gone with its last message');
}, OURS);

test('a dynamic target', async (world) => {
  const connection = await world.connect();
  const sender = await world.sender(connection, { dynamic: true });
  const { address } = sender.target;
  await send(sender, 'x');
  const receiver = await world.receiver(connection, address);
  receiver.add_credit(1);
  assert.deepEqual(bodies(await take(receiver, 1)), ['x']);
});

test('one sender for all addresses', async (world) => {
  const connection = await world.connect();
  const sender = await world.sender(connection, {});
  const queues = [world.name(), world.name()];
  for (const to of queues) await world.receiver(connection, to);
  const sent = await send(sender, { to: queues[0], body: 0 }, { to: '/queues/nobody-has-it', body: '?' }, {
    to: queues[1],
    body: 1,
  });
  assert.deepEqual(sent.map(outcome), ['accepted', 'rejected', 'accepted']);
  assert.equal(sent[1].remote_state.error.condition, 'amqp:not-found');
  for (const [index, queue] of queues.entries()) {
    assert.deepEqual(bodies(await world.drain(queue)), [index]);
  }
});

test('browsing takes nothing', async (world) => {
  const connection = await world.connect();
  const queue = world.name();
  await send(await world.sender(connection, queue), 1, 2, 3);
  const source = { address: queue, distribution_mode: 'copy' };
  const browser = await world.receiver(connection, source, { snd_settle_mode: 1 });
  browser.add_credit(10);
  browser.drain_credit();
  await once(browser, 'receiver_drained');
  assert.deepEqual(bodies(browser.got), [1, 2, 3]);
  assert.deepEqual(bodies(await world.drain(queue)), [1, 2, 3]);
});

test('selectors, by symbol and by code', async (world) => {
  const connection = await world.connect();
  const queue = world.name();
  const filters = [
    rhea.filter.selector("color = 'red'"),
    { 'jms-selector': types.wrap_described("color = 'blue'", 'apache.org:selector-filter:string') },
  ];
  const receivers = [];
  for (const filter of filters) {
    const receiver = await world.receiver(connection, { address: queue, filter });
    assert.ok(receiver.source.filter['jms-selector'], 'the filter is taken');
    receiver.add_credit(10);
    receivers.push(receiver);
  }
  const paint = (color) => ({ body: color, application_properties: { color } });
  const sender = await world.sender(connection, queue);
  await send(sender, paint('red'), paint('blue'), paint('green'), paint('red'));
  assert.deepEqual(bodies(await take(receivers[0], 2)), ['red', 'red']);
  assert.deepEqual(bodies(await take(receivers[1], 1)), ['blue']);
  await quiet(receivers[1]);
});

test('filter expressions of AMQP', async (world) => {
  const connection = await world.connect();
  const queue = world.name();
  await send(
    await world.sender(connection, queue),
    { subject: 'news.sport', body: 1, application_properties: { region: 'eu', size: types.wrap_int(5) } },
    { subject: 'news.art', body: 2, application_properties: { region: 'us', size: types.wrap_int(9) } },
    { subject: 'mail', body: 3, application_properties: { region: 'eu', size: types.wrap_int(9) } },
  );
  const browse = async (name, value) => {
    const filter = { f: types.wrap_described(value, name) };
    const source = { address: queue, distribution_mode: 'copy', filter };
    const receiver = await world.receiver(connection, source, { snd_settle_mode: 1 });
    receiver.add_credit(10);
    receiver.drain_credit();
    await once(receiver, 'receiver_drained');
    receiver.close();
    return bodies(receiver.got);
  };
  assert.deepEqual(await browse('amqp:properties-filter', { subject: '&p:news.' }), [1, 2]);
  assert.deepEqual(await browse('amqp:properties-filter', types.wrap_symbolic_map({ subject: 'mail' })), [3]);
  assert.deepEqual(await browse('amqp:application-properties-filter', { region: 'eu' }), [1, 3]);
  assert.deepEqual(await browse('amqp:sql-filter', "properties.subject LIKE 'news%' AND region = 'us'"), [2]);
}, OURS);

test('management declares, binds, counts, purges and deletes', async (world) => {
  const management = await Management.open(world);
  const queue = world.name();
  const body = { durable: true, exclusive: false, auto_delete: false, arguments: { 'x-max-length': 100 } };
  const declared = await management.request('PUT', `/queues/${queue}`, body);
  assert.equal(declared.status, '201');
  assert.equal((await management.request('PUT', `/queues/${queue}`, body)).status, '200');
  const different = { ...body, arguments: { 'x-max-length': 5 } };
  assert.equal((await management.request('PUT', `/queues/${queue}`, different)).status, '409');
  const exchange = world.name();
  const kind = { type: 'direct', durable: true, auto_delete: false, internal: false, arguments: {} };
  assert.equal((await management.request('PUT', `/exchanges/${exchange}`, kind)).status, '204');
  const binding = { source: exchange, destination_queue: queue, binding_key: 'k', arguments: {} };
  assert.equal((await management.request('POST', '/bindings', binding)).status, '204');
  const query = `/bindings?src=${exchange}&dstq=${queue}&key=k`;
  const listed = await management.request('GET', query);
  assert.equal(listed.status, '200');
  assert.equal(listed.body.length, 1);
  const connection = await world.connect();
  await send(await world.sender(connection, `/exchanges/${exchange}/k`), 1, 2);
  const found = await management.request('GET', `/queues/${queue}`);
  assert.equal(found.status, '200');
  assert.equal(Number(found.body.message_count), 2);
  assert.equal((await management.request('DELETE', `/queues/${queue}/messages`)).status, '200');
  assert.equal(Number((await management.request('GET', `/queues/${queue}`)).body.message_count), 0);
  assert.equal((await management.request('DELETE', `/exchanges/${exchange}`)).status, '204');
  assert.equal((await management.request('DELETE', `/queues/${queue}`)).status, '200');
  assert.equal((await management.request('GET', `/queues/${queue}`)).status, '404');
  assert.equal((await management.request('PUT', '/nonsense', {})).status, '400');
});
