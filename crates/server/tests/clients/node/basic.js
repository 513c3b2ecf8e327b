// The plain way with amqplib.
'use strict';

const assert = require('node:assert/strict');
const { test, within, collect } = require('./harness');

test('what is published is got', async (world) => {
  const channel = await world.channel(true);
  const queue = await world.queue(channel);
  channel.sendToQueue(queue, Buffer.from('hello'), { messageId: 'm', headers: { a: 1 } });
  await within(channel.waitForConfirms(), 'the confirm');
  const message = await channel.get(queue);
  assert.equal(message.content.toString(), 'hello');
  assert.equal(message.properties.messageId, 'm');
  assert.deepEqual(message.properties.headers, { a: 1 });
  assert.equal(message.fields.messageCount, 0);
  channel.ack(message);
  assert.equal(await channel.get(queue), false);
});

test('persistent messages are confirmed', async (world) => {
  const channel = await world.channel(true);
  const queue = await world.queue(channel, { durable: true });
  let confirmed = 0;
  for (let number = 0; number < 500; number++) {
    channel.sendToQueue(queue, Buffer.from(`${number}`), { persistent: true }, (error) => {
      assert.equal(error, null);
      confirmed += 1;
    });
  }
  await within(channel.waitForConfirms(), '500 confirms');
  assert.equal(confirmed, 500);
  assert.equal((await channel.checkQueue(queue)).messageCount, 500);
});

test('messages are consumed in order and acked', async (world) => {
  const channel = await world.channel(true);
  const queue = await world.queue(channel);
  const expected = Array.from({ length: 100 }, (_, number) => `${number}`);
  for (const body of expected) channel.sendToQueue(queue, Buffer.from(body));
  const messages = await collect(channel, queue, 100);
  assert.deepEqual(messages.map((message) => message.content.toString()), expected);
  channel.ackAll();
  await channel.close();
  const after = await world.channel();
  assert.equal((await after.checkQueue(queue)).messageCount, 0);
});

test('nack requeues, reject discards', async (world) => {
  const channel = await world.channel(true);
  const queue = await world.queue(channel);
  for (const body of ['a', 'b']) channel.sendToQueue(queue, Buffer.from(body));
  await within(channel.waitForConfirms(), 'confirms');
  const [first, second] = [await channel.get(queue), await channel.get(queue)];
  channel.reject(second, false);
  channel.nack(first, false, true);
  const again = await channel.get(queue);
  assert.equal(again.content.toString(), 'a');
  assert.equal(again.fields.redelivered, true);
  channel.ack(again);
  assert.equal(await channel.get(queue), false);
});

test('a topic exchange routes', async (world) => {
  const channel = await world.channel(true);
  const queue = await world.queue(channel);
  await channel.bindQueue(queue, 'amq.topic', `${queue}.*.end`);
  channel.publish('amq.topic', `${queue}.middle.end`, Buffer.from('yes'));
  channel.publish('amq.topic', `${queue}.middle.other`, Buffer.from('no'));
  await within(channel.waitForConfirms(), 'confirms');
  assert.equal((await channel.get(queue)).content.toString(), 'yes');
  assert.equal(await channel.get(queue), false);
});

test('prefetch bounds what is unsettled', async (world) => {
  const channel = await world.channel(true);
  const queue = await world.queue(channel);
  for (let number = 0; number < 10; number++) channel.sendToQueue(queue, Buffer.from('x'));
  await within(channel.waitForConfirms(), 'confirms');
  await channel.prefetch(3);
  await collect(channel, queue, 3);
  assert.equal((await channel.checkQueue(queue)).messageCount, 7);
});

test('an unroutable mandatory message is returned', async (world) => {
  const channel = await world.channel(true);
  const returned = new Promise((resolve) => channel.on('return', resolve));
  channel.sendToQueue(world.name(), Buffer.from('nobody'), { mandatory: true });
  const message = await within(returned, 'the return');
  assert.equal(message.fields.replyCode, 312);
  assert.equal(message.content.toString(), 'nobody');
});

test('an answer comes back by direct reply-to', async (world) => {
  const channel = await world.channel();
  const queue = await world.queue(channel);
  const answers = collect(channel, 'amq.rabbitmq.reply-to', 1, { noAck: true });
  channel.sendToQueue(queue, Buffer.from('q'), { replyTo: 'amq.rabbitmq.reply-to' });
  const [question] = await collect(channel, queue, 1, { noAck: true });
  channel.sendToQueue(question.properties.replyTo, Buffer.from('a'));
  assert.equal((await answers)[0].content.toString(), 'a');
});

test('a consumer hears that its queue is gone', async (world) => {
  const channel = await world.channel();
  const queue = await world.queue(channel);
  const cancelled = new Promise((resolve) => {
    channel.consume(queue, (message) => message === null && resolve());
  });
  await (await world.channel()).deleteQueue(queue);
  await within(cancelled, 'the cancel notification');
});

test('a body of a megabyte passes', async (world) => {
  const channel = await world.channel(true);
  const queue = await world.queue(channel);
  const body = Buffer.alloc(1 << 20, 'angarium');
  channel.sendToQueue(queue, body);
  await within(channel.waitForConfirms(), 'the confirm');
  assert.ok((await channel.get(queue)).content.equals(body));
});
