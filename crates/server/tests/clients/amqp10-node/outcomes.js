// Outcomes, of deliveries to receivers and of what senders sent.
'use strict';

const {
  test, assert, bodies, once, outcome, quiet, send, sleep, take, OURS, Management,
} = require('./harness');

async function one(world, options) {
  const connection = await world.connect();
  const queue = world.name();
  await send(await world.sender(connection, queue), 'x');
  const receiver = await world.receiver(connection, queue, options);
  receiver.add_credit(1);
  const [{ message, delivery }] = await take(receiver, 1);
  assert.ok(!message.delivery_count, 'the first delivery');
  return { connection, queue, receiver, delivery };
}

async function next(receiver) {
  const count = receiver.got.length;
  receiver.add_credit(1);
  const got = await take(receiver, count + 1);
  return got[count];
}

test('released comes again and does not count', async (world) => {
  const { receiver, delivery } = await one(world);
  delivery.release();
  for (let time = 0; time < 25; time += 1) {
    const again = await next(receiver);
    assert.equal(again.message.delivery_count || 0, 0);
    again.delivery.release();
  }
  (await next(receiver)).delivery.accept();
});

test('modified counts where the delivery failed', async (world) => {
  const { receiver, delivery } = await one(world);
  delivery.modified({ delivery_failed: true });
  let again = await next(receiver);
  assert.equal(again.message.delivery_count, 1);
  again.delivery.modified({ delivery_failed: false });
  again = await next(receiver);
  assert.equal(again.message.delivery_count, 1);
  again.delivery.modified({ delivery_failed: true, message_annotations: { 'x-opt-tried': 'here' } });
  again = await next(receiver);
  assert.equal(again.message.delivery_count, 2);
  assert.equal(again.message.message_annotations['x-opt-tried'], 'here');
  again.delivery.accept();
});

test('undeliverable here goes to somebody else', async (world) => {
  const { connection, queue, receiver, delivery } = await one(world);
  receiver.add_credit(5);
  delivery.modified({ delivery_failed: true, undeliverable_here: true });
  await quiet(receiver);
  const other = await world.receiver(connection, queue);
  other.add_credit(1);
  const [{ message }] = await take(other, 1);
  assert.equal(message.delivery_count, 1);
  assert.equal(receiver.got.length, 1, 'it does not come back');
}, OURS);

test('rejected is final, and a dead letter once', async (world) => {
  const management = await Management.open(world);
  const dead = await management.queue(world.name());
  const queue = await management.queue(world.name(), {
    'x-dead-letter-exchange': '',
    'x-dead-letter-routing-key': dead,
  });
  const connection = await world.connect();
  await send(await world.sender(connection, `/queues/${queue}`), 'bad');
  const receiver = await world.receiver(connection, `/queues/${queue}`);
  receiver.add_credit(5);
  const [{ delivery }] = await take(receiver, 1);
  delivery.reject({ condition: 'own:error', description: 'it is bad' });
  await quiet(receiver);
  assert.deepEqual(bodies(await world.drain(`/queues/${dead}`)), ['bad']);
  assert.deepEqual(await world.drain(`/queues/${queue}`), []);
});

test('failed too often is a dead letter', async (world) => {
  const management = await Management.open(world);
  const dead = await management.queue(world.name());
  const queue = await management.queue(world.name(), {
    'x-queue-type': 'quorum',
    'x-delivery-limit': 3,
    'x-dead-letter-exchange': '',
    'x-dead-letter-routing-key': dead,
  });
  const connection = await world.connect();
  await send(await world.sender(connection, `/queues/${queue}`), 'poison');
  const receiver = await world.receiver(connection, `/queues/${queue}`);
  receiver.add_credit(20);
  for (let time = 1; time <= 4; time += 1) {
    const { message, delivery } = (await take(receiver, time))[time - 1];
    assert.equal(message.delivery_count || 0, time - 1);
    delivery.modified({ delivery_failed: true });
  }
  await quiet(receiver);
  const [{ message }] = await world.drain(`/queues/${dead}`);
  assert.equal(message.body, 'poison');
});

test('a lost connection returns what is not settled', async (world) => {
  const { connection, queue } = await one(world);
  connection.socket.destroy();
  await sleep(50);
  assert.deepEqual(bodies(await world.drain(queue)), ['x']);
});

test('closing a link returns its deliveries without counting', async (world) => {
  const { connection, queue, receiver } = await one(world);
  receiver.close();
  await once(receiver, 'receiver_close');
  const again = await world.receiver(connection, queue);
  again.add_credit(1);
  const [{ message, delivery }] = await take(again, 1);
  assert.equal(message.delivery_count || 0, 0);
  delivery.accept();
});

test('a full queue rejects', async (world) => {
  const management = await Management.open(world);
  const queue = await management.queue(world.name(), { 'x-max-length': 1, 'x-overflow': 'reject-publish' });
  const connection = await world.connect();
  const sender = await world.sender(connection, `/queues/${queue}`, { treat_modified_as_released: false });
  const [first, second] = await send(sender, 1, 2);
  assert.equal(outcome(first), 'accepted');
  assert.equal(outcome(second), 'rejected');
});

test('what leads nowhere is released', async (world) => {
  const connection = await world.connect();
  const sender = await world.sender(connection, '/exchanges/amq.direct/nobody');
  const [delivery] = await send(sender, 'x');
  assert.equal(outcome(delivery), 'released');
});
