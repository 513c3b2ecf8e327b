"""From connecting to leaving: INFO, drain, reconnect."""

import asyncio

from cases import case
from harness import next_data, settle, until, within


@case()
async def the_server_says_what_it_is(world):
    client = await world.connect()
    info = client._server_info
    assert info["proto"] == 1 and info["headers"] is True, info
    assert client.max_payload == 1 << 20
    assert not info.get("jetstream", False)
    assert client.client_id > 0
    assert client.connected_server_version.major >= 2


@case()
async def draining_handles_what_has_arrived(world):
    publisher, client = await world.connect(), await world.connect()
    subject = world.name()
    got = []

    async def slowly(message):
        await asyncio.sleep(0.002)
        got.append(message.data)

    await client.subscribe(subject, cb=slowly)
    await settle(client)
    for number in range(100):
        await publisher.publish(subject, b"%d" % number)
    await settle(publisher)
    await client.flush()
    await client.drain()
    assert client.is_closed
    assert len(got) == 100, len(got)


@case()
async def a_drained_subscription_gets_no_more(world):
    publisher, client = await world.connect(), await world.connect()
    subject = world.name()
    got = []

    async def keep(message):
        got.append(message.data)

    subscription = await client.subscribe(subject, cb=keep)
    await settle(client)
    await publisher.publish(subject, b"1")
    await settle(publisher)
    await client.flush()
    await subscription.drain()
    await publisher.publish(subject, b"2")
    await settle(publisher)
    await client.flush()
    assert got == [b"1"], got


@case()
async def a_client_that_lost_its_connection_comes_back(world):
    relay = await world.relay()
    events = []

    async def lost():
        events.append("lost")

    async def back():
        events.append("back")

    client = await world.connect(
        relay.url,
        allow_reconnect=True,
        reconnect_time_wait=0.05,
        max_reconnect_attempts=100,
        disconnected_cb=lost,
        reconnected_cb=back,
    )
    publisher = await world.connect()
    subject = world.name()
    subscription = await client.subscribe(subject)
    await settle(client)
    for number in range(3):
        await publisher.publish(subject, b"%d" % number)
        assert await next_data(subscription) == [b"%d" % number]
        relay.cut()
        await until(lambda count=number + 1: events.count("back") == count, "the client to be back")
        await settle(client)
    assert events == ["lost", "back"] * 3, events


@case()
async def who_publishes_and_goes_at_once_is_heard(world):
    client, subject = await world.connect(), world.name()
    subscription = await client.subscribe(subject)
    await settle(client)
    hello = b'CONNECT {"verbose":false}\r\n'
    for _ in range(30):
        _, writer = await world.raw()
        writer.write(hello + b"PUB %s 2\r\nhi\r\n" % subject.encode())
        writer.close()
        await writer.wait_closed()
    assert await next_data(subscription, 30) == [b"hi"] * 30
    for _ in range(30):
        reader, writer = await world.raw()
        writer.write(hello + b"PING\r\n")
        writer.write_eof()
        got = await within(reader.read())
        assert b"PONG\r\n" in got, got
