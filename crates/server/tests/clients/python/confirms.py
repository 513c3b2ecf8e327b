"""Publisher confirms and returned messages."""

import pika
from cases import case
from harness import Inbox, count_until, get_until, publish, wait_for
from pika.exceptions import NackError, UnroutableError


@case()
def every_publish_is_confirmed(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, durable=True)
    for number in range(200):
        publish(channel, queue, b"%d" % number, delivery_mode=2)
    count_until(channel, queue, 200)


@case()
def confirms_come_for_every_number_and_only_once(world):
    """Without the blocking wrapper: numbers from 1, `multiple` allowed, none twice, none missing."""
    connection = world.connect()
    channel = connection.channel()
    queue = world.queue(channel, durable=True)
    confirmed = []
    highest = [0]

    def confirm(frame):
        method = frame.method
        assert isinstance(method, pika.spec.Basic.Ack), f"{method}"
        first = highest[0] + 1 if method.multiple else method.delivery_tag
        numbers = [n for n in range(first, method.delivery_tag + 1) if n not in confirmed]
        confirmed.extend(numbers)
        while highest[0] + 1 in confirmed:
            highest[0] += 1

    channel._impl.confirm_delivery(confirm, callback=lambda _: None)
    for number in range(500):
        mode = 1 + number % 2
        channel._impl.basic_publish("", queue, b"x" * 100, pika.BasicProperties(delivery_mode=mode))
    wait_for(connection, lambda: highest[0] == 500, "500 confirms")
    assert sorted(confirmed) == list(range(1, 501))


@case()
def an_unroutable_message_is_confirmed_and_not_returned(world):
    channel = world.channel(confirms=True)
    channel.basic_publish("amq.direct", world.name("nowhere"), b"x")


@case()
def an_unroutable_mandatory_message_is_returned(world):
    channel = world.channel(confirms=True)
    key = world.name("nowhere")
    properties = pika.BasicProperties(message_id="m1", headers={"a": 1})
    try:
        channel.basic_publish("amq.direct", key, b"body", properties, mandatory=True)
    except UnroutableError as error:
        [returned] = error.messages
        assert returned.method.reply_code == 312 and returned.method.reply_text == "NO_ROUTE"
        assert (returned.method.exchange, returned.method.routing_key) == ("amq.direct", key)
        assert returned.body == b"body" and returned.properties.message_id == "m1"
        assert returned.properties.headers == {"a": 1}
        return
    raise AssertionError("was not returned")


@case()
def a_return_comes_without_confirms_too(world):
    channel = world.channel()
    returned = []
    channel.add_on_return_callback(lambda *arguments: returned.append(arguments))
    channel.basic_publish("", world.name("nowhere"), b"body", mandatory=True)
    wait_for(channel.connection, lambda: returned, "the return")
    assert returned[0][3] == b"body"


@case()
def a_routable_mandatory_message_is_not_returned(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    channel.basic_publish("", queue, b"x", mandatory=True)
    assert get_until(channel, queue)[2] == b"x"


@case()
def a_full_queue_refuses_by_a_negative_confirm(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-max-length": 2, "x-overflow": "reject-publish"})
    publish(channel, queue, b"1", b"2")
    count_until(channel, queue, 2)
    try:
        publish(channel, queue, b"3")
    except NackError:
        assert get_until(channel, queue)[2] == b"1"
        publish(channel, queue, b"4")
        return
    raise AssertionError("the third of two was confirmed")


@case()
def a_confirm_waits_for_nobody_to_consume(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, durable=True)
    consumer = Inbox(world.channel(), queue)
    publish(channel, queue, b"x", delivery_mode=2)
    consumer.wait(1)
