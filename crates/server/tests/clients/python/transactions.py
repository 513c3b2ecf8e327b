"""Transactions over publishes and settles, also over several queues."""

from cases import SILENCE_S, case
from harness import Inbox, count_until, drain, get_until, publish, refused
from pika.exceptions import ChannelClosedByBroker


def transactional(world):
    channel = world.channel()
    channel.tx_select()
    return channel


@case()
def nothing_is_seen_before_commit(world):
    channel, other = transactional(world), world.channel()
    one, two = world.queue(channel, durable=True), world.queue(channel, durable=True)
    publish(channel, one, b"1", b"2", delivery_mode=2)
    publish(channel, two, b"3", delivery_mode=2)
    inbox = Inbox(other, one)
    assert inbox.quiet() == []
    count_until(other, two, 0)
    channel.tx_commit()
    inbox.wait(2)
    assert inbox.bodies() == [b"1", b"2"]
    assert drain(other, two) == [b"3"]


@case()
def a_rollback_forgets_publishes(world):
    channel = transactional(world)
    queue = world.queue(channel)
    publish(channel, queue, b"forgotten")
    channel.tx_rollback()
    publish(channel, queue, b"kept")
    channel.tx_commit()
    other = world.channel()
    count_until(other, queue, 1)
    assert drain(other, queue) == [b"kept"]


@case()
def a_settle_takes_effect_at_commit(world):
    connection = world.connect()
    channel = connection.channel()
    channel.tx_select()
    queue = world.queue(channel)
    publish(world.channel(confirms=True), queue, b"1", b"2")
    tags = [get_until(channel, queue, auto_ack=False)[0].delivery_tag for _ in range(2)]
    channel.basic_ack(tags[0])
    channel.tx_commit()
    channel.basic_ack(tags[1])
    channel.close()
    # The second was acked and never committed: it is back.
    method, _, body = get_until(connection.channel(), queue)
    assert body == b"2" and method.redelivered


@case()
def a_rollback_forgets_settles(world):
    channel = transactional(world)
    queue = world.queue(channel)
    publish(world.channel(confirms=True), queue, b"1")
    tag = get_until(channel, queue, auto_ack=False)[0].delivery_tag
    channel.basic_ack(tag)
    channel.tx_rollback()
    # It is unsettled still, so it can be settled once more.
    channel.basic_nack(tag, requeue=True)
    channel.tx_commit()
    count_until(world.channel(), queue, 1)


@case()
def consume_and_forward_is_one_step(world):
    channel = transactional(world)
    source, target = world.queue(channel, durable=True), world.queue(channel, durable=True)
    publish(world.channel(confirms=True), source, b"work", delivery_mode=2)
    method, _, body = get_until(channel, source, auto_ack=False)
    publish(channel, target, body + b" done", delivery_mode=2)
    channel.basic_ack(method.delivery_tag)
    channel.tx_commit()
    other = world.channel()
    count_until(other, target, 1)
    count_until(other, source, 0)
    assert drain(other, target) == [b"work done"]


@case()
def a_lost_connection_rolls_back(world):
    channel = transactional(world)
    queue = world.queue(channel, durable=True)
    publish(channel, queue, b"x", delivery_mode=2)
    channel.connection.process_data_events(time_limit=SILENCE_S)
    channel.connection.close()
    count_until(world.channel(), queue, 0)


@case()
def many_operations_fit_one_transaction(world):
    channel = transactional(world)
    queues = [world.queue(channel, durable=True) for _ in range(5)]
    for number in range(1000):
        publish(channel, queues[number % 5], b"%d" % number, delivery_mode=2)
    channel.tx_commit()
    other = world.channel()
    for offset, queue in enumerate(queues):
        count_until(other, queue, 200)
        assert drain(other, queue) == [b"%d" % number for number in range(offset, 1000, 5)]


@case()
def commit_without_select_is_406(world):
    connection = world.connect()
    refused(406, ChannelClosedByBroker, lambda: connection.channel().tx_commit())
    refused(406, ChannelClosedByBroker, lambda: connection.channel().tx_rollback())


@case()
def confirms_and_transactions_exclude_each_other(world):
    channel = transactional(world)
    refused(406, ChannelClosedByBroker, channel.confirm_delivery)
    other = world.channel(confirms=True)
    refused(406, ChannelClosedByBroker, other.tx_select)


@case()
def a_mandatory_message_is_returned_at_commit(world):
    channel = transactional(world)
    returned = []
    channel.add_on_return_callback(lambda *arguments: returned.append(arguments[3]))
    channel.basic_publish("", world.name("nowhere"), b"x", mandatory=True)
    channel.connection.process_data_events(time_limit=SILENCE_S)
    assert returned == []
    channel.tx_commit()
    channel.connection.process_data_events(time_limit=SILENCE_S)
    assert returned == [b"x"]
