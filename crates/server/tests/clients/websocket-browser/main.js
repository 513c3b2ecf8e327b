// Clients of every protocol in a browser, against the broker at BROKER_TEST_WS_PORT.
'use strict';

const assert = require('node:assert');
const crypto = require('node:crypto');
const path = require('node:path');
const { chromium } = require('playwright-core');
const { test, within, run } = require('../shared/cases');

const PORT = Number(process.env.BROKER_TEST_WS_PORT || 8083);
const PROGRAM = process.env.BROKER_TEST_CHROMIUM || '/usr/bin/chromium';
const MESSAGES = 100;
// The pages are not really served by this machine, and browsers keep others from its ports.
const MAY_COME_HERE = '--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets';

/** The folder in which npm has put all packages, beside this file or where NODE_PATH says. */
const PACKAGES = path.dirname(path.dirname(require.resolve('playwright-core/package.json')));
const library = (...parts) => path.join(PACKAGES, ...parts);

/** A browser for all cases. */
let browser;

/** What one case uses: a page that the broker's own address seems to have served. */
class World {
  async page(origin = `http://127.0.0.1:${PORT}`, scripts = []) {
    const args = ['--no-sandbox', MAY_COME_HERE];
    browser = browser || (await chromium.launch({ executablePath: PROGRAM, args }));
    this.context = await browser.newContext();
    const page = await this.context.newPage();
    const answers = { contentType: 'text/html', body: '<!doctype html><title>a page</title>' };
    await page.route(`${origin}/page`, (route) => route.fulfill(answers));
    await page.route(`${origin}/nats.mjs`, (route) =>
      route.fulfill({ contentType: 'text/javascript', path: library('nats.ws', 'esm', 'nats.js') }),
    );
    await page.goto(`${origin}/page`);
    for (const script of scripts) await page.addScriptTag({ path: script });
    return page;
  }

  async close() {
    if (this.context) await this.context.close();
  }
}

const numbers = Array.from({ length: MESSAGES }, (_, number) => `€ ${number}`);
const input = () => ({ port: PORT, name: `browser-${crypto.randomUUID()}`, numbers });

test('MQTT.js', async (world) => {
  const page = await world.page(undefined, [library('mqtt', 'dist', 'mqtt.min.js')]);
  const got = await page.evaluate(async ({ port, name, numbers }) => {
    const options = { username: 'guest', password: 'guest', reconnectPeriod: 0, protocolVersion: 5 };
    const client = await mqtt.connectAsync(`ws://127.0.0.1:${port}`, options);
    const got = [];
    const text = (payload) => new TextDecoder().decode(payload);
    const all = new Promise((resolve) =>
      client.on('message', (_, payload) => got.push(text(payload)) === numbers.length && resolve()),
    );
    await client.subscribeAsync(name, { qos: 1 });
    for (const number of numbers) client.publish(name, number, { qos: 1 });
    await all;
    await client.endAsync();
    return got;
  }, input());
  assert.deepStrictEqual(got, numbers);
});

test('stompjs', async (world) => {
  const page = await world.page(undefined, [library('@stomp', 'stompjs', 'bundles', 'stomp.umd.js')]);
  const got = await page.evaluate(async ({ port, name, numbers }) => {
    const client = new StompJs.Client({
      brokerURL: `ws://127.0.0.1:${port}`,
      connectHeaders: { login: 'guest', passcode: 'guest' },
      reconnectDelay: 0,
    });
    const got = [];
    await new Promise((resolve, reject) => {
      client.onStompError = (frame) => reject(new Error(frame.body));
      client.onWebSocketClose = () => reject(new Error('closed'));
      client.onConnect = () => {
        client.subscribe(`/queue/${name}`, ({ body }) => got.push(body) === numbers.length && resolve());
        for (const body of numbers) client.publish({ destination: `/queue/${name}`, body });
      };
      client.activate();
    });
    await client.deactivate();
    return got;
  }, input());
  assert.deepStrictEqual(got, numbers);
});

test('rhea', async (world) => {
  const page = await world.page(undefined, [library('rhea', 'dist', 'rhea-umd.js')]);
  const got = await page.evaluate(async ({ port, name, numbers }) => {
    const container = rheaUmd.create_container();
    const connect = container.websocket_connect(WebSocket);
    const connection = container.connect({
      connection_details: connect(`ws://127.0.0.1:${port}`, ['amqp'], {}),
      username: 'guest',
      password: 'guest',
      reconnect: false,
    });
    const address = `/queues/${name}`;
    const got = [];
    await new Promise((resolve, reject) => {
      connection.on('disconnected', () => reject(new Error('disconnected')));
      connection.on('message', ({ message }) => got.push(message.body) === numbers.length && resolve());
      const sender = connection.open_sender({ target: { address, capabilities: ['queue'] } });
      sender.once('sendable', () => {
        connection.open_receiver({ source: { address } });
        for (const body of numbers) sender.send({ body });
      });
    });
    connection.close();
    return got;
  }, input());
  assert.deepStrictEqual(got, numbers);
});

test('nats.ws', async (world) => {
  const page = await world.page();
  const got = await page.evaluate(async ({ port, name, numbers }) => {
    const { connect, StringCodec } = await import('/nats.mjs');
    const codec = StringCodec();
    const connection = await connect({ servers: `ws://127.0.0.1:${port}`, user: 'guest', pass: 'guest' });
    const subscription = connection.subscribe(name, { max: numbers.length });
    for (const number of numbers) connection.publish(name, codec.encode(number));
    const got = [];
    for await (const message of subscription) got.push(codec.decode(message.data));
    await connection.close();
    return got;
  }, input());
  assert.deepStrictEqual(got, numbers);
});

test('a page of another site is kept out', async (world) => {
  const page = await world.page('http://evil.example');
  const closed = await page.evaluate(
    ({ port }) =>
      new Promise((resolve) => {
        const socket = new WebSocket(`ws://127.0.0.1:${port}/mqtt`, ['mqtt']);
        socket.onopen = () => resolve('open');
        socket.onclose = ({ code }) => resolve(code);
      }),
    input(),
  );
  assert.strictEqual(closed, 1006);
});

test('a page hears why it was closed', async (world) => {
  const page = await world.page();
  const closed = await page.evaluate(
    ({ port }) =>
      new Promise((resolve) => {
        const socket = new WebSocket(`ws://127.0.0.1:${port}/mqtt`, ['mqtt']);
        socket.onopen = () => socket.send('text');
        socket.onclose = ({ code, wasClean }) => resolve({ code, wasClean });
      }),
    input(),
  );
  assert.deepStrictEqual(closed, { code: 1003, wasClean: true });
});

within(run(World), 'the end of all cases', 300_000).catch(() => process.exit(1));
