// rhea.
'use strict';

const assert = require('node:assert');
const rhea = require('rhea');
const { PORT, WebSocket, test, within, once, inbox } = require('./harness');

for (const [what, path, protocols] of [
  ['by subprotocol', '/', ['amqp']],
  ['of several subprotocols', '/anywhere', ['binary', 'AMQPWSB10', 'amqp']],
  ['by path', '/amqp', []],
  ['by its first bytes', '/ws', []],
]) {
  test(`AMQP 1.0, ${what}: messages arrive in order`, async (world) => {
    const container = rhea.create_container();
    const connect = container.websocket_connect(WebSocket);
    const connection = container.connect({
      connection_details: connect(`ws://127.0.0.1:${PORT}${path}`, protocols, {}),
      username: 'guest',
      password: 'guest',
      reconnect: false,
    });
    connection.on('disconnected', () => {});
    world.after(() => connection.close());
    await within(once(connection, 'connection_open'), 'open');
    const address = `/queues/${world.name()}`;
    const { put, next } = inbox();
    const management = connection.open_sender({ target: { address, capabilities: ['queue'] } });
    await within(once(management, 'sendable'), 'credit');
    connection.open_receiver({ source: { address } }).on('message', ({ message }) => put(message));
    for (let number = 0; number < 100; number += 1) management.send({ body: `${number}` });
    for (let number = 0; number < 100; number += 1) assert.strictEqual((await next()).body, `${number}`);
  });
}
