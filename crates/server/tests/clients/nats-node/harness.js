// What cases of nats.js may use.
'use strict';

const { connect } = require('@nats-io/transport-node');
const { execFileSync } = require('node:child_process');
const crypto = require('node:crypto');
const net = require('node:net');
const { test, within, run, PATIENCE_MS, SILENCE_MS } = require('../shared/cases');

const URL = process.env.NATS_URL || 'nats://127.0.0.1:4222';

// One iterator for each subscription: the library gives out no second one.
const iterators = new WeakMap();

/** What one case uses; everything is closed afterwards. */
class World {
  constructor() {
    this.clients = [];
    this.relays = [];
  }

  /** A client; the library begins TLS wherever it can, unless it is told not to. */
  async connect(options = {}) {
    const plain = { servers: URL, reconnect: false, timeout: PATIENCE_MS, tls: null };
    const client = await connect({ ...plain, ...options });
    this.clients.push(client);
    return client;
  }

  /** A relay in front of the broker, whose connections can be cut. */
  async relay() {
    const [host, port] = URL.replace('nats://', '').split(':');
    const open = new Set();
    const server = net.createServer((here) => {
      const there = net.connect(Number(port), host);
      for (const socket of [here, there]) {
        open.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          here.destroy();
          there.destroy();
        });
      }
      here.pipe(there).pipe(here);
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const relay = {
      url: `nats://127.0.0.1:${server.address().port}`,
      cut: () => open.forEach((socket) => socket.destroy()),
      close: () => server.close(),
    };
    this.relays.push(relay);
    return relay;
  }

  subject() {
    return `n.${crypto.randomUUID()}`;
  }

  async close() {
    await Promise.all(this.clients.map((client) => client.close().catch(() => {})));
    for (const relay of this.relays) {
      relay.close();
      relay.cut();
    }
  }
}

/** The next messages of a subscription. */
function take(subscription, count) {
  const got = [];
  const iterator = iterators.get(subscription) || subscription[Symbol.asyncIterator]();
  iterators.set(subscription, iterator);
  const all = (async () => {
    while (got.length < count) {
      const { value, done } = await iterator.next();
      if (done) throw new Error(`ended after ${got.length} of ${count} messages`);
      got.push(value);
    }
    return got;
  })();
  return within(all, `${count} messages`);
}

/** Runs a command of the program against the running broker. */
function administer(...command) {
  administerWith('', ...command);
}

/** The same, with that line on the standard input. */
function administerWith(input, ...command) {
  const whole = [...command, '--data', process.env.BROKER_TEST_DATA];
  execFileSync(process.env.BROKER_TEST_PROGRAM, whole, { input });
}

const runAll = () => run(World);
module.exports = { test, run: runAll, within, take, administer, administerWith, PATIENCE_MS, SILENCE_MS };
