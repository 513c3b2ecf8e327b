"""What a case of nats.py may use, and how one is run."""

import asyncio
import os
import uuid

import cases
import nats
import pika
from cases import PATIENCE_S, SILENCE_S

URL = os.environ.get("NATS_URL", "nats://127.0.0.1:4222")
AMQP_URL = os.environ.get("AMQP_URL", "")
# Where clients begin with the TLS handshake.
TLS_PORT = os.environ.get("BROKER_TEST_NATS_TLS_PORT", "")


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
    """Passes bytes on, until it is told to cut, or to pass nothing more to clients."""

    def __init__(self):
        self.server = None
        self.flows = asyncio.Event()
        self.flows.set()
        self.writers = []
        self.url = ""

    async def start(self):
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def accept(self, reader, writer):
        there = await asyncio.open_connection(*address())
        self.writers += [writer, there[1]]
        await asyncio.gather(self.pass_on(reader, there[1]), self.pass_on(there[0], writer, self.flows))

    async def pass_on(self, reader, writer, flows=None):
        try:
            while block := await reader.read(65536):
                if flows:
                    await flows.wait()
                writer.write(block)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    def stall(self):
        self.flows.clear()

    def resume(self):
        self.flows.set()

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


async def settle(client):
    """Has all shards of the broker know what the client has subscribed to, and have what it has published.

    The first PING goes out before what the client has not written yet, and the second one behind it.
    """
    await client.flush()
    await client.flush()


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


async def perform(function):
    """Runs one case."""
    world = World()
    try:
        await within(function(world), 6 * PATIENCE_S)
    except Exception:
        try:
            await within(world.close())
        except Exception as late:
            print(f"note cleaning up: {late!r}")
        raise
    await within(world.close())


def run():
    """Runs the cases; returns how many failed."""
    return cases.run(lambda function: asyncio.run(perform(function)))
