// What cases of amqplib may use.
'use strict';

const amqp = require('amqplib');
const crypto = require('node:crypto');
const { test, within, run } = require('../shared/cases');

const URL = process.env.AMQP_URL || 'amqp://guest:guest@127.0.0.1:5672/%2f';

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

module.exports = { test, run: () => run(World), within, collect };
