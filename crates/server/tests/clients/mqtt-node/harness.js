// What cases of MQTT.js may use.
'use strict';

const mqtt = require('mqtt');
const crypto = require('node:crypto');
const net = require('node:net');
const { test, within, run, SILENCE_MS } = require('../shared/cases');

const PORT = Number(process.env.BROKER_TEST_MQTT_PORT || 1883);
/** The versions as the library counts them: 3.1.1 and 5. */
const VERSIONS = [4, 5];

/** Messages of a client, in their order, with somebody who waits for them. */
class Inbox {
  constructor(client) {
    this.packets = [];
    this.wake = () => {};
    client.on('message', (_topic, _payload, packet) => {
      this.packets.push(packet);
      this.wake();
    });
  }

  /** The next packets. */
  async take(count) {
    const enough = async () => {
      while (this.packets.length < count) await new Promise((resolve) => (this.wake = resolve));
      return this.packets.splice(0, count);
    };
    return within(enough(), `${count} messages`);
  }

  /** The payloads of the next packets. */
  async payloads(count) {
    return (await this.take(count)).map((packet) => packet.payload.toString());
  }

  /** Fails when another message comes. */
  async silent() {
    await new Promise((resolve) => setTimeout(resolve, SILENCE_MS));
    if (this.packets.length) throw new Error(`came, and should not: ${this.packets[0].payload}`);
  }
}

/** What one case uses; everything is closed afterwards. */
class World {
  constructor() {
    this.clients = [];
    this.relays = [];
  }

  /** A connected client with an inbox; it stays away once its connection is lost. */
  async connect(version, options = {}) {
    const common = { protocolVersion: version, reconnectPeriod: 0, clientId: this.name() };
    const client = mqtt.connect({ host: '127.0.0.1', port: PORT, ...common, ...options });
    client.inbox = new Inbox(client);
    this.clients.push(client);
    await within(
      new Promise((resolve, reject) => {
        client.once('error', reject);
        client.once('connect', (connack) => {
          client.resumed = connack.sessionPresent;
          client.off('error', reject);
          client.on('error', () => {});
          resolve();
        });
      }),
      'a connection',
    );
    return client;
  }

  /** A client of a session that is kept while it is away. */
  session(version, clientId, options = {}) {
    const properties = version === 5 ? { sessionExpiryInterval: 600 } : undefined;
    return this.connect(version, { clean: false, clientId, properties, ...options });
  }

  /** A relay in front of the broker, whose connections can be cut. */
  async relay() {
    const open = new Set();
    const server = net.createServer((here) => {
      const there = net.connect(PORT, '127.0.0.1');
      for (const socket of [here, there]) {
        open.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          open.delete(socket);
          here.destroy();
          there.destroy();
        });
      }
      here.pipe(there).pipe(here);
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const relay = {
      port: server.address().port,
      cut: () => open.forEach((socket) => socket.destroy()),
      close: () => server.close(),
    };
    this.relays.push(relay);
    return relay;
  }

  name() {
    return `js-${crypto.randomUUID()}`;
  }

  async close() {
    for (const relay of this.relays) {
      relay.close();
      relay.cut();
    }
    await Promise.all(this.clients.map((client) => client.endAsync(true).catch(() => {})));
  }
}

module.exports = { test, run: () => run(World), within, PORT, VERSIONS };
