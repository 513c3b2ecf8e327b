"""Qpid Proton beside pika: one message both ways, with its properties, and an answer."""

import pika
from cases import PATIENCE_S, case
from harness import URL, quiet, send, take
from proton import Message, symbol, timestamp
from proton.reactor import Selector


def channel(world):
    """A channel of pika, which ends with the case."""
    connection = pika.BlockingConnection(pika.URLParameters(f"{URL}/%2f"))
    world.closes(connection)
    connection.call_later(6 * PATIENCE_S, connection.close)
    own = connection.channel()
    own.confirm_delivery()
    return own


def get(own, queue):
    """The next message of a queue, which is accepted."""
    for method, properties, body in own.consume(queue, auto_ack=True, inactivity_timeout=PATIENCE_S):
        assert method is not None, f"nothing in '{queue}'"
        own.cancel()
        return method, properties, body


@case()
def pika_gets_what_proton_sends(world):
    queue = world.name()
    sent = Message(
        id="m1",
        subject="order",
        reply_to="answers",
        correlation_id="c1",
        content_type=symbol("application/json"),
        creation_time=1_700_000_000,
        durable=True,
        priority=7,
        ttl=60,
        properties={"text": "zw\u00f6", "number": 7, "is": True, "when": timestamp(5000)},
        annotations={symbol("x-team"): "red", symbol("x-opt-own"): "not shown"},
        body=b"{}",
    )
    sent.inferred = True
    send(world.connect(), queue, sent)
    method, got, body = get(channel(world), queue)
    assert (method.exchange, method.routing_key, body) == ("", queue, b"{}")
    for name, value in (
        ("message_id", "m1"),
        ("type", "order"),
        ("reply_to", "answers"),
        ("correlation_id", "c1"),
        ("content_type", "application/json"),
        ("timestamp", 1_700_000_000),
        ("delivery_mode", 2),
        ("priority", 7),
        ("expiration", "60000"),
    ):
        assert getattr(got, name) == value, f"{name}: {getattr(got, name)!r}"
    when = got.headers.pop("when")
    assert when.timestamp() == 5, when
    expected = {"text": "zw\u00f6", "number": 7, "is": True, "x-team": "red"}
    assert got.headers == expected, got.headers


@case()
def proton_gets_what_pika_publishes(world):
    own, queue = channel(world), world.name()
    own.queue_declare(queue, durable=True)
    properties = pika.BasicProperties(
        message_id="m1",
        type="order",
        app_id="shop",
        user_id="guest",
        reply_to="answers",
        correlation_id="c1",
        content_type="text/plain",
        timestamp=1_700_000_000,
        delivery_mode=2,
        priority=7,
        expiration="60000",
        headers={"text": "zw\u00f6", "number": 7, "is": True, "x-team": "red"},
    )
    own.basic_publish("", queue, b"body", properties)
    receiver = world.connect().create_receiver(queue)
    got = receiver.receive(timeout=PATIENCE_S)
    for name, value in (
        ("id", "m1"),
        ("subject", "order"),
        ("user_id", b"guest"),
        ("reply_to", "answers"),
        ("correlation_id", "c1"),
        ("content_type", "text/plain"),
        ("creation_time", 1_700_000_000),
        ("durable", True),
        ("priority", 7),
        ("ttl", 60),
        ("delivery_count", 0),
    ):
        assert getattr(got, name) == value, f"{name}: {getattr(got, name)!r}"
    assert got.properties == {"text": "zw\u00f6", "number": 7, "is": True}, got.properties
    annotations = {str(name): value for name, value in got.annotations.items()}
    assert annotations["x-team"] == "red" and annotations["x-opt-app-id"] == "shop", annotations
    assert bytes(got.body) == b"body"
    receiver.release(delivered=False)
    receiver.close()
    # What is given back without being counted is not marked as redelivered.
    method, again, _ = get(own, queue)
    assert "x-delivery-count" not in again.headers, (method, again)
    own.queue_delete(queue)


@case()
def each_answers_the_other(world):
    own, connection = channel(world), world.connect()
    service = world.name()
    # Proton asks, pika answers.
    answers = connection.create_receiver(None, dynamic=True)
    address = answers.link.remote_source.address
    send(connection, service, Message(body=b"?", reply_to=address, correlation_id="1"))
    _, asked, _ = get(own, service)
    reply = pika.BasicProperties(correlation_id=asked.correlation_id)
    own.basic_publish("", asked.reply_to, b"!", reply)
    answer = answers.receive(timeout=PATIENCE_S)
    assert (bytes(answer.body), answer.correlation_id) == (b"!", "1"), answer
    # Pika asks, with a direct reply, and Proton answers.
    got = []
    own.basic_consume("amq.rabbitmq.reply-to", lambda *all: got.append(all), auto_ack=True)
    asking = pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id="2")
    own.basic_publish("", service, b"?", asking)
    receiver = connection.create_receiver(service)
    request = receiver.receive(timeout=PATIENCE_S)
    receiver.accept()
    send(connection, request.reply_to, Message(body=b"!", correlation_id=request.correlation_id))
    for _ in range(100):
        if got:
            break
        own.connection.process_data_events(time_limit=PATIENCE_S / 100)
    assert [(properties.correlation_id, body) for _, _, properties, body in got] == [("2", b"!")], got


@case()
def a_selector_sees_headers_of_either(world):
    own, connection, queue = channel(world), world.connect(), world.name()
    own.queue_declare(queue, durable=True)
    for number in (1, 9):
        own.basic_publish("", queue, b"pika", pika.BasicProperties(headers={"number": number}))
        send(connection, queue, Message(body=b"proton", properties={"number": number}))
    receiver = connection.create_receiver(queue, credit=10, options=Selector("number > 5"))
    bodies = take(receiver, 2)
    assert bodies == [b"pika", b"proton"], bodies
    quiet(receiver)
    got = []
    arguments = {"x-selector": "number BETWEEN 1 AND 2"}
    own.basic_consume(queue, lambda *all: got.append(all[-1]), auto_ack=True, arguments=arguments)
    for _ in range(100):
        if len(got) == 2:
            break
        own.connection.process_data_events(time_limit=PATIENCE_S / 100)
    assert got == [b"pika", b"proton"], got
    own.queue_delete(queue)
