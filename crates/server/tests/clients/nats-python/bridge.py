"""NATS beside AMQP 0-9-1 (pika): one address space, properties as headers, requests both ways."""

import asyncio
import time

import pika
from cases import PATIENCE_S, case
from harness import AMQP_URL, next_data, settle, until


def get_until(channel, queue):
    """basic.get, again and again until there is a message."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method is not None:
            return method, properties, body
        time.sleep(0.01)
    raise AssertionError(f"nothing in '{queue}' after {PATIENCE_S} s")


def caught(channel, pattern):
    """A queue that catches subjects."""
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "amq.topic", pattern)
    return queue


@case(ours=True, needs=AMQP_URL)
async def queues_catch_subjects(world):
    client, channel = await world.connect(), world.channel()
    subject = world.name()
    queue = caught(channel, f"{subject}.#")
    headers = {"Content-Type": "text/plain", "Correlation-Id": "c1", "X-Own": "mine"}
    await client.publish(f"{subject}.a", b"hello", reply="answers.here", headers=headers)
    await client.flush()
    method, properties, body = await asyncio.to_thread(get_until, channel, queue)
    assert (method.exchange, method.routing_key, body) == ("amq.topic", f"{subject}.a", b"hello")
    assert properties.content_type == "text/plain"
    assert properties.correlation_id == "c1"
    assert properties.reply_to == "answers.here"
    assert properties.headers == {"X-Own": "mine"}, properties.headers


@case(ours=True, needs=AMQP_URL)
async def subscribers_get_what_amqp_publishes(world):
    client, channel = await world.connect(), world.channel()
    subject = world.name()
    subscription = await client.subscribe(f"{subject}.>")
    await settle(client)
    properties = pika.BasicProperties(
        content_type="text/plain",
        message_id="m1",
        priority=4,
        headers={"text": "ä", "number": 7, "flag": True, "list": ["a", "b"]},
        delivery_mode=2,
    )
    channel.confirm_delivery()
    channel.basic_publish("amq.topic", f"{subject}.x", b"hello", properties)
    message = await subscription.next_msg(timeout=PATIENCE_S)
    assert (message.subject, message.data) == (f"{subject}.x", b"hello")
    expected = {"Content-Type": "text/plain", "Nats-Msg-Id": "m1", "Priority": "4"}
    for name, value in {**expected, "text": "ä", "number": "7"}.items():
        assert message.headers[name] == value, message.headers
    assert message.headers["flag"] == "true"


@case(ours=True, needs=AMQP_URL)
async def large_bodies_cross_whole(world):
    """With headers and without, to several of either protocol: who gets one shares it with all."""
    clients, channel = [await world.connect() for _ in range(3)], world.channel()
    subject = world.name()
    queues = [caught(channel, f"{subject}.#") for _ in range(2)]
    subscriptions = [await client.subscribe(f"{subject}.>") for client in clients]
    for client in clients:
        await settle(client)
    large, larger = bytes(range(256)) * 400, bytes(range(251)) * 4_000
    await clients[0].publish(f"{subject}.nats", large)
    await clients[0].publish(f"{subject}.nats", larger, headers={"X-Own": "mine"})
    await settle(clients[0])
    for body in [large, larger]:
        properties = pika.BasicProperties(headers={"X-Own": "mine"})
        channel.basic_publish("amq.topic", f"{subject}.amqp", body, properties)
    bodies = [large, larger, large, larger]
    for subscription in subscriptions:
        got = [await subscription.next_msg(timeout=PATIENCE_S) for _ in bodies]
        assert [message.data for message in got] == bodies
        assert [bool(message.headers) for message in got] == [False, True, True, True]
    for queue in queues:
        got = [await asyncio.to_thread(get_until, channel, queue) for _ in bodies]
        assert [body for _, _, body in got] == bodies


@case(ours=True, needs=AMQP_URL)
async def further_keys_are_heard_once(world):
    channel, subject, heard = world.channel(), world.name(), []
    clients = [await world.connect() for _ in range(4)]
    for number, client in enumerate(clients):

        async def hear(message, number=number):
            heard.append((number, message.data))

        await client.subscribe(f"{subject}.>", cb=hear)
        await client.subscribe(f"{subject}.*", "group", cb=hear)
        await settle(client)
    further = pika.BasicProperties(headers={"CC": [f"{subject}.b", f"{subject}.a"]})
    channel.basic_publish("amq.topic", f"{subject}.a", b"several", further)
    channel.basic_publish("amq.topic", f"{subject}.a", b"one")
    await until(lambda: sum(data == b"one" for _, data in heard) == 5, "a message for five")
    for data in [b"several", b"one"]:
        listeners = sorted(number for number, what in heard if what == data)
        assert len(listeners) == 5 and set(listeners) == {0, 1, 2, 3}, (data, heard)


@case(ours=True, needs=AMQP_URL)
async def nats_asks_and_amqp_answers(world):
    client, channel = await world.connect(), world.channel()
    subject = world.name()
    queue = caught(channel, subject)

    def answer():
        _, properties, body = get_until(channel, queue)
        channel.basic_publish("", properties.reply_to, body + b"!")

    answering = asyncio.create_task(asyncio.to_thread(answer))
    got = await client.request(subject, b"hello", timeout=PATIENCE_S)
    await answering
    assert got.data == b"hello!"


@case(ours=True, needs=AMQP_URL)
async def amqp_asks_and_nats_answers(world):
    client, channel = await world.connect(), world.channel()
    subject = world.name()

    async def answer(message):
        await message.respond(message.data + b"!")

    await client.subscribe(subject, cb=answer)
    await settle(client)
    replies = channel.queue_declare("", exclusive=True).method.queue
    channel.basic_publish("amq.topic", subject, b"queue", pika.BasicProperties(reply_to=replies))
    _, _, body = await asyncio.to_thread(get_until, channel, replies)
    assert body == b"queue!"
    got = []
    direct = "amq.rabbitmq.reply-to"

    def keep(_channel, _method, _properties, body):
        got.append(body)

    channel.basic_consume(direct, keep, auto_ack=True)
    channel.basic_publish("amq.topic", subject, b"direct", pika.BasicProperties(reply_to=direct))

    def wait():
        end = time.monotonic() + PATIENCE_S
        while not got and time.monotonic() < end:
            channel.connection.process_data_events(time_limit=0.05)

    await asyncio.to_thread(wait)
    assert got == [b"direct!"], got


@case(ours=True, needs=AMQP_URL)
async def a_durable_queue_keeps_what_was_published_directly(world):
    client, channel = await world.connect(), world.channel()
    subject = world.name()
    name = subject.replace(".", "-")
    channel.queue_declare(name, durable=True)
    channel.queue_bind(name, "amq.topic", subject)
    for number in range(500):
        await client.publish(subject, b"%d" % number)
    await client.flush()
    heard = await client.subscribe(subject)
    await client.publish(subject, b"last")
    assert await next_data(heard) == [b"last"]
    bodies = [(await asyncio.to_thread(get_until, channel, name))[2] for _ in range(501)]
    assert bodies == [b"%d" % number for number in range(500)] + [b"last"]
    channel.queue_delete(name)
