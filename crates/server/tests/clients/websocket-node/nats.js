// nats.js, its WebSocket transport for browsers: it names no subprotocol, and waits to be greeted.
'use strict';

const assert = require('node:assert');
const { wsconnect } = require('@nats-io/nats-core');
const { PORT, ANY_PORT, test, within } = require('./harness');

for (const [what, server] of [
  ['by path', `ws://127.0.0.1:${PORT}/nats`],
  ['greeted after a silence', `ws://127.0.0.1:${PORT}`],
  ['on the shared port', `ws://127.0.0.1:${ANY_PORT}`],
]) {
  test(`NATS, ${what}: messages and requests`, async (world) => {
    const options = { servers: server, user: 'guest', pass: 'guest', reconnect: false };
    const connection = await within(wsconnect(options), 'INFO');
    world.after(() => connection.close());
    const subject = world.name();
    const subscription = connection.subscribe(subject);
    const messages = subscription[Symbol.asyncIterator]();
    for (let number = 0; number < 300; number += 1) connection.publish(subject, `€ ${number}`);
    for (let number = 0; number < 300; number += 1) {
      const { value } = await within(messages.next(), 'a message');
      assert.strictEqual(value.string(), `€ ${number}`);
    }
    connection.subscribe(`${subject}.echo`, { callback: (_, message) => message.respond(message.data) });
    const answer = await within(connection.request(`${subject}.echo`, 'x'.repeat(100000)), 'an answer');
    assert.strictEqual(answer.data.length, 100000);
  });
}
