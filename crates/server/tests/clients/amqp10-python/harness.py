"""What a case of Qpid Proton may use, and how one is run."""

import os
import uuid

import cases
from cases import PATIENCE_S, SILENCE_S
from pika.exceptions import AMQPError
from proton import Message, ProtonException, Timeout
from proton.utils import BlockingConnection
from rabbitmq_amqp_python_client import ValidationCodeException

URL = os.environ.get("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/%2f").rsplit("/", 1)[0]
# Where it takes TLS.
TLS_PORT = os.environ.get("BROKER_TEST_TLS_PORT", "")


class World:
    """What one case uses. Everything it opens is closed."""

    def __init__(self):
        self._connections = []

    def connect(self, url=URL, **options):
        """A connection on which every call ends within the patience."""
        connection = BlockingConnection(url, timeout=PATIENCE_S, allowed_mechs="PLAIN EXTERNAL", **options)
        self._connections.append(connection)
        return connection

    def closes(self, connection):
        """A connection of another library is closed with the case."""
        self._connections.append(connection)

    def name(self, prefix="proton"):
        """A name that nobody else uses."""
        return f"{prefix}-{uuid.uuid4().hex[:12]}"

    def close(self):
        """Cleans up; what is gone already stays gone."""
        for connection in self._connections:
            try:
                connection.close()
            except (ProtonException, AMQPError):
                pass


def send(connection, address, *bodies, **options):
    """Sends one message after the other, each when the one before is accepted."""
    sender = connection.create_sender(address, **options)
    for body in bodies:
        sender.send(body if isinstance(body, Message) else Message(body=body))
    sender.close()


def take(receiver, count, settle=True):
    """The bodies of the next messages, which are accepted."""
    got = []
    for _ in range(count):
        # Octets are lent by the library as long as there is the message, and until the next one.
        message = receiver.receive(timeout=PATIENCE_S)
        body = message.body
        got.append(bytes(body) if isinstance(body, memoryview) else body)
        if settle:
            receiver.accept()
    return got


def quiet(receiver):
    """Nothing else comes."""
    try:
        message = receiver.receive(timeout=SILENCE_S)
    except Timeout:
        return
    raise AssertionError(f"came, and should not: {message}")


def run():
    """Runs the cases, each in a world of its own."""

    def perform(function):
        world = World()
        try:
            function(world)
        except ValidationCodeException as error:
            # It is no Exception in Python's sense, and would end the suite.
            raise AssertionError(f"RabbitMQ's client: {error}") from error
        finally:
            world.close()

    return cases.run(perform)
