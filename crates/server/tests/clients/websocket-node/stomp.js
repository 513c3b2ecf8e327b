// stompjs.
'use strict';

const assert = require('node:assert');
const crypto = require('node:crypto');
const { Client } = require('@stomp/stompjs');
const { PORT, WebSocket, test, within, inbox } = require('./harness');

async function connect(world, options = {}) {
  const client = new Client({
    brokerURL: `ws://127.0.0.1:${PORT}/stomp`,
    connectHeaders: { login: 'guest', passcode: 'guest' },
    reconnectDelay: 0,
    ...options,
  });
  world.after(() => client.deactivate());
  const connected = new Promise((resolve, reject) => {
    client.onConnect = resolve;
    client.onStompError = (frame) => reject(new Error(`${frame.headers.message}: ${frame.body}`));
    client.onWebSocketError = reject;
  });
  client.activate();
  await within(connected, 'CONNECTED');
  return client;
}

async function subscribe(client, destination) {
  const { put, next } = inbox();
  const receipt = crypto.randomUUID();
  const done = new Promise((resolve) => client.watchForReceipt(receipt, resolve));
  client.subscribe(destination, put, { receipt });
  await within(done, 'a receipt');
  return next;
}

for (const [kind, options] of [
  ['text', {}],
  ['binary', { forceBinaryWSFrames: true }],
  ['split frames', { splitLargeFrames: true, maxWebSocketChunkSize: 100 }],
]) {
  test(`STOMP, ${kind}: messages arrive in order`, async (world) => {
    const client = await connect(world, options);
    const queue = `/queue/${world.name()}`;
    const next = await subscribe(client, queue);
    for (let number = 0; number < 300; number += 1) {
      client.publish({ destination: queue, body: `€ ${number}` });
    }
    for (let number = 0; number < 300; number += 1) {
      assert.strictEqual((await next()).body, `€ ${number}`);
    }
  });
}

test('STOMP: frames are text for who speaks text, and binary where bodies are', async (world) => {
  const kinds = [];
  const webSocketFactory = () => {
    const socket = new WebSocket(`ws://127.0.0.1:${PORT}/stomp`, ['v12.stomp']);
    socket.on('message', (_, isBinary) => kinds.push(isBinary));
    return socket;
  };
  const client = await connect(world, { webSocketFactory });
  const queue = `/queue/${world.name()}`;
  const next = await subscribe(client, queue);
  client.publish({ destination: queue, body: 'text' });
  await next();
  assert.ok(kinds.length > 0 && kinds.every((isBinary) => !isBinary));
  const binaryBody = new Uint8Array(200000).map((_, index) => index);
  client.publish({ destination: queue, binaryBody });
  assert.deepStrictEqual(Buffer.from((await next()).binaryBody), Buffer.from(binaryBody));
  assert.ok(kinds.some((isBinary) => isBinary));
});
