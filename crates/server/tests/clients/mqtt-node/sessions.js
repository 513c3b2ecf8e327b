// Sessions that outlive connections, wills, takeovers, and connections that are cut amid handshakes.
'use strict';

const assert = require('node:assert/strict');
const { test, within, VERSIONS } = require('./harness');

/** Messages that are published while connections are cut. */
const CUT_MESSAGES = 300;

for (const version of VERSIONS) {
  test(`version ${version}: sessions collect what comes meanwhile`, async (world) => {
    const [name, topic] = [world.name(), world.name()];
    const first = await world.session(version, name);
    assert.equal(first.resumed, false);
    await first.subscribeAsync(topic, { qos: 2 });
    await first.endAsync();
    const publisher = await world.connect(version);
    for (const qos of [1, 2]) await publisher.publishAsync(topic, `${qos}`, { qos });
    const again = await world.session(version, name);
    assert.equal(again.resumed, true);
    assert.deepEqual(await again.inbox.payloads(2), ['1', '2']);
    await again.endAsync();
    const fresh = await world.connect(version, { clientId: name });
    assert.equal(fresh.resumed, false);
  });

  test(`version ${version}: what was not acknowledged comes again, by its numbers`, async (world) => {
    const [name, topic] = [world.name(), world.name()];
    const first = await world.session(version, name, { receiveMaximum: 100 });
    // The library answers once a message is handled, which these never are.
    const held = [];
    first.handleMessage = (packet) => held.push([packet.messageId, `${packet.payload}`]);
    await first.subscribeAsync(topic, { qos: 1 });
    const publisher = await world.connect(version);
    await publisher.publishAsync(topic, '0', { qos: 1 });
    await publisher.publishAsync(topic, '1', { qos: 2 });
    await first.inbox.take(1);
    first.stream.destroy();
    const again = await world.session(version, name);
    const got = await again.inbox.take(2);
    assert.deepEqual(got.map((packet) => `${packet.payload}`), ['0', '1']);
    assert.deepEqual([got[0].messageId, got[0].dup], [held[0][0], true]);
  });

  test(`version ${version}: wills come where connections are lost, and at a takeover`, async (world) => {
    const topic = world.name();
    const watcher = await world.connect(version);
    await watcher.subscribeAsync(topic, { qos: 1 });
    const will = { topic, payload: 'gone', qos: 1 };
    const lost = await world.connect(version, { will });
    lost.stream.destroy();
    assert.deepEqual(await watcher.inbox.payloads(1), ['gone']);
    const left = await world.connect(version, { will });
    await left.endAsync();
    await watcher.inbox.silent();
    const older = await world.connect(version, { will });
    const closed = new Promise((resolve) => older.once('close', resolve));
    await world.connect(version, { clientId: older.options.clientId });
    await within(closed, 'the end of the older connection');
    assert.deepEqual(await watcher.inbox.payloads(1), ['gone']);
  });

  test(`version ${version}: nothing comes twice or not at all where connections are cut`, async (world) => {
    const relay = await world.relay();
    const topic = world.name();
    const again = { port: relay.port, reconnectPeriod: 20 };
    const client = await world.session(version, world.name(), again);
    await client.subscribeAsync(topic, { qos: 2 });
    const publisher = await world.session(version, world.name(), again);
    const cuts = setInterval(relay.cut, 150);
    const handshakes = [];
    for (let number = 0; number < CUT_MESSAGES; number++) {
      // What the library is given while it connects again it may drop, with an error.
      const published = publisher.publishAsync(topic, `${number}`, { qos: 2 });
      handshakes.push(published.then(() => `${number}`, () => null));
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
    clearInterval(cuts);
    const done = await within(Promise.all(handshakes), 'the end of all handshakes');
    const confirmed = done.filter((number) => number !== null);
    assert.ok(confirmed.length > CUT_MESSAGES / 10);
    const got = await client.inbox.payloads(confirmed.length);
    await client.inbox.silent();
    assert.equal(new Set(got).size, got.length);
    assert.deepEqual(confirmed.filter((number) => !got.includes(number)), []);
  });
}

test('version 5: a will waits, and does not come where its client is back', async (world) => {
  const [topic, name] = [world.name(), world.name()];
  const watcher = await world.connect(5);
  await watcher.subscribeAsync(topic, { qos: 1 });
  const will = { topic, payload: 'gone', qos: 1, properties: { willDelayInterval: 1 } };
  const lost = await world.session(5, name, { will });
  lost.stream.destroy();
  const back = await world.session(5, name, { will });
  assert.equal(back.resumed, true);
  await new Promise((resolve) => setTimeout(resolve, 1_300));
  await watcher.inbox.silent();
  back.stream.destroy();
  assert.deepEqual(await watcher.inbox.payloads(1), ['gone']);
});
