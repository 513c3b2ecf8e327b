"""STOMP beside AMQP 0-9-1."""

import pika
from cases import case


@case()
def messages_of_amqp_reach_stomp(world):
    channel, client = world.channel(), world.connect()
    queue = world.name()
    client.subscribe(f"/queue/{queue}")
    properties = pika.BasicProperties(
        content_type="text/plain",
        correlation_id="c",
        message_id="m",
        reply_to="answers",
        priority=3,
        delivery_mode=2,
        timestamp=1_700_000_000,
        type="order",
        headers={"colour": "red", "size": 9},
    )
    channel.basic_publish("", queue, b"hello", properties)
    got = client.message()
    expected = {
        "destination": f"/queue/{queue}",
        "content-type": "text/plain",
        "correlation-id": "c",
        "amqp-message-id": "m",
        "reply-to": "/reply-queue/answers",
        "priority": "3",
        "persistent": "true",
        "timestamp": "1700000000",
        "type": "order",
        "colour": "red",
        "size": "9",
    }
    assert got.body == "hello"
    assert {name: got.headers.get(name) for name in expected} == expected, got.headers


@case()
def messages_of_stomp_reach_amqp(world):
    channel, client = world.channel(), world.connect()
    queue = channel.queue_declare("", exclusive=True).method.queue
    headers = {
        "content-type": "text/plain",
        "correlation-id": "c",
        "amqp-message-id": "m",
        "reply-to": "/queue/answers",
        "priority": 3,
        "persistent": "true",
        "timestamp": 1_700_000_000,
        "type": "order",
        "expiration": 60_000,
        "colour": "red",
        "receipt": "sent",
    }
    client.send(f"/amq/queue/{queue}", "hello", **headers)
    assert client.receipt() == "sent"
    _, properties, body = channel.basic_get(queue, auto_ack=True)
    assert body == b"hello"
    assert (properties.content_type, properties.correlation_id) == ("text/plain", "c")
    assert (properties.message_id, properties.reply_to, properties.type) == ("m", "answers", "order")
    assert (properties.priority, properties.delivery_mode) == (3, 2)
    assert (properties.timestamp, properties.expiration) == (1_700_000_000, "60000")
    assert properties.headers == {"colour": "red"}, properties.headers


@case()
def exchanges_lead_both_ways(world):
    channel, client = world.channel(), world.connect()
    exchange = world.name("exchange")
    channel.exchange_declare(exchange, "direct", auto_delete=True)
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, exchange, "key")
    client.subscribe(f"/exchange/{exchange}/key")
    client.send(f"/exchange/{exchange}/key", "from stomp", receipt="sent")
    assert client.receipt() == "sent"
    assert channel.basic_get(queue, auto_ack=True)[2] == b"from stomp"
    channel.basic_publish(exchange, "key", b"from amqp")
    got = [client.message() for _ in range(2)]
    assert [frame.body for frame in got] == ["from stomp", "from amqp"]
    assert got[1].headers["destination"] == f"/exchange/{exchange}/key"
