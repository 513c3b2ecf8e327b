// Messages, acknowledgements, transactions and errors.
'use strict';

const assert = require('node:assert');
const { test, within, subscribe, send } = require('./harness');

test('messages arrive in their order', async (world) => {
  const client = await world.connect();
  const queue = `/queue/${world.name()}`;
  const { next } = await subscribe(client, queue);
  for (let number = 0; number < 1000; number += 1) {
    client.publish({ destination: queue, body: String(number) });
  }
  for (let number = 0; number < 1000; number += 1) {
    assert.strictEqual((await next()).body, String(number));
  }
});

test('bodies may be of any bytes, headers of any letters', async (world) => {
  const client = await world.connect();
  const queue = `/queue/${world.name()}`;
  const { next } = await subscribe(client, queue);
  const binaryBody = new Uint8Array(200000).map((_, index) => index);
  client.publish({ destination: queue, binaryBody, headers: { odd: 'a:b\nc\\d\r' } });
  const got = await next();
  assert.deepStrictEqual(Buffer.from(got.binaryBody), Buffer.from(binaryBody));
  assert.strictEqual(got.headers.odd, 'a:b\nc\\d\r');
  assert.strictEqual(got.headers.destination, queue);
});

test('topics reach all who subscribe', async (world) => {
  const [one, two] = [await world.connect(), await world.connect()];
  const topic = world.name();
  const first = await subscribe(one, `/topic/${topic}.*`);
  const second = await subscribe(two, `/topic/${topic}.#`);
  await send(one, `/topic/${topic}.a`, 'hello');
  for (const { next } of [first, second]) {
    const got = await next();
    assert.strictEqual(got.body, 'hello');
    assert.strictEqual(got.headers.destination, `/topic/${topic}.a`);
  }
});

test('what is refused comes again, what is acknowledged does not', async (world) => {
  const client = await world.connect();
  const queue = `/queue/${world.name()}`;
  const { next, got } = await subscribe(client, queue, { ack: 'client-individual' });
  await send(client, queue, 'a');
  (await next()).nack();
  const again = await next();
  assert.strictEqual(again.headers.redelivered, 'true');
  again.ack();
  await send(client, queue, 'b');
  assert.strictEqual((await next()).body, 'b');
  assert.strictEqual(got.length, 0);
});

test('transactions are all or nothing', async (world) => {
  const client = await world.connect();
  const queue = `/queue/${world.name()}`;
  const { next } = await subscribe(client, queue);
  const [kept, dropped] = [client.begin(), client.begin()];
  client.publish({ destination: queue, body: 'kept', headers: { transaction: kept.id } });
  client.publish({ destination: queue, body: 'dropped', headers: { transaction: dropped.id } });
  await send(client, queue, 'first');
  dropped.abort();
  kept.commit();
  assert.strictEqual((await next()).body, 'first');
  assert.strictEqual((await next()).body, 'kept');
});

test('the end of a subscription is its end', async (world) => {
  const client = await world.connect();
  const topic = `/topic/${world.name()}`;
  const { subscription, got } = await subscribe(client, topic);
  const receipt = world.name();
  const done = new Promise((resolve) => client.watchForReceipt(receipt, resolve));
  subscription.unsubscribe({ receipt });
  await within(done, 'a receipt');
  await send(client, topic, 'nobody');
  assert.strictEqual(got.length, 0);
});

test('errors explain', async (world) => {
  const client = await world.connect();
  const failed = new Promise((resolve) => (client.onStompError = resolve));
  const closed = new Promise((resolve) => (client.onWebSocketClose = resolve));
  client.publish({ destination: '/nowhere/a', body: '' });
  const frame = await within(failed, 'ERROR');
  assert.strictEqual(frame.headers.message, 'Unknown destination');
  assert.match(frame.body, /valid ones begin with \/queue\//);
  await within(closed, 'the end');
});

test('heart-beats keep idle connections', async (world) => {
  const client = await world.connect({ heartbeatIncoming: 1000, heartbeatOutgoing: 1000 });
  let ended = false;
  client.onWebSocketClose = () => (ended = true);
  await new Promise((resolve) => setTimeout(resolve, 3500));
  assert.ok(!ended && client.connected);
});
