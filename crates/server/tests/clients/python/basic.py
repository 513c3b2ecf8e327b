"""The plain way: connect, declare, publish, get, consume, settle, close."""

from cases import case
from harness import Inbox, count_until, drain, get_until, publish


@case()
def the_broker_says_what_it_is_and_can(world):
    properties = world.connect()._impl.server_properties
    for key in ("product", "version", "platform", "capabilities"):
        assert key in properties, f"no server property '{key}'"
    for name in (
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities",
        "authentication_failure_close",
        "per_consumer_qos",
        "direct_reply_to",
    ):
        assert properties["capabilities"].get(name) is True, f"capability '{name}' is not offered"


@case()
def what_is_published_is_got(world):
    channel = world.channel()
    queue = world.queue(channel)
    publish(channel, queue, b"one")
    method, _, body = get_until(channel, queue, auto_ack=False)
    assert body == b"one" and method.routing_key == queue and method.exchange == ""
    assert not method.redelivered and method.message_count == 0
    channel.basic_ack(method.delivery_tag)
    assert channel.basic_get(queue)[0] is None


@case()
def a_queue_without_a_name_gets_one(world):
    channel = world.channel()
    first = channel.queue_declare("", exclusive=True).method.queue
    second = channel.queue_declare("", exclusive=True).method.queue
    assert first.startswith("amq.gen-") and first != second
    # The empty name stands for the queue this channel declared last.
    channel.basic_publish("", second, b"x")
    assert get_until(channel, "")[2] == b"x"


@case()
def declare_says_how_many_messages_and_consumers(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    publish(channel, queue, b"1", b"2", b"3")
    count_until(channel, queue, 3)
    Inbox(channel, queue).wait(3)
    answer = channel.queue_declare(queue, passive=True).method
    assert (answer.message_count, answer.consumer_count) == (0, 1)


@case()
def messages_are_consumed_in_order_and_acked(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    expected = [b"%d" % number for number in range(100)]
    publish(channel, queue, *expected)
    inbox = Inbox(channel, queue)
    inbox.wait(100)
    assert inbox.bodies() == expected
    assert [m.delivery_tag for m, _, _ in inbox.got] == list(range(1, 101))
    inbox.ack_all()
    channel.close()
    count_until(world.channel(), queue, 0)


@case()
def what_is_not_acked_returns_when_the_channel_closes(world):
    connection = world.connect()
    channel = connection.channel()
    queue = world.queue(channel)
    publish(channel, queue, b"a", b"b", b"c")
    inbox = Inbox(channel, queue)
    inbox.wait(3)
    channel.basic_ack(2)
    channel.close()
    again = Inbox(connection.channel(), queue)
    again.wait(2)
    assert [(m.redelivered, body) for m, _, body in again.got] == [(True, b"a"), (True, b"c")]


@case()
def what_is_not_acked_returns_when_the_connection_goes(world):
    first = world.channel()
    queue = world.queue(first)
    publish(first, queue, b"a")
    Inbox(first, queue).wait(1)
    world.cut(first.connection)
    method, _, body = get_until(world.channel(), queue)
    assert method.redelivered and body == b"a"


@case()
def auto_ack_settles_at_once(world):
    channel = world.channel()
    queue = world.queue(channel)
    publish(channel, queue, b"a", b"b")
    Inbox(channel, queue, auto_ack=True).wait(2)
    channel.close()
    count_until(world.channel(), queue, 0)


@case()
def nack_and_reject_requeue_or_discard(world):
    channel = world.channel()
    queue = world.queue(channel)
    publish(channel, queue, b"a", b"b", b"c", b"d")
    tags = [get_until(channel, queue, auto_ack=False)[0].delivery_tag for _ in range(4)]
    channel.basic_nack(tags[0], requeue=True)
    channel.basic_reject(tags[1], requeue=True)
    channel.basic_nack(tags[2], requeue=False)
    channel.basic_reject(tags[3], requeue=False)
    count_until(channel, queue, 2)
    assert drain(channel, queue) == [b"a", b"b"]


@case()
def nack_multiple_requeues_to_the_original_places(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    publish(channel, queue, b"1", b"2", b"3", b"4", b"5")
    tags = [get_until(channel, queue, auto_ack=False)[0].delivery_tag for _ in range(3)]
    channel.basic_nack(tags[1], multiple=True, requeue=True)
    count_until(channel, queue, 4)
    channel.basic_nack(tags[2], requeue=True)
    count_until(channel, queue, 5)
    assert drain(channel, queue) == [b"1", b"2", b"3", b"4", b"5"]


@case()
def recover_requeues_what_is_unsettled(world):
    channel = world.channel()
    queue = world.queue(channel)
    publish(channel, queue, b"a", b"b")
    for _ in range(2):
        get_until(channel, queue, auto_ack=False)
    channel.basic_recover(requeue=True)
    method, _, body = get_until(channel, queue)
    assert method.redelivered and body == b"a"
    assert get_until(channel, queue)[2] == b"b"


@case()
def a_consumer_is_cancelled_by_its_tag(world):
    channel = world.channel()
    queue = world.queue(channel)
    inbox = Inbox(channel, queue, consumer_tag="mine")
    assert inbox.tag == "mine"
    publish(channel, queue, b"a")
    inbox.wait(1)
    channel.basic_cancel("mine")
    publish(channel, queue, b"b")
    count_until(channel, queue, 1)
    assert inbox.bodies() == [b"a"]
    channel.basic_ack(1)


@case()
def purge_drops_what_is_ready(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    publish(channel, queue, b"a", b"b", b"c")
    assert get_until(channel, queue, auto_ack=False)[2] == b"a"
    assert channel.queue_purge(queue).method.message_count == 2
    count_until(channel, queue, 0)
    channel.basic_nack(1, requeue=True)
    count_until(channel, queue, 1)


@case()
def flow_stops_and_resumes_nothing_else(world):
    channel = world.channel()
    queue = world.queue(channel)
    assert channel.flow(True) is True
    publish(channel, queue, b"a")
    assert get_until(channel, queue)[2] == b"a"


@case()
def many_channels_share_a_connection(world):
    connection = world.connect()
    channels = [connection.channel() for _ in range(50)]
    queue = world.queue(channels[0])
    for number, channel in enumerate(channels):
        channel.confirm_delivery()
        publish(channel, queue, b"%d" % number)
    assert sorted(map(int, drain(channels[7], queue))) == list(range(50))
    for channel in channels:
        channel.close()
    assert connection.channel().channel_number >= 1


@case()
def heartbeats_keep_an_idle_connection(world):
    connection = world.connect(heartbeat=1)
    channel = connection.channel()
    connection.process_data_events(time_limit=2.5)
    queue = world.queue(channel)
    publish(channel, queue, b"alive")
    assert get_until(channel, queue)[2] == b"alive"


@case()
def negotiated_limits_are_kept(world):
    channel = world.channel(frame_max=4096, channel_max=5)
    tuned = channel.connection._impl.params
    assert (tuned.frame_max, tuned.channel_max) == (4096, 5)
    queue = world.queue(channel)
    body = bytes(range(256)) * 64
    publish(channel, queue, body)
    assert get_until(channel, queue)[2] == body


@case()
def the_secret_of_a_connection_can_be_renewed(world):
    connection = world.connect()
    connection.update_secret("guest", "because it is due")
    assert connection.channel().is_open
