"""What a case of pika may use, and how one is run."""

import os
import socket
import time
import uuid

import cases
import pika
from cases import PATIENCE_S, SILENCE_S
from pika.exceptions import AMQPError

URL = os.environ.get("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/%2f")
# Where it takes TLS.
TLS_PORT = os.environ.get("BROKER_TEST_TLS_PORT", "")
# Another broker whose data is on a small disk, and the folder where that is mounted.
SMALL_URL = os.environ.get("BROKER_TEST_SMALL_URL", "")
SMALL_DISK = os.environ.get("BROKER_TEST_SMALL_DISK", "")


class World:
    """What one case uses. Everything it opens is closed, and everything it names is deleted."""

    def __init__(self):
        self._connections = []
        self._queues = []
        self._exchanges = []

    def connect(self, **changes):
        """A connection; `changes` are attributes of pika's parameters."""
        parameters = pika.URLParameters(URL)
        parameters.socket_timeout = PATIENCE_S
        parameters.blocked_connection_timeout = PATIENCE_S
        for name, value in changes.items():
            setattr(parameters, name, value)
        connection = pika.BlockingConnection(parameters)
        self._connections.append(connection)
        # A broker that never answers must fail the case, not hang the suite.
        connection.call_later(6 * PATIENCE_S, connection.close)
        return connection

    def channel(self, confirms=False, **changes):
        """A channel on a connection of its own."""
        channel = self.connect(**changes).channel()
        if confirms:
            channel.confirm_delivery()
        return channel

    def cut(self, connection):
        """Ends a connection as a crash of its client would: without a word."""
        connection._impl._transport._sock.shutdown(socket.SHUT_RDWR)
        self._connections.remove(connection)

    def name(self, prefix="t"):
        """A name that nobody else uses."""
        return f"{prefix}-{uuid.uuid4().hex[:12]}"

    def queue(self, channel, arguments=None, **options):
        """Declares a queue of a fresh name."""
        name = self.name("q")
        channel.queue_declare(name, arguments=arguments, **options)
        self._queues.append(name)
        return name

    def exchange(self, channel, kind, arguments=None, **options):
        """Declares an exchange of a fresh name."""
        name = self.name("x")
        channel.exchange_declare(name, kind, arguments=arguments, **options)
        self._exchanges.append(name)
        return name

    def close(self):
        """Cleans up; what is gone already stays gone."""
        for connection in self._connections:
            try:
                connection.close()
            except AMQPError:
                pass
        connection = pika.BlockingConnection(pika.URLParameters(URL))
        channel = connection.channel()
        for name in self._queues:
            channel.queue_delete(name)
        for name in self._exchanges:
            channel.exchange_delete(name)
        connection.close()


class Inbox:
    """Consumes a queue and keeps what arrives as (method, properties, body)."""

    def __init__(self, channel, queue, auto_ack=False, **options):
        self.channel = channel
        self.got = []
        self.cancelled = False
        channel.add_on_cancel_callback(self._cancel)
        self.tag = channel.basic_consume(queue, self._keep, auto_ack=auto_ack, **options)

    def _keep(self, _channel, method, properties, body):
        self.got.append((method, properties, body))

    def _cancel(self, _frame):
        self.cancelled = True

    def bodies(self):
        """The bodies so far, in order."""
        return [body for _, _, body in self.got]

    def wait(self, count):
        """Waits until `count` messages are there and returns them."""
        wait_for(self.channel.connection, lambda: len(self.got) >= count, f"{count} messages")
        return self.got

    def quiet(self):
        """Lets what might still arrive arrive, and returns all bodies."""
        self.channel.connection.process_data_events(time_limit=SILENCE_S)
        return self.bodies()

    def ack_all(self):
        """Acknowledges everything so far."""
        self.channel.basic_ack(self.got[-1][0].delivery_tag, multiple=True)


def wait_for(connection, condition, what):
    """Serves the connection until the condition holds, at most PATIENCE_S."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE_S} s in vain for {what}"
        connection.process_data_events(time_limit=0.05)


def get_until(channel, queue, auto_ack=True):
    """basic.get, again and again until there is a message."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        method, properties, body = channel.basic_get(queue, auto_ack=auto_ack)
        if method is not None:
            return method, properties, body
        channel.connection.process_data_events(time_limit=0.01)
    raise AssertionError(f"nothing in '{queue}' after {PATIENCE_S} s")


def count_until(channel, queue, expected):
    """Asks for the number of ready messages until it is as expected."""
    end = time.monotonic() + PATIENCE_S
    while True:
        found = channel.queue_declare(queue, passive=True).method.message_count
        if found == expected:
            return
        assert time.monotonic() < end, f"'{queue}' holds {found} messages, not {expected}"
        channel.connection.process_data_events(time_limit=0.01)


def drain(channel, queue):
    """Takes everything that is ready, and returns the bodies in order."""
    bodies = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return bodies
        bodies.append(body)


def publish(channel, queue, *bodies, **properties):
    """Publishes to a queue by the default exchange."""
    for body in bodies:
        channel.basic_publish("", queue, body, pika.BasicProperties(**properties))


def refused(code, exception, action):
    """Asserts that `action` ends its channel or connection with that reply code; returns the text."""
    try:
        action()
    except exception as error:
        assert error.reply_code == code, f"reply code {error.reply_code} {error.reply_text!r}, not {code}"
        assert len(error.reply_text) > 10, f"the text {error.reply_text!r} does not say why"
        return error.reply_text
    raise AssertionError(f"was not refused with {code}")


def perform(function):
    """Runs one case."""
    world = World()
    try:
        function(world)
    except Exception:
        try:
            world.close()
        except AMQPError:
            pass
        raise
    world.close()


def run():
    """Runs the cases; returns how many failed."""
    # Where no broker can be reached, one plain line says more than that of every case.
    try:
        pika.BlockingConnection(pika.URLParameters(URL)).close()
    except AMQPError as error:
        print(f"FAIL cannot use the broker at {URL}: {error!r}")
        return 1
    return cases.run(perform)
