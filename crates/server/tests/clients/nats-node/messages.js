// Publishing, subscribing and asking with nats.js.
'use strict';

const assert = require('node:assert/strict');
const { headers, RequestError, NoRespondersError } = require('@nats-io/transport-node');
const { jetstreamManager } = require('@nats-io/jetstream');
const { test, within, take, PATIENCE_MS } = require('./harness');

test('messages arrive in their order', async (world) => {
  const [publisher, client] = [await world.connect(), await world.connect()];
  const subject = world.subject();
  const subscription = client.subscribe(subject);
  await client.flush();
  for (let number = 0; number < 10_000; number++) publisher.publish(subject, `${number}`);
  const got = await take(subscription, 10_000);
  got.forEach((message, number) => assert.equal(message.string(), `${number}`));
});

test('wildcards stand for tokens', async (world) => {
  const client = await world.connect();
  const prefix = world.subject();
  const one = client.subscribe(`${prefix}.*.end`);
  const many = client.subscribe(`${prefix}.>`);
  for (const ending of ['.a.end', '.a.b.end', '.a', '']) client.publish(prefix + ending, ending);
  await client.flush();
  assert.equal((await take(one, 1))[0].string(), '.a.end');
  const got = await take(many, 3);
  assert.deepEqual(got.map((message) => message.string()), ['.a.end', '.a.b.end', '.a']);
  assert.equal(one.getPending(), 0);
});

for (const patterns of [['', '', ''], ['.>', '.*', '.one']]) {
  const what = patterns.some(Boolean) ? `, with the patterns ${patterns}` : '';
  test(`one of a group gets each message${what}`, async (world) => {
    const prefix = world.subject();
    const subject = what ? `${prefix}.one` : prefix;
    const counts = patterns.map(() => 0);
    for (const [index, pattern] of patterns.entries()) {
      const member = await world.connect();
      const callback = () => (counts[index] += 1);
      member.subscribe(prefix + pattern, { queue: 'workers', callback });
      await member.flush();
    }
    const publisher = await world.connect();
    const all = publisher.subscribe(subject);
    for (let number = 0; number < 300; number++) publisher.publish(subject);
    await take(all, 300);
    await Promise.all(world.clients.map((client) => client.flush()));
    assert.equal(counts.reduce((sum, count) => sum + count), 300);
    assert.ok(Math.min(...counts) > 0, `${counts}`);
  });
}

test('headers pass as they are', async (world) => {
  const client = await world.connect();
  const subject = world.subject();
  const subscription = client.subscribe(subject);
  const sent = headers();
  sent.append('Several', 'a');
  sent.append('Several', 'b');
  sent.set('One', 'ä');
  client.publish(subject, 'hi', { headers: sent, reply: 'there' });
  const [message] = await take(subscription, 1);
  assert.deepEqual(message.headers.values('Several'), ['a', 'b']);
  assert.equal(message.headers.get('One'), 'ä');
  assert.equal(message.reply, 'there');
});

test('payloads of all sizes', async (world) => {
  const client = await world.connect();
  const subject = world.subject();
  const subscription = client.subscribe(subject);
  for (const size of [0, 1, 65_536, 500_000, client.info.max_payload]) {
    client.publish(subject, new Uint8Array(size).fill(size));
    const [message] = await take(subscription, 1);
    assert.equal(message.data.length, size);
    assert.ok(message.data.every((byte) => byte === size % 256));
  }
});

test('a subscription ends after so many messages', async (world) => {
  const client = await world.connect();
  const subject = world.subject();
  const subscription = client.subscribe(subject, { max: 2 });
  for (const body of ['1', '2', '3']) client.publish(subject, body);
  const got = [];
  for await (const message of subscription) got.push(message.string());
  assert.deepEqual(got, ['1', '2']);
});

test('requests are answered', async (world) => {
  const [service, client] = [await world.connect(), await world.connect()];
  const subject = world.subject();
  service.subscribe(subject, { callback: (_, message) => message.respond(`${message.string()}!`) });
  await service.flush();
  const asked = [...Array(200).keys()].map((number) =>
    client.request(subject, `${number}`, { timeout: PATIENCE_MS }),
  );
  (await Promise.all(asked)).forEach((answer, number) => assert.equal(answer.string(), `${number}!`));
});

test('nobody there is told at once', async (world) => {
  const client = await world.connect();
  await assert.rejects(client.request(world.subject(), '', { timeout: PATIENCE_MS }), (error) => {
    assert.ok(error instanceof RequestError || error instanceof NoRespondersError, error.stack);
    assert.match(`${error.message} ${error.cause?.name}`, /no responders|NoResponders/i);
    return true;
  });
});

test('streams are declined', async (world) => {
  const client = await world.connect();
  await within(assert.rejects(jetstreamManager(client)), 'a refusal');
});
