// Cases of amqplib, what they may use, and the loop that runs them.
'use strict';

const amqp = require('amqplib');
const crypto = require('node:crypto');

const URL = process.env.AMQP_URL || 'amqp://guest:guest@127.0.0.1:5672/%2f';
// The longest wait for anything that must come.
const PATIENCE_MS = 10_000;

const cases = [];

/** Registers a case. */
function test(name, body) {
  cases.push({ name, body });
}

/** What one case uses; everything is closed and deleted afterwards. */
class World {
  constructor() {
    this.connections = [];
    this.queues = [];
  }

  async connect(options) {
    const connection = await amqp.connect(URL, options);
    connection.on('error', () => {});
    this.connections.push(connection);
    return connection;
  }

  async channel(confirms = false) {
    const connection = await this.connect();
    const channel = await (confirms ? connection.createConfirmChannel() : connection.createChannel());
    channel.failed = new Promise((resolve) => channel.on('error', resolve));
    return channel;
  }

  async queue(channel, options) {
    const { queue } = await channel.assertQueue(this.name(), options);
    this.queues.push(queue);
    return queue;
  }

  name() {
    return `n-${crypto.randomUUID()}`;
  }

  async close() {
    const quietly = (promise) => promise.catch(() => {});
    await Promise.all(this.connections.map((connection) => quietly(connection.close())));
    const connection = await amqp.connect(URL);
    const channel = await connection.createChannel();
    for (const queue of this.queues) await channel.deleteQueue(queue);
    await connection.close();
  }
}

/** Fails when the promise takes too long. */
function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Consumes until `count` messages came; resolves with them. */
function collect(channel, queue, count, options) {
  const got = [];
  const all = new Promise((resolve, reject) => {
    const keep = (message) => {
      got.push(message);
      if (got.length === count) resolve(got);
    };
    channel.consume(queue, keep, options).catch(reject);
  });
  return within(all, `${count} messages`);
}

async function run() {
  let failed = 0;
  for (const { name, body } of cases) {
    const world = new World();
    try {
      await within(body(world), 'the end of the case');
      await within(world.close(), 'cleaning up');
      console.log(`pass ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${name}: ${error.message}`);
      console.error(error.stack);
      await within(world.close(), 'cleaning up').catch(() => {});
    }
  }
  process.exit(failed ? 1 : 0);
}

module.exports = { test, run, within, collect };
