"""Lives of queues and messages: TTL, expiry, priorities, exclusive, auto-delete, durable."""

import time

from cases import PATIENCE_S, case
from harness import Inbox, count_until, drain, get_until, publish, refused
from pika.exceptions import ChannelClosedByBroker


def wait_until_gone(world, queue):
    """Asks on fresh channels until the queue does not exist."""
    connection = world.connect()
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            connection.channel().queue_declare(queue, passive=True)
        except ChannelClosedByBroker as error:
            assert error.reply_code == 404, f"{error}"
            return
        connection.process_data_events(time_limit=0.01)
    raise AssertionError(f"'{queue}' still exists")


@case()
def messages_of_a_queue_expire(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-message-ttl": 50})
    publish(channel, queue, b"1", b"2")
    count_until(channel, queue, 0)


@case()
def a_message_has_its_own_expiration(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    publish(channel, queue, b"short", expiration="50")
    publish(channel, queue, b"stays")
    count_until(channel, queue, 1)
    assert drain(channel, queue) == [b"stays"]


@case()
def the_shorter_time_to_live_wins(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-message-ttl": 60_000})
    publish(channel, queue, b"x", expiration="30")
    count_until(channel, queue, 0)
    short = world.queue(channel, {"x-message-ttl": 30})
    publish(channel, short, b"x", expiration="60000")
    count_until(channel, short, 0)


@case()
def an_expiration_of_zero_delivers_now_or_never(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    publish(channel, queue, b"never", expiration="0")
    count_until(channel, queue, 0)
    inbox = Inbox(channel, queue, auto_ack=True)
    publish(channel, queue, b"now", expiration="0")
    inbox.wait(1)
    assert inbox.bodies() == [b"now"]


@case()
def a_wrong_expiration_is_406(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    refused(406, ChannelClosedByBroker, lambda: publish(channel, queue, b"x", expiration="soon"))


@case()
def an_unsettled_message_does_not_expire(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-message-ttl": 100})
    publish(channel, queue, b"x")
    method, _, _ = get_until(channel, queue, auto_ack=False)
    channel.connection.process_data_events(time_limit=0.3)
    channel.basic_ack(method.delivery_tag)
    channel.queue_declare(queue, passive=True)


@case()
def an_unused_queue_expires(world):
    queue = world.name("q")
    world.channel().queue_declare(queue, arguments={"x-expires": 100})
    # Asking for it by declaration would be use, so something else is waited for first.
    world.connect().process_data_events(time_limit=0.4)
    wait_until_gone(world, queue)


@case()
def a_queue_with_a_consumer_does_not_expire(world):
    channel = world.channel()
    queue = world.name("q")
    channel.queue_declare(queue, arguments={"x-expires": 100})
    inbox = Inbox(channel, queue)
    channel.connection.process_data_events(time_limit=0.4)
    publish(channel, queue, b"x")
    inbox.wait(1)
    channel.queue_delete(queue)


@case()
def higher_priorities_come_first(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-max-priority": 10})
    for body, priority in ((b"a1", 1), (b"b5", 5), (b"c1", 1), (b"d10", 10), (b"e99", 99), (b"f", None)):
        publish(channel, queue, body, priority=priority)
    count_until(channel, queue, 6)
    # 99 counts as the highest of the queue, none as 0; within one priority order is kept.
    assert drain(channel, queue) == [b"d10", b"e99", b"b5", b"a1", b"c1", b"f"]


@case()
def a_requeued_message_keeps_its_place_among_priorities(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-max-priority": 255})
    publish(channel, queue, b"high", priority=255)
    publish(channel, queue, b"low", b"low2", priority=0)
    method, _, body = get_until(channel, queue, auto_ack=False)
    assert body == b"high"
    channel.basic_nack(method.delivery_tag, requeue=True)
    count_until(channel, queue, 3)
    assert drain(channel, queue) == [b"high", b"low", b"low2"]


@case()
def an_exclusive_queue_goes_with_its_connection(world):
    connection = world.connect()
    queue = connection.channel().queue_declare("", exclusive=True).method.queue
    connection.close()
    wait_until_gone(world, queue)


@case()
def an_auto_delete_queue_goes_with_its_last_consumer(world):
    channel = world.channel()
    queue = world.queue(channel, auto_delete=True)
    first, second = Inbox(channel, queue), Inbox(channel, queue)
    channel.basic_cancel(first.tag)
    channel.queue_declare(queue, passive=True)
    channel.basic_cancel(second.tag)
    wait_until_gone(world, queue)


@case()
def an_auto_delete_queue_goes_when_its_consumer_is_cut_off(world):
    channel = world.channel()
    queue = world.queue(channel, auto_delete=True)
    Inbox(channel, queue)
    world.cut(channel.connection)
    wait_until_gone(world, queue)


@case()
def delete_says_how_many_messages_went(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    publish(channel, queue, b"1", b"2", b"3")
    assert channel.queue_delete(queue).method.message_count == 3


@case()
def arguments_that_mean_nothing_here_are_accepted(world):
    channel = world.channel(confirms=True)
    for arguments in ({"x-queue-type": "classic"}, {"x-queue-mode": "lazy"}, {"my-own": "value"}):
        queue = world.queue(channel, arguments, durable=True)
        publish(channel, queue, b"x", delivery_mode=2)
        assert get_until(channel, queue)[2] == b"x"


@case()
def transient_and_persistent_messages_keep_one_order(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, durable=True)
    expected = [b"%d" % number for number in range(50)]
    for number, body in enumerate(expected):
        publish(channel, queue, body, delivery_mode=1 + number % 2)
    count_until(channel, queue, 50)
    assert drain(channel, queue) == expected
