"""What a case of paho-mqtt may use, and how one is run."""

import os
import queue
import uuid

import cases
import paho.mqtt.client as mqtt
import pika
from cases import PATIENCE_S, SILENCE_S
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

PORT = int(os.environ.get("BROKER_TEST_MQTT_PORT", "1883"))
AMQP_URL = os.environ.get("AMQP_URL", "")
VERSIONS = {"3.1": mqtt.MQTTv31, "3.1.1": mqtt.MQTTv311, "5": mqtt.MQTTv5}


def properties(packet, **values):
    """Properties by their names in paho: `MessageExpiryInterval=5`."""
    made = Properties(getattr(PacketTypes, packet))
    for name, value in values.items():
        setattr(made, name, value)
    return made


class Client:
    """A connection, with what it gets."""

    def __init__(self, name, version="5", clean=True, expiry=0, will=None, user=None, password=None):
        self.version, self.clean, self.expiry = version, clean, expiry
        options = {} if version == "5" else {"clean_session": clean}
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, name, protocol=VERSIONS[version], **options)
        self.messages, self.answers = queue.Queue(), queue.Queue()
        self.connected, self.ended = queue.Queue(), queue.Queue()
        self.client.on_message = lambda _c, _u, message: self.messages.put(message)
        self.client.on_connect = lambda _c, _u, *answer: self.connected.put(answer)
        self.client.on_disconnect = lambda _c, _u, _f, reason, _p: self.ended.put(reason)
        self.client.on_subscribe = lambda _c, _u, _m, reasons, _p: self.answers.put(reasons)
        self.client.on_unsubscribe = lambda _c, _u, _m, reasons, _p: self.answers.put(reasons)
        self.client.on_publish = lambda _c, _u, _m, reason, _p: self.answers.put(reason)
        if user:
            self.client.username_pw_set(user, password)
        if will:
            self.client.will_set(*will)

    def connect(self):
        """Connects; returns whether there was a session, and the reason code."""
        options = {}
        if self.version == "5":
            options = {"clean_start": self.clean}
            if self.expiry:
                options["properties"] = properties("CONNECT", SessionExpiryInterval=self.expiry)
        self.client.connect("127.0.0.1", PORT, **options)
        self.client.loop_start()
        flags, reason, self.offers = self.connected.get(timeout=PATIENCE_S)
        self.resumed, self.reason = flags.session_present, reason
        return self

    def subscribe(self, topic, qos=0, **options):
        """Subscribes; returns the reason codes by which it was answered."""
        self.client.subscribe(topic, qos, **options)
        return [reason.value for reason in self.answers.get(timeout=PATIENCE_S)]

    def publish(self, topic, payload, qos=0, **options):
        """Publishes; with QoS 1 and 2 returns the reason code."""
        self.client.publish(topic, payload, qos, **options)
        return self.answers.get(timeout=PATIENCE_S)

    def message(self):
        return self.messages.get(timeout=PATIENCE_S)

    def payloads(self, count):
        return [self.message().payload for _ in range(count)]

    def silent(self):
        """Fails when another message comes."""
        try:
            message = self.messages.get(timeout=SILENCE_S)
        except queue.Empty:
            return
        raise AssertionError(f"came, and should not: {message.topic} {message.payload!r}")

    def cut(self):
        """Ends without a word."""
        self.client.loop_stop()
        self.client.socket().close()

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


class World:
    """What one case uses. Everything it opens is closed."""

    def __init__(self):
        self.clients, self.amqp = [], []

    def connect(self, name=None, **options):
        client = Client(name or self.name("client"), **options)
        self.clients.append(client)
        return client.connect()

    def channel(self):
        """A channel of pika's."""
        connection = pika.BlockingConnection(pika.URLParameters(AMQP_URL))
        self.amqp.append(connection)
        return connection.channel()

    def name(self, prefix="t"):
        """A name that nobody else uses."""
        return f"{prefix}-{uuid.uuid4().hex[:12]}"

    def close(self):
        for client in self.clients:
            client.close()
        for connection in self.amqp:
            if connection.is_open:
                connection.close()


def run():
    def perform(function):
        world = World()
        try:
            function(world)
        finally:
            world.close()

    return cases.run(perform)
