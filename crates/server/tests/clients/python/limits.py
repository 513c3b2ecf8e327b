"""Bounds of queues: length, bytes, and what happens beyond them."""

from cases import case
from harness import Inbox, count_until, drain, get_until, publish
from pika.exceptions import NackError


@case()
def a_full_queue_drops_its_oldest(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-max-length": 3})
    publish(channel, queue, b"1", b"2", b"3")
    count_until(channel, queue, 3)
    publish(channel, queue, b"4", b"5")
    count_until(channel, queue, 3)
    assert drain(channel, queue) == [b"3", b"4", b"5"]


@case(ours=True)
def the_next_delivery_says_how_many_were_dropped(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-max-length": 2})
    publish(channel, queue, b"1", b"2", b"3", b"4", b"5")
    count_until(channel, queue, 2)
    told = []
    for expected in (b"4", b"5"):
        _, properties, body = get_until(channel, queue)
        assert body == expected
        told.append((properties.headers or {}).get("x-dropped-count"))
    assert told == [3, None], told


@case()
def a_queue_full_by_bytes_drops_its_oldest(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-max-length-bytes": 250})
    publish(channel, queue, *[bytes([48 + number]) * 100 for number in range(4)])
    count_until(channel, queue, 2)
    assert [body[:1] for body in drain(channel, queue)] == [b"2", b"3"]


@case()
def drop_head_can_be_said(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-max-length": 1, "x-overflow": "drop-head"})
    publish(channel, queue, b"1", b"2")
    count_until(channel, queue, 1)
    assert drain(channel, queue) == [b"2"]


@case()
def a_length_of_zero_passes_only_what_goes_out_at_once(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-max-length": 0})
    publish(channel, queue, b"lost")
    count_until(channel, queue, 0)
    inbox = Inbox(channel, queue, auto_ack=True)
    publish(channel, queue, b"passes")
    inbox.wait(1)
    assert inbox.bodies() == [b"passes"]


@case()
def only_what_is_ready_counts(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-max-length": 2})
    publish(channel, queue, b"1", b"2")
    assert get_until(channel, queue, auto_ack=False)[2] == b"1"
    assert get_until(channel, queue, auto_ack=False)[2] == b"2"
    publish(channel, queue, b"3", b"4")
    count_until(channel, queue, 2)
    assert drain(channel, queue) == [b"3", b"4"]


@case()
def bytes_can_refuse_too(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-max-length-bytes": 100, "x-overflow": "reject-publish"})
    publish(channel, queue, bytes(60), bytes(40))
    count_until(channel, queue, 2)
    try:
        publish(channel, queue, bytes(1))
    except NackError:
        return
    raise AssertionError("was confirmed beyond the bound")


@case()
def a_refusal_by_one_queue_refuses_the_message(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "fanout")
    full = world.queue(channel, {"x-max-length": 1, "x-overflow": "reject-publish"})
    free = world.queue(channel)
    for queue in (full, free):
        channel.queue_bind(queue, exchange)
    channel.basic_publish(exchange, "", b"1")
    count_until(channel, full, 1)
    try:
        channel.basic_publish(exchange, "", b"2")
    except NackError:
        count_until(channel, full, 1)
        return
    raise AssertionError("was confirmed though one queue refused it")


@case()
def a_backlog_larger_than_a_queue_keeps_in_memory_is_in_order(world):
    """96 MiB: more than the default share of one queue, so its tail waits on the disk."""
    channel = world.channel(confirms=True)
    queue = world.queue(channel, durable=True)
    body = bytes(64 << 10)
    count = 1536
    for number in range(count):
        publish(channel, queue, number.to_bytes(4, "big") + body, delivery_mode=2)
    reader = world.channel()
    reader.basic_qos(prefetch_count=50)
    next_number = 0
    for method, _, body in reader.consume(queue, inactivity_timeout=10):
        assert method is not None, f"{next_number} of {count}, then nothing"
        assert int.from_bytes(body[:4], "big") == next_number
        reader.basic_ack(method.delivery_tag)
        next_number += 1
        if next_number == count:
            break
    reader.cancel()
    count_until(reader, queue, 0)
