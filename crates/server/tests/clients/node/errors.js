// What is refused, as amqplib shows it.
'use strict';

const assert = require('node:assert/strict');
const { test, within } = require('./harness');

test('a missing queue is 404 and ends only its channel', async (world) => {
  const connection = await world.connect();
  const channel = await connection.createChannel();
  channel.on('error', () => {});
  await assert.rejects(channel.checkQueue(world.name()), { code: 404 });
  await (await connection.createChannel()).close();
});

test('another declaration of the same name is 406', async (world) => {
  const channel = await world.channel();
  const queue = await world.queue(channel, { durable: false });
  await assert.rejects(channel.assertQueue(queue, { durable: true }), { code: 406 });
});

test('an unknown delivery tag is 406', async (world) => {
  const channel = await world.channel();
  channel.ack({ fields: { deliveryTag: 77 } });
  const error = await within(channel.failed, 'the channel error');
  assert.equal(error.code, 406);
});

test('a wrong password is refused', async (world) => {
  const credentials = require('amqplib').credentials.plain('guest', 'wrong');
  await assert.rejects(world.connect({ credentials }), /ACCESS_REFUSED|403/);
});
