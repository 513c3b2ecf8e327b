"""What a message carries: every property, every kind of header, every size."""

import datetime
import decimal

import pika
from cases import case
from harness import Inbox, get_until, publish, wait_for


@case()
def every_property_arrives_as_it_was_sent(world):
    channel = world.channel()
    queue = world.queue(channel)
    sent = {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "delivery_mode": 2,
        "priority": 7,
        "correlation_id": "c-1",
        "reply_to": "answers",
        "expiration": "600000",
        "message_id": "m-1",
        "timestamp": 1_700_000_000,
        "type": "order",
        "user_id": "guest",
        "app_id": "test",
        "cluster_id": "c",
    }
    publish(channel, queue, b"x", **sent)
    _, properties, _ = get_until(channel, queue)
    for name, value in sent.items():
        assert getattr(properties, name) == value, f"{name}: {getattr(properties, name)!r}"


@case()
def no_property_arrives_as_no_property(world):
    channel = world.channel()
    queue = world.queue(channel)
    publish(channel, queue, b"x")
    _, properties, _ = get_until(channel, queue)
    assert properties == pika.BasicProperties(), f"{properties}"


@case()
def headers_of_every_kind_arrive(world):
    channel = world.channel()
    queue = world.queue(channel)
    headers = {
        "bool": True,
        "int": 42,
        "negative": -5,
        "large": 1 << 40,
        "decimal": decimal.Decimal("3.14"),
        "text": "Grüße",
        "long": "x" * 5000,
        "bytes": b"\x00\xff",
        "time": datetime.datetime(2024, 2, 29, 12, 0, 0, tzinfo=datetime.timezone.utc),
        "nothing": None,
        "list": [1, "two", [3, {"four": 4}]],
        "table": {"deep": {"deeper": [True, None]}},
        "": "empty name",
    }
    publish(channel, queue, b"x", headers=headers)
    found = get_until(channel, queue)[1].headers
    for name, value in headers.items():
        expected = value.replace(tzinfo=None) if name == "time" and found[name].tzinfo is None else value
        got = found[name].encode() if name == "bytes" and isinstance(found[name], str) else found[name]
        assert got == expected, f"{name}: {found[name]!r}"


@case()
def bodies_of_every_size_arrive(world):
    """At and around what fits one frame of 4096 bytes (8 bytes of it are the frame's own)."""
    channel = world.channel(frame_max=4096)
    queue = world.queue(channel)
    inbox = Inbox(channel, queue, auto_ack=True)
    sizes = [0, 1, 2, 4087, 4088, 4089, 8175, 8176, 8177, 100_000]
    bodies = [bytes(i % 251 for i in range(size)) for size in sizes]
    publish(channel, queue, *bodies)
    inbox.wait(len(sizes))
    assert inbox.bodies() == bodies


@case()
def a_large_body_arrives_whole(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, durable=True)
    body = bytes(range(256)) * (32 << 12)
    publish(channel, queue, body, delivery_mode=2)
    assert get_until(channel, queue)[2] == body


@case()
def large_bodies_are_whole_on_every_way(world):
    """To several queues, rejected into another one, in a transaction, and back where no queue takes them."""
    channel = world.channel()
    dead = world.queue(channel)
    queues = [
        world.queue(channel, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
        for _ in range(2)
    ]
    exchange = world.exchange(channel, "fanout")
    for queue in queues:
        channel.queue_bind(queue, exchange)
    bodies = [bytes(range(256)) * 256, bytes(range(251)) * 4_001]
    channel.tx_select()
    for body in bodies:
        channel.basic_publish(exchange, "", body)
    channel.tx_commit()
    for body in bodies:
        for queue in queues:
            method, _, got = get_until(channel, queue, auto_ack=False)
            assert got == body
            channel.basic_reject(method.delivery_tag, requeue=False)
        channel.tx_commit()
    assert sorted(get_until(channel, dead)[2] for _ in range(4)) == sorted(2 * bodies)
    other, returned = world.channel(), []
    other.add_on_return_callback(lambda *given: returned.append(given[-1]))
    for body in bodies:
        other.basic_publish("", world.name("nowhere-"), body, mandatory=True)
    wait_for(other.connection, lambda: len(returned) == 2, "both come back")
    assert returned == bodies


@case()
def user_id_must_be_true(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    from harness import refused
    from pika.exceptions import ChannelClosedByBroker

    refused(406, ChannelClosedByBroker, lambda: publish(channel, queue, b"x", user_id="somebody"))


@case()
def names_may_hold_any_letters(world):
    channel = world.channel()
    name = world.name("größe-日本-") + "x" * 100
    channel.queue_declare(name)
    channel.queue_bind(name, "amq.topic", "straße.日.*")
    channel.basic_publish("amq.topic", "straße.日.本", b"x")
    assert get_until(channel, name)[0].routing_key == "straße.日.本"
    channel.queue_delete(name)
