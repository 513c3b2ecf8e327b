// What cases of WebSocket clients may use.
'use strict';

const crypto = require('node:crypto');
const WebSocket = require('ws');
const { test, within, run } = require('../shared/cases');

const PORT = Number(process.env.BROKER_TEST_WS_PORT || 8083);
// One where everything is spoken, with and without WebSocket.
const ANY_PORT = Number(process.env.BROKER_TEST_ANY_PORT || PORT);

// Libraries for browsers look for it there.
globalThis.WebSocket = WebSocket;

/** What one case uses; everything is closed afterwards. */
class World {
  constructor() {
    this.closers = [];
  }

  name() {
    return `ws-${crypto.randomUUID()}`;
  }

  /** Has something done when the case is over. */
  after(close) {
    this.closers.push(close);
  }

  /** A bare WebSocket that is open. */
  async open(path, protocols = [], options = {}) {
    const socket = new WebSocket(`ws://127.0.0.1:${PORT}${path}`, protocols, options);
    socket.binaryType = 'nodebuffer';
    this.after(() => socket.terminate());
    await within(once(socket, 'open'), 'the WebSocket');
    return socket;
  }

  async close() {
    await Promise.all(this.closers.map((close) => close()));
  }
}

/** The first such event; an error before it fails the case. */
function once(emitter, event) {
  return new Promise((resolve, reject) => {
    emitter.once(event, (...values) => resolve(values));
    emitter.once('error', reject);
  });
}

/** Things that arrive, and a function that waits for the next one. */
function inbox() {
  const [got, waiting] = [[], []];
  const put = (thing) => (waiting.length ? waiting.shift()(thing) : got.push(thing));
  const first = () => new Promise((resolve) => (got.length ? resolve(got.shift()) : waiting.push(resolve)));
  const next = () => within(first(), 'a message');
  return { put, next, got };
}

module.exports = {
  PORT,
  ANY_PORT,
  WebSocket,
  once,
  inbox,
  within,
  test: (name, body) => test(name, body),
  run: () => run(World),
};
