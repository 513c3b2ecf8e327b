// What the broker's WebSocket itself does, as a client library sees it.
'use strict';

const assert = require('node:assert');
const http = require('node:http');
const { PORT, WebSocket, test, within, once } = require('./harness');

test('pings are answered, and compression is not agreed on', async (world) => {
  const socket = await world.open('/mqtt', ['mqtt'], { perMessageDeflate: true });
  assert.strictEqual(socket.extensions, '');
  assert.strictEqual(socket.protocol, 'mqtt');
  socket.ping('are you there');
  const [said] = await within(once(socket, 'pong'), 'a pong');
  assert.strictEqual(said.toString(), 'are you there');
});

test('a goodbye is answered', async (world) => {
  const socket = await world.open('/stomp', ['v12.stomp']);
  socket.close(1000, 'bye');
  const [code] = await within(once(socket, 'close'), 'the end');
  assert.strictEqual(code, 1000);
});

test('text is refused where the protocol is binary', async (world) => {
  const socket = await world.open('/mqtt', ['mqtt']);
  socket.send('text');
  const [code] = await within(once(socket, 'close'), 'the end');
  assert.strictEqual(code, 1003);
});

test('pages of other sites are refused, with a reason', async () => {
  for (const [origin, host, status, why] of [
    ['http://evil.example', '127.0.0.1', 403, /ws-origins/],
    ['http://evil.example', 'evil.example', 421, /http-hosts/],
  ]) {
    const socket = new WebSocket(`ws://127.0.0.1:${PORT}/mqtt`, ['mqtt'], { headers: { origin, host } });
    socket.on('error', () => {});
    const [, response] = await within(once(socket, 'unexpected-response'), 'a refusal');
    assert.strictEqual(response.statusCode, status);
    const [text] = await within(once(response, 'data'), 'the reason');
    assert.match(text.toString(), why);
  }
});

test('what asks for a page is told what is here', async () => {
  const request = http.get({ port: PORT, host: '127.0.0.1', path: '/' });
  const [response] = await within(once(request, 'response'), 'an answer');
  assert.strictEqual(response.statusCode, 426);
  const [text] = await within(once(response, 'data'), 'the reason');
  assert.match(text.toString(), /WebSocket is spoken here/);
});
