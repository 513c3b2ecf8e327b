// Messages in every version and quality of service, properties, TLS.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test, VERSIONS } = require('./harness');

for (const version of VERSIONS) {
  test(`version ${version}: messages of every quality of service arrive`, async (world) => {
    const [publisher, client] = [await world.connect(version), await world.connect(version)];
    const topic = world.name();
    const [granted] = await client.subscribeAsync(`${topic}/#`, { qos: 2 });
    assert.equal(granted.qos, 2);
    for (const qos of [0, 1, 2]) {
      await publisher.publishAsync(`${topic}/${qos}`, `${qos}`, { qos });
      const [packet] = await client.inbox.take(1);
      assert.deepEqual([packet.topic, packet.qos, `${packet.payload}`], [`${topic}/${qos}`, qos, `${qos}`]);
    }
    await client.unsubscribeAsync(`${topic}/#`);
    await publisher.publishAsync(`${topic}/1`, 'gone', { qos: 1 });
    await client.inbox.silent();
  });

  test(`version ${version}: large messages arrive whole, many in their order`, async (world) => {
    const client = await world.connect(version);
    const topic = world.name();
    await client.subscribeAsync(topic, { qos: 1 });
    const large = Buffer.alloc(2_000_000, 'angarium');
    await client.publishAsync(topic, large, { qos: 1 });
    assert.ok((await client.inbox.take(1))[0].payload.equals(large));
    const numbers = Array.from({ length: 1_000 }, (_, number) => `${number}`);
    numbers.forEach((number) => client.publish(topic, number, { qos: 1 }));
    assert.deepEqual(await client.inbox.payloads(1_000), numbers);
  });

  test(
    `version ${version}: everything goes over TLS`,
    async (world) => {
      const authority = path.join(process.env.BROKER_TEST_CERTIFICATES, 'authority.pem');
      const tls = { protocol: 'mqtts', port: Number(process.env.BROKER_TEST_MQTTS_PORT) };
      const client = await world.connect(version, { ...tls, ca: fs.readFileSync(authority) });
      const topic = world.name();
      await client.subscribeAsync(topic, { qos: 2 });
      const body = 'more than one record '.repeat(10_000);
      await client.publishAsync(topic, body, { qos: 2 });
      assert.deepEqual(await client.inbox.payloads(1), [body]);
      await assert.rejects(world.connect(version, tls), /certificate/);
    },
    'BROKER_TEST_MQTTS_PORT',
  );

  test(`version ${version}: a wrong password is refused`, async (world) => {
    const login = { username: 'guest', password: 'wrong' };
    await assert.rejects(world.connect(version, login), /not authorized|password/i);
  });
}

test('version 5: properties arrive, and topics have aliases both ways', async (world) => {
  const automatic = { autoUseTopicAlias: true, autoAssignTopicAlias: true };
  const aliases = { properties: { topicAliasMaximum: 10 }, ...automatic };
  const [publisher, client] = [await world.connect(5, aliases), await world.connect(5, aliases)];
  const topic = world.name();
  await client.subscribeAsync(topic, { qos: 1, properties: { subscriptionIdentifier: 7 } });
  const properties = {
    responseTopic: 'answers/1',
    correlationData: Buffer.from([0, 255]),
    contentType: 'text/plain',
    messageExpiryInterval: 60,
    userProperties: { a: ['1', '2'], b: '3' },
  };
  for (let number = 0; number < 3; number++) {
    await publisher.publishAsync(topic, `${number}`, { qos: 1, properties: { ...properties } });
    const [packet] = await client.inbox.take(1);
    const got = packet.properties;
    assert.equal(`${packet.payload}`, `${number}`);
    assert.deepEqual([got.responseTopic, got.contentType], ['answers/1', 'text/plain']);
    assert.deepEqual([...got.correlationData], [0, 255]);
    assert.deepEqual({ ...got.userProperties }, { a: ['1', '2'], b: '3' });
    assert.ok(got.messageExpiryInterval >= 58 && got.messageExpiryInterval <= 60);
    assert.equal(got.subscriptionIdentifier, 7);
  }
});

test('version 5: overlapping subscriptions, no local, retain as published', async (world) => {
  const [client, other] = [await world.connect(5), await world.connect(5)];
  const topic = world.name();
  const subscribe = (filter, options, subscriptionIdentifier) =>
    client.subscribeAsync(filter, { ...options, properties: { subscriptionIdentifier } });
  await subscribe(`${topic}/#`, { qos: 0 }, 1);
  await subscribe(`${topic}/a`, { qos: 2 }, 2);
  await subscribe(`${topic}/own`, { qos: 1, nl: true }, 3);
  await other.publishAsync(`${topic}/a`, 'x', { qos: 2 });
  const [packet] = await client.inbox.take(1);
  assert.equal(packet.qos, 2);
  assert.deepEqual([...packet.properties.subscriptionIdentifier].sort(), [1, 2]);
  await client.unsubscribeAsync(`${topic}/#`);
  await client.publishAsync(`${topic}/own`, 'own', { qos: 1 });
  await client.inbox.silent();
});
