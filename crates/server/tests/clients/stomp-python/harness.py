"""What a case of stomp.py may use, and how one is run."""

import os
import queue
import uuid

import cases
import pika
import stomp
from cases import PATIENCE_S, SILENCE_S

PORT = int(os.environ.get("BROKER_TEST_STOMP_PORT", "61613"))
TLS_PORT = os.environ.get("BROKER_TEST_STOMPS_PORT", "")
AMQP_URL = os.environ.get("AMQP_URL", "")
VERSIONS = {"1.0": stomp.StompConnection10, "1.1": stomp.StompConnection11, "1.2": stomp.StompConnection12}


class Listener(stomp.ConnectionListener):
    """Keeps what comes."""

    def __init__(self):
        self.messages = queue.Queue()
        self.receipts = queue.Queue()
        self.errors = queue.Queue()
        self.ends = queue.Queue()

    def on_message(self, frame):
        self.messages.put(frame)

    def on_receipt(self, frame):
        self.receipts.put(frame.headers["receipt-id"])

    def on_error(self, frame):
        self.errors.put(frame)

    def on_disconnected(self):
        self.ends.put(None)


class Client:
    """A connection, with what it gets."""

    def __init__(self, version, port=PORT, user="guest", password="guest", headers=None, **options):
        self.version = version
        self.connection = VERSIONS[version]([("127.0.0.1", port)], reconnect_attempts_max=1, **options)
        self.got = Listener()
        self.connection.set_listener("", self.got)
        self.credentials = (user, password)
        self.headers = headers or {}

    def connect(self):
        user, password = self.credentials
        self.connection.connect(user, password, wait=True, headers=self.headers)
        return self

    def send(self, destination, body, **headers):
        """Sends with headers, whose names have `_` for `-`."""
        self.connection.send(destination, body, headers=named(headers))

    def subscribe(self, destination, id="0", ack="auto", **headers):
        """Subscribes, and waits until the broker has said that it did."""
        headers = {**named(headers), "receipt": f"subscribed-{id}"}
        self.connection.subscribe(destination, id=id, ack=ack, headers=headers)
        assert self.receipt() == f"subscribed-{id}"

    def unsubscribe(self, id="0", **headers):
        headers = {**named(headers), "receipt": f"unsubscribed-{id}"}
        self.connection.unsubscribe(id=id, headers=headers)
        assert self.receipt() == f"unsubscribed-{id}"

    def message(self):
        return self.got.messages.get(timeout=PATIENCE_S)

    def bodies(self, count):
        return [self.message().body for _ in range(count)]

    def receipt(self):
        return self.got.receipts.get(timeout=PATIENCE_S)

    def error(self):
        """The ERROR that came, behind which the broker has closed the connection."""
        frame = self.got.errors.get(timeout=PATIENCE_S)
        self.got.ends.get(timeout=PATIENCE_S)
        return frame

    def acknowledge(self, frame, refuse=False, **options):
        """Acknowledges as its version does it."""
        act = self.connection.nack if refuse else self.connection.ack
        headers = frame.headers
        if self.version == "1.2":
            return act(headers["ack"], **options)
        if self.version == "1.1":
            return act(headers["message-id"], headers["subscription"], **options)
        return act(headers["message-id"], **options)

    def silent(self):
        """Fails when another message comes."""
        try:
            frame = self.got.messages.get(timeout=SILENCE_S)
        except queue.Empty:
            return
        raise AssertionError(f"came, and should not: {frame.headers} {frame.body!r}")

    def cut(self):
        """Ends without a word."""
        self.connection.transport.disconnect_socket()

    def close(self):
        if self.connection.is_connected():
            self.connection.disconnect()


class World:
    """What one case uses. Everything it opens is closed."""

    def __init__(self):
        self.clients = []
        self.amqp = []

    def client(self, version="1.2", **options):
        """A client that is not connected yet."""
        client = Client(version, **options)
        self.clients.append(client)
        return client

    def connect(self, version="1.2", **options):
        return self.client(version, **options).connect()

    def channel(self):
        """A channel of pika's."""
        connection = pika.BlockingConnection(pika.URLParameters(AMQP_URL))
        self.amqp.append(connection)
        return connection.channel()

    def name(self, prefix="t"):
        """A name that nobody else uses."""
        return f"{prefix}.{uuid.uuid4().hex[:12]}"

    def close(self):
        for client in self.clients:
            client.close()
        for connection in self.amqp:
            if connection.is_open:
                connection.close()


def named(headers):
    return {name.replace("_", "-"): str(value) for name, value in headers.items()}


def perform(function):
    """Runs one case."""
    world = World()
    try:
        function(world)
    finally:
        world.close()


def run():
    """Runs the cases; returns how many failed."""
    return cases.run(perform)
