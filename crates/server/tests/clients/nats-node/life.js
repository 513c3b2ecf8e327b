// From connecting to leaving with nats.js.
'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const { createUser } = require('@nats-io/nkeys');
const { nkeyAuthenticator, AuthorizationError, PermissionViolationError } = require(
  '@nats-io/transport-node',
);
const { test, within, take, administer, administerWith } = require('./harness');

const TLS_PORT = process.env.BROKER_TEST_NATS_TLS_PORT;

function authority() {
  return path.join(process.env.BROKER_TEST_CERTIFICATES || '', 'authority.pem');
}

test('the server says what it is', async (world) => {
  const client = await world.connect({ name: 'suite' });
  assert.equal(client.info.proto, 1);
  assert.equal(client.info.headers, true);
  assert.equal(client.info.max_payload, 1 << 20);
  assert.ok(!client.info.jetstream);
  assert.ok((await client.rtt()) >= 0);
});

test('draining handles what has arrived', async (world) => {
  const [publisher, client] = [await world.connect(), await world.connect()];
  const subject = world.subject();
  let seen = 0;
  client.subscribe(subject, { callback: () => (seen += 1) });
  await client.flush();
  for (let number = 0; number < 1_000; number++) publisher.publish(subject);
  await publisher.flush();
  await within(client.drain(), 'the drain');
  assert.equal(seen, 1_000);
  assert.ok(client.isClosed());
});

test('a client that lost its connection comes back', async (world) => {
  const relay = await world.relay();
  const client = await world.connect({
    servers: relay.url,
    reconnect: true,
    reconnectTimeWait: 20,
    maxReconnectAttempts: 500,
  });
  const events = client.status()[Symbol.asyncIterator]();
  const publisher = await world.connect();
  const subject = world.subject();
  const subscription = client.subscribe(subject);
  await client.flush();
  for (const body of ['1', '2']) {
    publisher.publish(subject, body);
    assert.equal((await take(subscription, 1))[0].string(), body);
    relay.cut();
    const back = async () => {
      while ((await events.next()).value.type !== 'reconnect');
    };
    await within(back(), 'the client to be back');
    await client.flush();
  }
});

test('a wrong password is refused', async (world) => {
  await assert.rejects(world.connect({ user: 'guest', pass: 'wrong' }), AuthorizationError);
  await world.connect({ user: 'guest', pass: 'guest' });
});

test(
  'rights are checked',
  async (world) => {
    administerWith('pw', 'user', 'add', 'node-reader');
    administer('permission', 'set', 'node-reader', '--write', '', '--configure', '', '--read', '.*');
    const client = await world.connect({ user: 'node-reader', pass: 'pw' });
    const events = client.status()[Symbol.asyncIterator]();
    const subject = world.subject();
    client.publish(subject, 'no');
    const { value } = await within(events.next(), 'an error');
    assert.equal(value.type, 'error');
    assert.ok(value.error instanceof PermissionViolationError, value.error.stack);
    assert.equal(value.error.subject, subject);
    administer('user', 'delete', 'node-reader');
  },
  'BROKER_TEST_PROGRAM',
);

test(
  'an nkey signs the nonce',
  async (world) => {
    const pair = createUser();
    administer('user', 'add', pair.getPublicKey(), '--no-password');
    administer('permission', 'set', pair.getPublicKey());
    const client = await world.connect({ authenticator: nkeyAuthenticator(pair.getSeed()) });
    await client.flush();
    const other = nkeyAuthenticator(createUser().getSeed());
    await assert.rejects(world.connect({ authenticator: other }), AuthorizationError);
    administer('user', 'delete', pair.getPublicKey());
  },
  'BROKER_TEST_PROGRAM',
);

/** Publishes and gets something longer than a TLS record. */
async function roundTrip(world, client) {
  const subject = world.subject();
  const subscription = client.subscribe(subject);
  const body = 'more than one record '.repeat(10_000);
  client.publish(subject, body);
  assert.equal((await take(subscription, 1))[0].string(), body);
}

test(
  'tls begins after info',
  async (world) => {
    const client = await world.connect({ tls: { caFile: authority() } });
    assert.equal(client.info.tls_required, true);
    await roundTrip(world, client);
  },
  'BROKER_TEST_NATS_TLS_PORT',
);

test(
  'tls begins before info',
  async (world) => {
    const servers = `127.0.0.1:${TLS_PORT}`;
    const client = await world.connect({ servers, tls: { caFile: authority(), handshakeFirst: true } });
    await roundTrip(world, client);
  },
  'BROKER_TEST_NATS_TLS_PORT',
);

test(
  'a broker of another authority is not trusted',
  async (world) => {
    await assert.rejects(world.connect({ tls: {} }));
  },
  'BROKER_TEST_NATS_TLS_PORT',
);
