// MQTT.js.
'use strict';

const assert = require('node:assert');
const mqtt = require('mqtt');
const { PORT, ANY_PORT, test, within, once, inbox } = require('./harness');

async function connect(world, options = {}, port = PORT) {
  const client = mqtt.connect(`ws://127.0.0.1:${port}/mqtt`, {
    username: 'guest',
    password: 'guest',
    reconnectPeriod: 0,
    ...options,
  });
  world.after(() => client.endAsync(true));
  await within(once(client, 'connect'), 'CONNACK');
  const { put, next, got } = inbox();
  client.on('message', (topic, payload) => put({ topic, payload }));
  return { client, next, got };
}

for (const [version, protocolVersion] of [['3.1.1', 4], ['5', 5]]) {
  for (const qos of [0, 1, 2]) {
    test(`MQTT ${version}: messages of QoS ${qos} arrive in order`, async (world) => {
      const { client, next } = await connect(world, { protocolVersion });
      const topic = `${world.name()}/a`;
      await client.subscribeAsync(topic, { qos });
      for (let number = 0; number < 200; number += 1) client.publish(topic, String(number), { qos });
      for (let number = 0; number < 200; number += 1) {
        assert.strictEqual((await next()).payload.toString(), String(number));
      }
    });
  }
}

test('MQTT packets may be larger than frames', async (world) => {
  const { client, next } = await connect(world);
  const topic = world.name();
  await client.subscribeAsync(topic, { qos: 1 });
  const payload = Buffer.alloc(3 << 20, (index) => index).map((_, index) => index % 251);
  await client.publishAsync(topic, payload, { qos: 1 });
  assert.ok((await next()).payload.equals(payload));
});

test('MQTT over WebSocket is spoken on the shared port too', async (world) => {
  const { client, next } = await connect(world, {}, ANY_PORT);
  const topic = world.name();
  await client.subscribeAsync(topic);
  client.publish(topic, 'hello');
  assert.strictEqual((await next()).payload.toString(), 'hello');
});

test('MQTT without WebSocket is spoken on the shared port', async (world) => {
  const client = mqtt.connect(`mqtt://127.0.0.1:${ANY_PORT}`, {
    username: 'guest',
    password: 'guest',
    reconnectPeriod: 0,
  });
  world.after(() => client.endAsync(true));
  await within(once(client, 'connect'), 'CONNACK');
});

test('MQTT refuses wrong passwords', async (world) => {
  await assert.rejects(connect(world, { password: 'wrong' }), /Not authorized|Bad username/i);
});
