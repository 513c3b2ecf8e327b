// What is refused, on the level where it belongs, while the rest goes on.
'use strict';

const {
  test, assert, bodies, once, outcome, refused, rhea, send, take, within, Management, OURS,
} = require('./harness');

test('an unknown exchange refuses a link, and the session goes on', async (world) => {
  const connection = await world.connect();
  const unknown = `/exchanges/${world.name()}/key`;
  for (const kind of ['open_receiver', 'open_sender']) {
    const link = connection[kind]({ source: unknown, target: unknown });
    const error = await refused(link);
    assert.equal(error.condition, 'amqp:not-found');
    assert.ok(error.description, 'it says what');
  }
  const sender = await world.sender(connection, world.name());
  assert.equal(outcome((await send(sender, 'x'))[0]), 'accepted');
});

test('a wrong selector refuses a link, and the session goes on', async (world) => {
  const connection = await world.connect();
  const queue = world.name();
  const source = { address: queue, filter: rhea.filter.selector('color = ') };
  assert.equal((await refused(connection.open_receiver({ source }))).condition, 'amqp:invalid-field');
  await send(await world.sender(connection, queue), 'x');
});

test('the receiver of a deleted queue is told, and the others go on', async (world) => {
  const management = await Management.open(world);
  const queue = await management.queue(world.name());
  const connection = await world.connect();
  const doomed = await world.receiver(connection, `/queues/${queue}`);
  const healthy = world.name();
  const receiver = await world.receiver(connection, healthy);
  doomed.add_credit(10);
  receiver.add_credit(10);
  const error = refused(doomed);
  assert.equal((await management.request('DELETE', `/queues/${queue}`)).status, '200');
  assert.equal((await error).condition, 'amqp:resource-deleted');
  await send(await world.sender(connection, healthy), 'x');
  assert.deepEqual(bodies(await take(receiver, 1)), ['x']);
});

test('a message that is too large refuses its link', async (world) => {
  const connection = await world.connect();
  const sender = await world.sender(connection, world.name());
  const most = Number(sender.max_message_size);
  assert.ok(most >= 1 << 20, `messages up to ${most}`);
}, OURS);

test('a wrong password is refused', async (world) => {
  const connection = world.dial({ password: 'wrong' });
  const error = await within(
    new Promise((resolve) => {
      for (const event of ['connection_error', 'disconnected', 'connection_open', 'error']) {
        connection.once(event, () => resolve(event));
      }
      connection.container.once('error', () => resolve('error'));
    }),
    'a refusal',
  );
  assert.notEqual(error, 'connection_open');
});

test('a virtual host that is not there is refused', async (world) => {
  const connection = world.dial({ hostname: `vhost:${world.name()}` });
  await once(connection, 'connection_close');
  const { condition } = connection.error;
  const conditions = ['amqp:not-found', 'amqp:not-allowed', 'amqp:unauthorized-access'];
  assert.ok(conditions.includes(condition), condition);
}, OURS);

test('a container id is used once where the client wants that', async (world) => {
  const identity = { container_id: world.name(), desired_capabilities: 'sole-connection-for-container' };
  await world.connect(identity);
  const second = world.dial(identity);
  await once(second, 'connection_close');
  assert.equal(second.error.condition, 'amqp:invalid-field');
  const other = world.dial({ container_id: identity.container_id });
  await once(other, 'connection_open');
});
