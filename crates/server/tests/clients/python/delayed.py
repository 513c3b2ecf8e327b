"""Delayed delivery: exchanges of type x-delayed-message and the header x-delay."""

import time
from decimal import Decimal

import pika
from cases import case
from harness import Inbox, count_until, get_until


def delaying(world, channel, kind="direct"):
    """A delaying exchange and a queue bound to it by 'k'."""
    exchange = world.exchange(channel, "x-delayed-message", {"x-delayed-type": kind}, durable=True)
    queue = world.queue(channel, durable=True)
    channel.queue_bind(queue, exchange, "k")
    return exchange, queue


def send(channel, exchange, body, delay_ms=None, key="k"):
    headers = {} if delay_ms is None else {"x-delay": delay_ms}
    channel.basic_publish(exchange, key, body, pika.BasicProperties(headers=headers, delivery_mode=2))


@case(ours=True)
def a_delayed_message_comes_later(world):
    channel = world.channel(confirms=True)
    exchange, queue = delaying(world, channel)
    inbox = Inbox(channel, queue)
    begun = time.monotonic()
    send(channel, exchange, b"later", 300)
    inbox.wait(1)
    assert time.monotonic() - begun >= 0.3, "came too early"
    assert inbox.bodies() == [b"later"]


@case(ours=True)
def without_a_delay_it_comes_at_once_and_before(world):
    channel = world.channel(confirms=True)
    exchange, queue = delaying(world, channel)
    send(channel, exchange, b"400", 400)
    send(channel, exchange, b"100", 100)
    send(channel, exchange, b"none")
    inbox = Inbox(channel, queue)
    inbox.wait(3)
    assert inbox.bodies() == [b"none", b"100", b"400"]


@case(ours=True)
def a_delayed_message_is_routed_when_its_time_comes(world):
    channel = world.channel(confirms=True)
    exchange, queue = delaying(world, channel, "topic")
    late = world.queue(channel)
    send(channel, exchange, b"x", 200, "a.b")
    channel.queue_bind(late, exchange, "a.*")
    assert get_until(channel, late)[2] == b"x"
    count_until(channel, queue, 0)


@case(ours=True)
def any_exchange_delays(world):
    channel = world.channel(confirms=True)
    queue, fanout = world.queue(channel, durable=True), world.exchange(channel, "fanout")
    channel.queue_bind(queue, fanout)
    inbox = Inbox(channel, queue)
    begun = time.monotonic()
    send(channel, "", b"300", 300, queue)
    send(channel, fanout, b"150", 150)
    send(channel, "", b"none", None, queue)
    inbox.wait(3)
    assert time.monotonic() - begun >= 0.3, "came too early"
    assert inbox.bodies() == [b"none", b"150", b"300"]
    transacted = world.channel()
    transacted.tx_select()
    begun = time.monotonic()
    send(transacted, "", b"later", 200, queue)
    transacted.tx_commit()
    inbox.wait(4)
    assert inbox.bodies()[3] == b"later" and time.monotonic() - begun >= 0.2


@case(ours=True)
def a_delay_that_is_no_number_or_not_positive_is_none(world):
    channel = world.channel(confirms=True)
    exchange, queue = delaying(world, channel)
    send(channel, exchange, b"negative", -5)
    send(channel, exchange, b"zero", 0)
    inbox = Inbox(channel, queue)
    inbox.wait(2)
    assert sorted(inbox.bodies()) == [b"negative", b"zero"]


@case(ours=True)
def the_delay_comes_back_negated_however_it_was_written(world):
    channel = world.channel(confirms=True)
    exchange, queue = delaying(world, channel)
    for delay in (50, "50", Decimal("50.9")):
        send(channel, exchange, b"x", delay)
        assert get_until(channel, queue)[1].headers["x-delay"] == -50, f"{delay!r}"


@case(ours=True)
def large_ones_that_are_due_together_all_come(world):
    channel = world.channel(confirms=True)
    exchange, queue = delaying(world, channel)
    bodies = [bytes([65 + number]) * 2_000_000 for number in range(40)]
    for body in bodies:
        send(channel, exchange, body, 1500)
    inbox = Inbox(channel, queue)
    inbox.wait(len(bodies))
    assert inbox.bodies() == bodies
