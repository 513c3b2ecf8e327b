// What cases of stompjs may use.
'use strict';

const { Client } = require('@stomp/stompjs');
const { TCPWrapper } = require('@stomp/tcp-wrapper');
const crypto = require('node:crypto');
const { test, within, run } = require('../shared/cases');

const PORT = Number(process.env.BROKER_TEST_STOMP_PORT || 61613);

/** What one case uses; everything is closed afterwards. */
class World {
  constructor() {
    this.clients = [];
  }

  /** A client that is connected: the library agrees on a version, and on heart-beats every 10 s. */
  async connect(options = {}) {
    const client = new Client({
      webSocketFactory: () => new TCPWrapper('127.0.0.1', PORT),
      connectHeaders: { login: 'guest', passcode: 'guest' },
      reconnectDelay: 0,
      ...options,
    });
    this.clients.push(client);
    const connected = new Promise((resolve, reject) => {
      client.onConnect = resolve;
      client.onStompError = (frame) => reject(new Error(`${frame.headers.message}: ${frame.body}`));
      client.onWebSocketError = reject;
    });
    client.activate();
    await within(connected, 'CONNECTED');
    return client;
  }

  name(prefix = 'n') {
    return `${prefix}.${crypto.randomUUID()}`;
  }

  async close() {
    await Promise.all(this.clients.map((client) => client.deactivate()));
  }
}

/** Subscribes and waits until the broker has said that it did; gives messages one by one. */
async function subscribe(client, destination, headers = {}) {
  const [got, waiting] = [[], []];
  const receipt = crypto.randomUUID();
  const done = new Promise((resolve) => client.watchForReceipt(receipt, resolve));
  const take = (message) => (waiting.length ? waiting.shift()(message) : got.push(message));
  const subscription = client.subscribe(destination, take, { ...headers, receipt });
  await within(done, 'a receipt');
  const next = () =>
    within(
      new Promise((resolve) => (got.length ? resolve(got.shift()) : waiting.push(resolve))),
      'a message',
    );
  return { next, got, subscription };
}

/** Sends and waits for the receipt. */
async function send(client, destination, body, headers = {}) {
  const receipt = crypto.randomUUID();
  const done = new Promise((resolve) => client.watchForReceipt(receipt, resolve));
  client.publish({ destination, body, headers: { ...headers, receipt } });
  await within(done, 'a receipt');
}

module.exports = { test, run: () => run(World), within, subscribe, send };
