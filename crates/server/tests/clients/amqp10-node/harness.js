// What cases of rhea may use.
'use strict';

const assert = require('node:assert/strict');
const crypto = require('node:crypto');
const rhea = require('rhea');
const { test, within, run, SILENCE_MS } = require('../shared/cases');

const BROKER = new URL(process.env.AMQP_URL || 'amqp://guest:guest@127.0.0.1:5672/%2f');
// Another broker than Angarium: what only Angarium has is then skipped.
const OURS = process.env.BROKER_TEST_PEER ? 'BROKER_TEST_OURS' : '';

const { types } = rhea;
const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time));
const once = (emitter, event) => within(new Promise((resolve) => emitter.once(event, resolve)), event);

/** Waits until a condition holds. */
async function until(condition, what) {
  await within(
    (async () => {
      while (!condition()) await sleep(5);
    })(),
    what,
  );
}

/** What one case uses; everything is closed afterwards. */
class World {
  constructor() {
    this.connections = [];
  }

  name() {
    return `rhea-${crypto.randomUUID()}`;
  }

  /** Begins to connect. */
  dial(options = {}) {
    const container = rhea.create_container({ id: options.container_id || crypto.randomUUID() });
    const connection = container.connect({
      host: BROKER.hostname,
      port: Number(BROKER.port),
      username: BROKER.username,
      password: BROKER.password,
      reconnect: false,
      ...options,
    });
    // Without a listener, rhea throws what it is told where nobody waits for it.
    for (const event of ['connection_error', 'session_error', 'disconnected', 'error']) {
      connection.on(event, () => {});
    }
    container.on('error', () => {});
    this.connections.push(connection);
    return connection;
  }

  async connect(options) {
    const connection = this.dial(options);
    await once(connection, 'connection_open');
    return connection;
  }

  async session(connection) {
    const session = connection.create_session();
    session.open();
    await once(session, 'session_open');
    return session;
  }

  /** A receiver that keeps what it gets; it has no credit and settles nothing by itself. */
  async receiver(parent, source, options = {}) {
    const receiver = parent.open_receiver({ credit_window: 0, autoaccept: false, source, ...options });
    receiver.got = [];
    receiver.on('message', ({ message, delivery }) => receiver.got.push({ message, delivery }));
    receiver.on('receiver_error', () => {});
    await once(receiver, 'receiver_open');
    return receiver;
  }

  /** A sender that may send. */
  async sender(parent, target, options = {}) {
    const sender = parent.open_sender({ target, ...options });
    sender.on('sender_error', () => {});
    await once(sender, 'sendable');
    return sender;
  }

  /** Takes what is in a queue, by a connection of its own. */
  async drain(address, options) {
    const connection = await this.connect();
    const receiver = await this.receiver(connection, address, { autoaccept: true, ...options });
    receiver.add_credit(1000);
    receiver.drain_credit();
    await once(receiver, 'receiver_drained');
    connection.close();
    return receiver.got;
  }

  async close() {
    for (const connection of this.connections) connection.close();
  }
}

/** Sends messages one after the other; resolves with the deliveries when the broker has settled all. */
async function send(sender, ...messages) {
  const wrapped = messages.map((message) => (typeof message === 'object' ? message : { body: message }));
  const sent = wrapped.map((message) => sender.send(message));
  await until(() => sent.every((delivery) => delivery.remote_settled), 'outcomes');
  return sent;
}

/** The name of an outcome. */
function outcome(delivery) {
  return delivery.remote_state && delivery.remote_state.constructor.composite_type;
}

/** Waits for `count` messages of a receiver; resolves with them. */
async function take(receiver, count) {
  await until(() => receiver.got.length >= count, `${count} messages`);
  return receiver.got;
}

function bodies(got) {
  return got.map(({ message }) => message.body);
}

async function quiet(receiver) {
  const before = receiver.got.length;
  await sleep(SILENCE_MS);
  assert.equal(receiver.got.length, before, 'nothing else comes');
}

/** Sets a receiver's credit, which may be lower than it was. */
function setCredit(receiver, credit) {
  receiver.credit = credit;
  receiver.issue_flow = true;
  receiver.connection._register();
}

/** The error with which the broker ends a link that it does not take. */
async function refused(link) {
  const kind = link.is_receiver() ? 'receiver' : 'sender';
  await within(
    new Promise((resolve) => {
      link.once(`${kind}_error`, resolve);
    }),
    'a refusal',
  );
  return link.error;
}

/** Requests to a management node, in RabbitMQ's way: HTTP in messages. */
class Management {
  static async open(world) {
    const management = new Management();
    const connection = await world.connect();
    const options = {
      name: 'management-link-pair',
      source: { address: '/management' },
      target: { address: '/management' },
      snd_settle_mode: 1,
      properties: { paired: true },
    };
    // One after the other: rhea finds a link that is being opened by its name, which both have.
    management.sender = connection.open_sender(options);
    await once(management.sender, 'sender_open');
    management.receiver = connection.open_receiver(options);
    await once(management.receiver, 'receiver_open');
    await until(() => management.sender.sendable(), 'credit for requests');
    return management;
  }

  async request(method, path, body = null) {
    const id = crypto.randomUUID();
    const answer = new Promise((resolve) => {
      this.receiver.on('message', ({ message }) => {
        if (message.correlation_id === id) resolve(message);
      });
    });
    this.sender.send({ message_id: id, to: path, subject: method, reply_to: '$me', body });
    const message = await within(answer, `an answer to ${method} ${path}`);
    return { status: message.subject, body: message.body, properties: message.application_properties };
  }

  /** Declares a durable queue. */
  async queue(name, options = {}) {
    const body = { durable: true, exclusive: false, auto_delete: false, arguments: options };
    const { status } = await this.request('PUT', `/queues/${encodeURIComponent(name)}`, body);
    assert.equal(status, '201');
    return name;
  }
}

module.exports = {
  test, run: () => run(World), OURS, Management, assert, bodies, once, outcome, quiet, refused, rhea, send,
  setCredit, sleep, take, types, until, within,
};
