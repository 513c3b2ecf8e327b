// Credit, draining, and how deliveries are settled.
'use strict';

const { test, assert, bodies, once, quiet, send, setCredit, sleep, take, until } = require('./harness');

async function filled(world, count) {
  const connection = await world.connect();
  const queue = world.name();
  const sender = await world.sender(connection, queue);
  await send(sender, ...Array.from({ length: count }, (_, number) => number));
  return { connection, queue, sender };
}

test('nothing comes without credit, and no more than it', async (world) => {
  const { connection, queue } = await filled(world, 10);
  const receiver = await world.receiver(connection, queue);
  await quiet(receiver);
  await sleep(500);
  assert.equal(receiver.got.length, 0);
  receiver.add_credit(3);
  await take(receiver, 3);
  await quiet(receiver);
  for (const { delivery } of receiver.got) delivery.accept();
  await quiet(receiver);
  receiver.add_credit(2);
  assert.deepEqual(bodies(await take(receiver, 5)), [0, 1, 2, 3, 4]);
});

test('credit can be lowered', async (world) => {
  const connection = await world.connect();
  const queue = world.name();
  const receiver = await world.receiver(connection, queue);
  receiver.add_credit(100);
  const sender = await world.sender(connection, queue);
  await send(sender, 0, 1);
  await take(receiver, 2);
  setCredit(receiver, 1);
  await send(sender, 2, 3, 4);
  await take(receiver, 3);
  await quiet(receiver);
  setCredit(receiver, 0);
  await send(sender, 5);
  await quiet(receiver);
  receiver.add_credit(3);
  assert.deepEqual(bodies(await take(receiver, 6)), [0, 1, 2, 3, 4, 5]);
});

test('draining gives what there is and takes the credit back', async (world) => {
  const { connection, queue, sender } = await filled(world, 3);
  const receiver = await world.receiver(connection, queue);
  receiver.add_credit(10);
  receiver.drain_credit();
  await once(receiver, 'receiver_drained');
  assert.deepEqual(bodies(receiver.got), [0, 1, 2]);
  assert.equal(receiver.credit, 0);
  receiver.drain = false;
  await send(sender, 'later');
  await quiet(receiver);
  receiver.add_credit(1);
  await take(receiver, 4);
});

test('draining an empty queue ends at once', async (world) => {
  const connection = await world.connect();
  const receiver = await world.receiver(connection, world.name());
  receiver.add_credit(5);
  receiver.drain_credit();
  await once(receiver, 'receiver_drained');
  assert.equal(receiver.got.length, 0);
});

test('many links share a queue by their credit', async (world) => {
  const connection = await world.connect();
  const queue = world.name();
  const receivers = [];
  for (let index = 0; index < 5; index += 1) {
    const receiver = await world.receiver(connection, queue);
    receiver.add_credit(index + 1);
    receivers.push(receiver);
  }
  const sender = await world.sender(connection, queue);
  await send(sender, ...Array.from({ length: 20 }, (_, number) => number));
  const count = () => receivers.reduce((sum, receiver) => sum + receiver.got.length, 0);
  await until(() => count() === 15, 'what the credit allows');
  await sleep(100);
  for (const [index, receiver] of receivers.entries()) assert.equal(receiver.got.length, index + 1);
  assert.equal((await world.drain(queue)).length, 5);
});

test('a delivery is settled in two steps where the receiver asks for it', async (world) => {
  const { connection, queue } = await filled(world, 1);
  const receiver = await world.receiver(connection, queue, { rcv_settle_mode: 1 });
  assert.equal(receiver.remote.attach.rcv_settle_mode, 1, 'the mode is taken');
  receiver.add_credit(1);
  const [{ delivery }] = await take(receiver, 1);
  const settled = once(receiver, 'settled');
  delivery.accept();
  assert.equal(delivery.settled, false, 'not settled by the receiver first');
  await settled;
  receiver.close();
  assert.deepEqual(await world.drain(queue), []);
});

test('settlements in any order', async (world) => {
  const { connection, queue } = await filled(world, 6);
  const receiver = await world.receiver(connection, queue);
  receiver.add_credit(6);
  const got = await take(receiver, 6);
  for (const index of [4, 1, 2]) got[index].delivery.accept();
  await sleep(50);
  connection.close();
  assert.deepEqual(bodies(await world.drain(queue)), [0, 3, 5]);
});
