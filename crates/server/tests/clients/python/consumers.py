"""Who gets what: prefetch, priorities, exclusive and single active consumers, cancel notification."""

import json
import time

import pika
from cases import PATIENCE_S, PROGRAM, administer, case, command
from harness import URL, Inbox, count_until, drain, get_until, publish, refused, wait_for
from pika.exceptions import ChannelClosedByBroker


def wait_both(first, second, total):
    """Serves two consumers on two connections until both together got `total`."""
    end = time.monotonic() + PATIENCE_S
    while len(first.got) + len(second.got) < total:
        assert time.monotonic() < end, f"{len(first.got)} + {len(second.got)} of {total} messages"
        first.channel.connection.process_data_events(time_limit=0.02)
        second.channel.connection.process_data_events(time_limit=0.02)


@case()
def prefetch_per_consumer_bounds_what_is_unsettled(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    publish(channel, queue, *[b"%d" % number for number in range(10)])
    channel.basic_qos(prefetch_count=3)
    first = Inbox(channel, queue)
    first.wait(3)
    assert len(first.quiet()) == 3
    channel.basic_qos(prefetch_count=2)
    second = Inbox(channel, queue)
    second.wait(2)
    assert (len(first.quiet()), len(second.quiet())) == (3, 2)
    channel.basic_ack(first.got[0][0].delivery_tag)
    first.wait(4)
    assert (len(first.quiet()), len(second.quiet())) == (4, 2)


@case()
def prefetch_per_channel_is_shared_by_its_consumers(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    publish(channel, queue, *[b"%d" % number for number in range(10)])
    channel.basic_qos(prefetch_count=4, global_qos=True)
    first, second = Inbox(channel, queue), Inbox(channel, queue)
    wait_for(channel.connection, lambda: len(first.got) + len(second.got) == 4, "4 messages")
    assert len(first.quiet()) + len(second.quiet()) == 4
    channel.basic_ack(2, multiple=True)
    wait_for(channel.connection, lambda: len(first.got) + len(second.got) == 6, "6 messages")
    assert len(first.quiet()) + len(second.quiet()) == 6


@case(ours=True)
def prefetch_in_bytes_bounds_what_is_unsettled(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    publish(channel, queue, *[bytes(1000)] * 10)
    channel.basic_qos(prefetch_size=2500)
    inbox = Inbox(channel, queue)
    inbox.wait(2)
    assert len(inbox.quiet()) == 2
    channel.basic_ack(1)
    inbox.wait(3)
    assert len(inbox.quiet()) == 3


@case(ours=True)
def one_message_larger_than_the_prefetch_in_bytes_passes(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    publish(channel, queue, bytes(5000), bytes(5000))
    channel.basic_qos(prefetch_size=1000)
    inbox = Inbox(channel, queue)
    inbox.wait(1)
    assert len(inbox.quiet()) == 1


@case()
def consumers_of_a_queue_take_turns(world):
    publisher = world.channel(confirms=True)
    queue = world.queue(publisher)
    first, second = Inbox(world.channel(), queue), Inbox(world.channel(), queue)
    publish(publisher, queue, *[b"%d" % number for number in range(100)])
    wait_both(first, second, 100)
    assert (len(first.got), len(second.got)) == (50, 50)


@case()
def consumers_of_higher_priority_are_served_first(world):
    publisher = world.channel(confirms=True)
    queue = world.queue(publisher)
    low_channel, high_channel = world.channel(), world.channel()
    high_channel.basic_qos(prefetch_count=2)
    low = Inbox(low_channel, queue)
    high = Inbox(high_channel, queue, arguments={"x-priority": 10})
    publish(publisher, queue, b"1", b"2", b"3", b"4")
    wait_both(low, high, 4)
    assert high.bodies() == [b"1", b"2"] and low.bodies() == [b"3", b"4"]


@case()
def a_single_active_consumer_gets_all_until_it_goes(world):
    publisher = world.channel(confirms=True)
    queue = world.queue(publisher, {"x-single-active-consumer": True})
    active = Inbox(world.channel(), queue, auto_ack=True)
    standby = Inbox(world.channel(), queue, auto_ack=True)
    publish(publisher, queue, b"1", b"2", b"3")
    active.wait(3)
    assert standby.quiet() == []
    active.channel.basic_cancel(active.tag)
    publish(publisher, queue, b"4")
    standby.wait(1)
    assert standby.bodies() == [b"4"] and len(active.got) == 3


@case()
def a_single_active_consumer_is_followed_when_its_connection_goes(world):
    publisher = world.channel(confirms=True)
    queue = world.queue(publisher, {"x-single-active-consumer": True})
    active, standby = Inbox(world.channel(), queue), Inbox(world.channel(), queue)
    publish(publisher, queue, b"1", b"2")
    active.wait(2)
    active.channel.connection.close()
    standby.wait(2)
    assert [(m.redelivered, body) for m, _, body in standby.got] == [(True, b"1"), (True, b"2")]


@case()
def an_exclusive_consumer_keeps_others_out(world):
    channel = world.channel()
    queue = world.queue(channel)
    mine = Inbox(channel, queue, exclusive=True)
    other = world.channel()
    refused(403, ChannelClosedByBroker, lambda: Inbox(other, queue))
    publish(channel, queue, b"x")
    mine.wait(1)


@case()
def an_exclusive_consumer_cannot_join_others(world):
    queue = world.queue(world.channel())
    Inbox(world.channel(), queue)
    other = world.channel()
    refused(403, ChannelClosedByBroker, lambda: Inbox(other, queue, exclusive=True))


@case()
def a_consumer_hears_that_its_queue_is_gone(world):
    consumer = world.channel()
    queue = world.queue(consumer)
    inbox = Inbox(consumer, queue)
    world.channel().queue_delete(queue)
    wait_for(consumer.connection, lambda: inbox.cancelled, "the cancel notification")
    assert consumer.is_open


@case()
def one_tag_is_one_consumer(world):
    queue = world.queue(world.channel())
    channel = world.channel()
    Inbox(channel, queue, consumer_tag="twice")

    def again():
        # pika itself refuses a tag it knows, so the broker is asked beneath it.
        from pika import spec

        channel._impl._rpc(spec.Basic.Consume(queue=queue, consumer_tag="twice"))
        wait_for(channel.connection, lambda: not channel.is_open, "the refusal")
        raise channel._impl._closing_reason

    if channel.connection._impl.server_properties.get("product") != "RabbitMQ":
        from pika.exceptions import ConnectionClosedByBroker

        refused(530, (ChannelClosedByBroker, ConnectionClosedByBroker), again)


@case(ours=True)
def who_never_settles_a_delivery_loses_the_channel_and_is_told(world):
    channel = world.channel()
    queue = world.queue(channel, {"x-consumer-timeout": 300})
    publish(channel, queue, b"x")
    slow = world.channel()
    slow.basic_qos(prefetch_count=1)
    slow_inbox = Inbox(slow, queue)
    slow_inbox.wait(1)
    wait_for(slow.connection, lambda: not slow.is_open, "the end of the channel")
    reason = slow._impl._closing_reason
    assert reason.reply_code == 406, reason
    assert reason.reply_text.startswith(
        "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out."
    ), reason
    assert len(slow_inbox.got) == 1 and slow.connection.is_open
    other = Inbox(channel, queue)
    other.wait(1)
    assert other.got[0][0].redelivered


@case(ours=True)
def browsing_a_queue_changes_nothing(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-delivery-limit": 1})
    for body in (b"1", b"2"):
        publish(channel, queue, body)
    for _ in range(4):
        looker = world.channel()
        seen = Inbox(looker, queue, auto_ack=True, arguments={"x-browse": True})
        seen.wait(2)
        assert seen.bodies() == [b"1", b"2"]
        assert not any(method.redelivered for method, *_ in seen.got)
        looker.close()
    taker = Inbox(channel, queue)
    taker.wait(2)
    assert not any(method.redelivered for method, *_ in taker.got)
    assert not any(properties.headers for _, properties, _ in taker.got)
    refused(
        406,
        ChannelClosedByBroker,
        lambda: Inbox(world.channel(), queue, arguments={"x-browse": True}),
    )


@case(ours=True)
def a_selector_chooses_what_a_consumer_gets(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    for number, colour in ((1, "red"), (2, "blue"), (3, "red"), (4, "green")):
        publish(channel, queue, b"%d" % number, headers={"number": number, "colour": colour}, type="kind")
    chosen = "colour IN ('red', 'green') AND number > 1 AND JMSType = 'kind'"
    seen = Inbox(world.channel(), queue, auto_ack=True, arguments={"x-browse": True, "x-selector": chosen})
    seen.wait(2)
    assert seen.quiet() == [b"3", b"4"]
    inbox = Inbox(channel, queue, arguments={"x-selector": chosen})
    inbox.wait(2)
    assert inbox.quiet() == [b"3", b"4"]
    # What one does not want waits for others, and what it returns it gets again.
    channel.basic_nack(inbox.got[0][0].delivery_tag)
    inbox.wait(3)
    assert inbox.bodies()[2:] == [b"3"] and inbox.got[2][0].redelivered
    others = Inbox(world.channel(), queue, auto_ack=True)
    others.wait(2)
    assert others.quiet() == [b"1", b"2"]


@case(ours=True)
def a_selector_chooses_what_a_binding_takes(world):
    channel = world.channel(confirms=True)
    exchange, queue = world.exchange(channel, "fanout"), world.queue(channel)
    chosen = {"x-selector": "size NOT BETWEEN 2 AND 3 OR size IS NULL"}
    channel.queue_bind(queue, exchange, arguments=chosen)
    for number in (1, 2, 3, 4):
        channel.basic_publish(exchange, "", b"%d" % number, pika.BasicProperties(headers={"size": number}))
    channel.basic_publish(exchange, "", b"none")
    assert drain(channel, queue) == [b"1", b"4", b"none"]
    channel.queue_unbind(queue, exchange, arguments=chosen)
    channel.basic_publish(exchange, "", b"none")
    assert drain(channel, queue) == []


@case(ours=True)
def a_selector_that_is_none_says_where(world):
    queue = world.queue(world.channel())
    for selector, place in (("a = ", "byte 4"), ("a LIKE 5", "byte 7"), (7, "x-selector")):
        text = refused(
            406,
            ChannelClosedByBroker,
            lambda selector=selector: Inbox(world.channel(), queue, arguments={"x-selector": selector}),
        )
        assert place in text, text


@case(ours=True, needs=PROGRAM)
def peeking_shows_messages_and_leaves_them(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-delivery-limit": 1})
    publish(channel, queue, b"1")
    publish(channel, queue, b"2")
    for _ in range(3):
        shown = command("consume", queue, "--peek", "--count", "2", "--uri", URL)
        assert shown.split() == ["1", "2"], shown
    row = next(row for row in json.loads(administer("queue", "list", "--json")) if row["name"] == queue)
    assert (row["ready"], row["discarded"]) == (2, {}), row
    channel.queue_purge(queue)
    row = next(row for row in json.loads(administer("queue", "list", "--json")) if row["name"] == queue)
    assert (row["ready"], row["discarded"]) == (0, {"purged": 2}), row


@case()
def a_slow_consumer_does_not_hold_up_others(world):
    publisher = world.channel(confirms=True)
    exchange = world.exchange(publisher, "fanout")
    slow_queue, fast_queue = world.queue(publisher), world.queue(publisher)
    for queue in (slow_queue, fast_queue):
        publisher.queue_bind(queue, exchange)
    slow_channel = world.channel()
    Inbox(slow_channel, slow_queue)
    fast = Inbox(world.channel(), fast_queue, auto_ack=True)
    for _ in range(200):
        publisher.basic_publish(exchange, "", bytes(10_000))
    fast.wait(200)


@case()
def get_and_consume_share_a_queue(world):
    channel = world.channel()
    queue = world.queue(channel)
    publish(channel, queue, b"1", b"2", b"3")
    count_until(channel, queue, 3)
    assert get_until(channel, queue)[2] == b"1"
    inbox = Inbox(channel, queue)
    inbox.wait(2)
    assert inbox.bodies() == [b"2", b"3"]
