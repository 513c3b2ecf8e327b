"""Messages: what is in them, how they are settled, and nodes made for them."""

import uuid

from cases import case
from harness import quiet, send, take
from proton import Array, Data, Delivery, Message, UNDESCRIBED, symbol, timestamp, ulong
from proton.reactor import AtMostOnce, Copy, DynamicNodeProperties, Selector
from proton.utils import LinkDetached, SendException


@case()
def a_message_arrives_as_it_was_sent(world):
    connection = world.connect()
    queue = world.name()
    identifier = uuid.uuid4()
    sent = Message(
        id=identifier,
        user_id=b"guest",
        subject="s",
        reply_to="r",
        correlation_id=ulong(2**63),
        content_type=symbol("text/plain"),
        content_encoding=symbol("utf-8"),
        group_id="g",
        group_sequence=3,
        durable=True,
        priority=7,
        body={"list": [1, "zwö", None, True], "bytes": b"\x00\xff"},
        properties={"when": timestamp(5), "who": identifier, "much": 2**40, "half": 0.5},
        annotations={symbol("x-opt-own"): Array(UNDESCRIBED, Data.INT, 1, 2)},
    )
    send(connection, queue, sent)
    receiver = connection.create_receiver(queue)
    got = receiver.receive()
    for name in (
        "id",
        "subject",
        "reply_to",
        "correlation_id",
        "content_type",
        "content_encoding",
        "group_id",
        "group_sequence",
        "durable",
        "priority",
        "body",
        "properties",
        "annotations",
    ):
        assert getattr(got, name) == getattr(sent, name), f"{name}: {getattr(got, name)}"
    assert not got.delivery_count
    receiver.accept()


@case()
def releases_and_rejections(world):
    connection = world.connect()
    queue = world.name()
    send(connection, queue, "x", "y")
    receiver = connection.create_receiver(queue, credit=1)
    receiver.receive()
    receiver.release(delivered=False)
    assert receiver.receive().delivery_count == 0
    receiver.release(delivered=True)
    again = receiver.receive()
    # This client then says modified, without saying that the delivery failed.
    assert (again.body, again.delivery_count) == ("x", 0)
    receiver.reject()
    assert take(receiver, 1) == ["y"]
    quiet(receiver)


@case()
def messages_without_settlement(world):
    connection = world.connect()
    queue = world.name()
    sender = connection.create_sender(queue, options=AtMostOnce())
    for number in range(100):
        sender.send(Message(body=number))
    receiver = connection.create_receiver(queue, credit=100, options=AtMostOnce())
    assert take(receiver, 100, settle=False) == list(range(100))
    receiver.close()
    quiet(connection.create_receiver(queue))


@case()
def selectors_and_browsers(world):
    connection = world.connect()
    queue = world.name()
    painted = [Message(body=color, properties={"color": color}) for color in ("red", "blue", "red")]
    send(connection, queue, *painted)
    options = [Copy(), Selector("color = 'red'")]
    browser = connection.create_receiver(queue, credit=10, name="browser", options=options)
    assert take(browser, 2, settle=False) == ["red", "red"]
    quiet(browser)
    options = Selector("color <> 'red'")
    blue = connection.create_receiver(queue, credit=10, name="blue", options=options)
    assert take(blue, 1) == ["blue"]
    assert take(connection.create_receiver(queue, credit=10), 2) == ["red", "red"]


@case()
def a_dynamic_node_for_answers(world):
    connection = world.connect()
    answers = connection.create_receiver(None, dynamic=True)
    address = answers.link.remote_source.address
    assert address, "it has an address"
    send(world.connect(), address, "answer")
    assert take(answers, 1) == ["answer"]
    queue = connection.create_receiver(None, dynamic=True, options=DynamicNodeProperties({"x": "y"}))
    assert queue.link.remote_source.address != address


@case()
def an_unknown_exchange_is_refused(world):
    connection = world.connect()
    for create in (connection.create_receiver, connection.create_sender):
        try:
            create(f"/exchanges/{world.name()}/key")
        except LinkDetached as error:
            assert error.condition == "amqp:not-found", error.condition
        else:
            raise AssertionError("it was taken")
    send(connection, world.name(), "the session goes on")


@case()
def what_leads_nowhere_is_released(world):
    connection = world.connect()
    try:
        send(connection, "/exchanges/amq.direct/nobody", "x")
    except SendException as error:
        assert error.state == Delivery.RELEASED, error
    else:
        raise AssertionError("it was accepted")


@case()
def a_large_message(world):
    connection = world.connect()
    queue = world.name()
    body = bytes(range(256)) * 20_000
    send(connection, queue, body)
    assert take(connection.create_receiver(queue), 1) == [body]
