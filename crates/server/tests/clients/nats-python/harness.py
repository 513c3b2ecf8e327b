"""Cases of nats.py, what a case may use, and the one loop that runs them all."""

import asyncio
import os
import subprocess
import sys
import traceback
import uuid

import nats
import pika

URL = os.environ.get("NATS_URL", "nats://127.0.0.1:4222")
AMQP_URL = os.environ.get("AMQP_URL", "")
# Another server than Angarium: what only Angarium has is then skipped.
PEER = os.environ.get("BROKER_TEST_PEER", "")
# The program under test and its data folder, to administer it as an operator does.
PROGRAM = os.environ.get("BROKER_TEST_PROGRAM", "")
DATA = os.environ.get("BROKER_TEST_DATA", "")
# Where clients begin with the TLS handshake, and a folder with certificates: authority.pem.
TLS_PORT = os.environ.get("BROKER_TEST_NATS_TLS_PORT", "")
CERTIFICATES = os.environ.get("BROKER_TEST_CERTIFICATES", "")
# The longest wait for anything that must come.
PATIENCE_S = 10.0
# How long nothing must come before it counts as "does not come".
SILENCE_S = 0.2

CASES = []


def case(ours=False, needs=True):
    """Registers a test case; `ours`: only Angarium has what it shows; `needs`: what it needs is there."""

    def register(function):
        reason = f"not offered by {PEER}" if ours and PEER else "" if needs else "the environment lacks it"
        CASES.append((f"{function.__module__}.{function.__name__}", function, reason))
        return function

    return register


class World:
    """What one case uses. Everything it opens is closed."""

    def __init__(self):
        self.clients = []
        self.relays = []
        self.amqp = []
        # What clients were told of asynchronously.
        self.errors = []

    async def connect(self, url=URL, **options):
        """A client; errors that it hears of are kept."""

        async def keep(error):
            self.errors.append(error)

        options.setdefault("error_cb", keep)
        options.setdefault("allow_reconnect", False)
        options.setdefault("connect_timeout", PATIENCE_S)
        client = await nats.connect(url, **options)
        self.clients.append(client)
        return client

    async def raw(self):
        """A plain connection, past its INFO."""
        host, port = address()
        reader, writer = await asyncio.open_connection(host, port)
        self.relays.append(writer)
        info = await within(reader.readline())
        assert info.startswith(b"INFO {"), info
        return reader, writer

    async def relay(self):
        """A relay in front of the broker, whose connections can be cut."""
        relay = Relay()
        await relay.start()
        self.relays.append(relay)
        return relay

    def channel(self):
        """A channel of pika's."""
        connection = pika.BlockingConnection(pika.URLParameters(AMQP_URL))
        self.amqp.append(connection)
        return connection.channel()

    def name(self, prefix="t"):
        """A subject that nobody else uses."""
        return f"{prefix}.{uuid.uuid4().hex[:12]}"

    async def close(self):
        for client in self.clients:
            await client.close()
        for relay in self.relays:
            relay.close()
        for connection in self.amqp:
            if connection.is_open:
                connection.close()


class Relay:
    """Passes bytes on, until it is told to cut."""

    def __init__(self):
        self.server = None
        self.writers = []
        self.url = ""

    async def start(self):
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def accept(self, reader, writer):
        there = await asyncio.open_connection(*address())
        self.writers += [writer, there[1]]
        await asyncio.gather(self.pass_on(reader, there[1]), self.pass_on(there[0], writer))

    async def pass_on(self, reader, writer):
        try:
            while block := await reader.read(65536):
                writer.write(block)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    def cut(self):
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

    def close(self):
        self.server.close()
        self.cut()


def address():
    """Where the broker listens for NATS clients."""
    host, port = URL.rsplit("/", 1)[1].rsplit("@", 1)[-1].split(":")
    return host, int(port)


async def within(awaitable, seconds=PATIENCE_S):
    """Fails when it takes too long."""
    return await asyncio.wait_for(awaitable, seconds)


async def next_data(subscription, count=1):
    """The payloads of the next messages."""
    return [(await within(subscription.next_msg(timeout=PATIENCE_S))).data for _ in range(count)]


async def silent(subscription):
    """Fails when another message comes."""
    try:
        message = await subscription.next_msg(timeout=SILENCE_S)
    except nats.errors.TimeoutError:
        return
    raise AssertionError(f"came, and should not: {message.subject} {message.data!r}")


async def until(condition, what):
    """Waits for a condition to hold."""
    for _ in range(int(PATIENCE_S / 0.01)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"waited {PATIENCE_S} s in vain for {what}")


def administer(*arguments):
    """Runs a command of the program against the running broker."""
    command = [PROGRAM, *arguments, "--data", DATA]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert result.returncode == 0, f"{arguments}: {result.stderr.strip()}"
    return result.stdout


async def run():
    """Runs all cases, or those whose name contains an argument; returns the number that failed."""
    failed = 0
    chosen = sys.argv[1:]
    for name, function, reason in CASES:
        if chosen and not any(part in name for part in chosen):
            continue
        if reason:
            print(f"skip {name}: {reason}")
            continue
        world = World()
        try:
            await within(function(world), 6 * PATIENCE_S)
            await within(world.close())
            print(f"pass {name}")
        except Exception as error:  # Whatever it is, it is this case's failure and the suite goes on.
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}")
            traceback.print_exc(limit=-4)
            try:
                await within(world.close())
            except Exception as late:
                print(f"note cleaning up after {name}: {late!r}")
    return failed
