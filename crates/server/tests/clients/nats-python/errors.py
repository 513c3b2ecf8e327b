"""What clients hear when something is wrong."""

import asyncio

import nats
from cases import case
from harness import settle, until, within


async def talk(world, *lines):
    """Sends lines on a plain connection, and returns all that comes until the broker closes it."""
    reader, writer = await world.raw()
    writer.write(b"".join(line + b"\r\n" for line in lines))
    return await within(reader.read())


@case()
async def wrong_input_is_told_and_ends_the_connection(world):
    hello = b'CONNECT {"verbose":false}'
    for lines, error in (
        ((hello, b"GET / HTTP/1.1"), b"-ERR 'Unknown Protocol Operation'\r\n"),
        ((hello, b"PUB a 1000000000000", b""), b""),
        ((hello, b"PUB a 99999999"), b"-ERR 'Maximum Payload Violation'\r\n"),
        ((hello, b"SUB " + b"x" * 5000 + b" 1"), b"-ERR 'maximum control line exceeded'\r\n"),
    ):
        got = await talk(world, *lines)
        assert error in got, f"{lines[1][:40]}: {got}"


@case()
async def a_person_at_a_terminal_needs_no_connect(world):
    reader, writer = await world.raw()
    subject = world.name().encode()
    writer.write(b"sub %s 1\r\npub %s 2\r\nhi\r\nping\r\n" % (subject, subject))
    got = b""
    while not got.endswith(b"PONG\r\n"):
        got += await within(reader.read(1000))
    assert got == b"+OK\r\n+OK\r\nMSG %s 1 2\r\nhi\r\nPONG\r\n" % subject, got


@case()
async def what_is_no_subject_is_told(world):
    reader, writer = await world.raw()
    writer.write(b'CONNECT {"verbose":false,"pedantic":true}\r\nSUB a..b 1\r\nPUB a.* 1\r\nx\r\nPING\r\n')
    got = b""
    while not got.endswith(b"PONG\r\n"):
        got += await within(reader.read(1000))
    assert got == b"-ERR 'Invalid Subject'\r\n-ERR 'Invalid Publish Subject'\r\nPONG\r\n", got


@case()
async def a_payload_beyond_the_limit_is_refused(world):
    client = await world.connect()
    try:
        await client.publish(world.name(), b"x" * (client.max_payload + 1))
    except nats.errors.MaxPayloadError:
        return
    raise AssertionError("too large, and taken")


@case()
async def a_client_that_stops_reading_is_ended_and_others_are_not(world):
    publisher, other = await world.connect(), await world.connect()
    subject = world.name()
    reader, writer = await world.raw()
    writer.write(b'CONNECT {"verbose":false}\r\nSUB %s 1\r\nPING\r\n' % subject.encode())
    assert b"PONG" in await within(reader.read(100))
    reader._transport.pause_reading()
    seen = 0

    async def count(_message):
        nonlocal seen
        seen += 1

    await other.subscribe(subject, cb=count)
    await settle(other)
    # More than the broker and all buffers on the way keep for one client.
    for _ in range(150):
        await publisher.publish(subject, b"x" * 1_000_000)
        await publisher.flush()
    await until(lambda: seen == 150, "all messages for the client that reads")
    reader._transport.resume_reading()
    rest = await within(reader.read(-1))
    assert len(rest) < 150_000_000
    await asyncio.sleep(0)
