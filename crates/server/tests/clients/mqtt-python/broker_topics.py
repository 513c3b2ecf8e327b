"""What the broker tells about itself, by Mosquitto's names."""

import subprocess

from cases import PATIENCE_S, case
from harness import PORT
from paho.mqtt.subscribeoptions import SubscribeOptions

PREFIX = "$SYS/broker"


def told(client, count):
    """The next messages by topic, and whether each is marked as retained."""
    messages = [client.message() for _ in range(count)]
    name = len(f"{PREFIX}/")
    return {message.topic[name:]: (message.payload, message.retain) for message in messages}


@case(ours=True)
def who_subscribes_is_told_at_once_and_then_of_changes(world):
    for version in ("3.1", "3.1.1", "5"):
        client = world.connect(version=version)
        client.subscribe([(f"{PREFIX}/version", 0), (f"{PREFIX}/uptime", 2)])
        first = told(client, 2)
        assert first["version"][0].startswith(b"angarium ") and first["version"][1]
        value, is_retained = first["uptime"]
        assert value.endswith(b" seconds") and is_retained
        # It is told every 10 seconds.
        message = client.messages.get(timeout=PATIENCE_S + 15)
        assert (message.topic, message.retain, message.qos) == (f"{PREFIX}/uptime", False, 0)
        assert int(message.payload.split()[0]) > int(value.split()[0])
        client.close()


@case(ours=True)
def all_names_are_there(world):
    client = world.connect()
    client.subscribe("$SYS/#")
    names = set()
    while "uptime" not in names:
        names |= set(told(client, 1))
    for name in (
        "bytes/received",
        "bytes/sent",
        "clients/connected",
        "clients/disconnected",
        "clients/maximum",
        "clients/total",
        "load/bytes/received/1min",
        "load/messages/sent/15min",
        "messages/received",
        "messages/sent",
        "publish/messages/dropped",
        "retained messages/count",
        "subscriptions/count",
    ):
        assert name in names, f"{name} is not among {names}"


@case(ours=True)
def wildcards_in_front_do_not_match_them(world):
    client = world.connect()
    assert client.subscribe([("+/broker/uptime", 0), ("+/broker/clients/#", 1)]) == [0, 1]
    client.silent()


@case(ours=True)
def clients_cannot_publish_them(world):
    client, other = world.connect(), world.connect()
    options = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_DO_NOT_SEND)
    client.subscribe(f"{PREFIX}/none/#", options=options)
    assert other.publish(f"{PREFIX}/none/x", "false", 1, retain=True).value == 0x87
    other.publish(f"{PREFIX}/none/x", "false", 0)
    channel = world.channel()
    channel.basic_publish("amq.topic", "$SYS.broker.none.x", b"false")
    client.silent()


@case(ours=True)
def mosquitto_sub_shows_them(world):
    command = ["mosquitto_sub", "-h", "127.0.0.1", "-p", str(PORT), "-C", "1", "-t", f"{PREFIX}/version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert done.stdout.startswith("angarium "), done.stdout
