"""Retained messages: replaced, removed, replayed by wildcard, and there after any end of the broker."""

import re
import subprocess
import tempfile
import time

import harness
from cases import PROGRAM, case
from harness import properties
from paho.mqtt.subscribeoptions import SubscribeOptions

VERSIONS = ("3.1", "3.1.1", "5")


def came(client, count):
    """So many messages by topic, all of which are marked as retained."""
    messages = [client.message() for _ in range(count)]
    assert all(message.retain for message in messages), f"{count} messages, not all retained"
    return {message.topic: (message.payload, message.qos) for message in messages}


@case()
def the_last_message_of_a_topic_comes_to_who_subscribes_later(world):
    for version in VERSIONS:
        topic, publisher = world.name(), world.connect(version=version)
        for qos in (0, 1, 2):
            for payload in ("old", "new"):
                publisher.publish(f"{topic}/{qos}", payload, qos, retain=True)
        publisher.publish(f"{topic}/other", "x", 1)
        for qos in (0, 1, 2):
            for filter in (f"{topic}/#", f"{topic}/+"):
                client = world.connect(version=version)
                client.subscribe(filter, qos)
                assert came(client, 3) == {f"{topic}/{of}": (b"new", min(of, qos)) for of in range(3)}
                client.close()
        for qos in (0, 1, 2):
            publisher.publish(f"{topic}/{qos}", "", qos, retain=True)
        client = world.connect(version=version)
        client.subscribe(f"{topic}/#", 1)
        client.silent()


@case()
def those_who_subscribe_already_get_no_retained_one(world):
    topic, client = world.name(), world.connect()
    client.subscribe(topic, options=SubscribeOptions(qos=1, retainAsPublished=True))
    plain = world.connect()
    plain.subscribe(topic, 1)
    client.publish(topic, "x", 1, retain=True)
    assert client.message().retain and not plain.message().retain


@case()
def retain_handling_identifiers_and_expiry(world):
    topic, client = world.name(), world.connect()
    assert getattr(client.offers, "RetainAvailable", 1) == 1
    expiry = properties("PUBLISH", MessageExpiryInterval=60)
    client.publish(topic, "x", 1, retain=True, properties=expiry)
    identifier = properties("SUBSCRIBE", SubscriptionIdentifier=7)
    client.subscribe(topic, options=SubscribeOptions(qos=1, retainHandling=2), properties=identifier)
    client.silent()
    client.subscribe(topic, options=SubscribeOptions(qos=1, retainHandling=1), properties=identifier)
    client.silent()
    client.subscribe(topic, options=SubscribeOptions(qos=1, retainHandling=0), properties=identifier)
    got = client.message()
    assert got.retain and got.properties.SubscriptionIdentifier == [7]
    assert 50 <= got.properties.MessageExpiryInterval <= 60
    client.subscribe(f"$share/group/{topic}", 1)
    client.silent()
    short = properties("PUBLISH", MessageExpiryInterval=1)
    client.publish(f"{topic}/short", "x", 1, retain=True, properties=short)
    late = world.connect()
    time.sleep(1.2)
    late.subscribe(f"{topic}/short", 1)
    late.silent()


@case()
def many_reach_who_subscribes_to_all_of_them(world):
    count, topic, publisher = 5_000, world.name(), world.connect()
    for number in range(count - 1):
        publisher.client.publish(f"{topic}/{number % 70}/{number}", str(number), 0, retain=True)
    publisher.publish(f"{topic}/last/last", "last", 1, retain=True)
    for qos in (0, 1):
        client, mark = world.connect(), world.name()
        # Behind this one, all that was published before has passed the client's shard.
        client.subscribe(mark, 0)
        publisher.publish(mark, "mark", 0)
        assert client.message().payload == b"mark"
        client.subscribe(f"{topic}/#", qos)
        assert len(came(client, count)) == count
        client.silent()


@case()
def a_retained_will_stays(world):
    topic, watcher = world.name(), world.connect()
    watcher.subscribe(topic, 1)
    lost = world.connect(will=(topic, "gone", 1, True))
    lost.cut()
    assert watcher.message().payload == b"gone"
    later = world.connect()
    later.subscribe(topic, 1)
    assert came(later, 1) == {topic: (b"gone", 1)}


class Broker:
    """A broker of the case's own, which it may end as it likes."""

    def __init__(self, data):
        off = ["--amqp", "off", "--nats", "off", "--stomp", "off", "--http", "off"]
        command = [PROGRAM, "serve", "--mqtt", "127.0.0.1:0", *off, "--shards", "2", "--data", data]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            found = re.match(r"\s*mqtt on 127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                return
        raise AssertionError("the broker does not listen")

    def end(self, how):
        getattr(self.process, how)()
        self.process.wait(timeout=harness.PATIENCE_S)
        self.process.stdout.close()


@case(ours=True, needs=PROGRAM)
def they_are_there_after_every_end(world):
    usual = harness.PORT
    with tempfile.TemporaryDirectory() as data:
        try:
            # What is acknowledged is there, also after kill -9; what was replaced or removed is not.
            for round, how in enumerate(("kill", "terminate", "kill", "kill")):
                broker = Broker(data)
                try:
                    harness.PORT = broker.port
                    client = world.connect()
                    if round:
                        client.subscribe("#", 2)
                        expected = {f"t/{qos}": (f"{round - 1}".encode(), qos) for qos in (1, 2)}
                        assert came(client, 2) == expected
                        client.silent()
                    for qos in (1, 2):
                        assert not client.publish(f"t/{qos}", f"{round}", qos, retain=True).is_failure
                        client.publish(f"gone/{qos}", "x", qos, retain=True)
                        client.publish(f"gone/{qos}", "", qos, retain=True)
                    client.client.loop_stop()
                finally:
                    broker.end(how)
        finally:
            harness.PORT = usual
