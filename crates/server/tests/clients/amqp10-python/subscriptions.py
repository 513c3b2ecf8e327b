"""Durable subscriptions over connections."""

from cases import case
from harness import quiet, send, take
from proton import symbol
from proton.reactor import DurableSubscription, ReceiverOption, SenderOption


class TopicSource(ReceiverOption):
    """Says that the source is a topic."""

    def apply(self, receiver):
        receiver.source.capabilities.put_object(symbol("topic"))


class TopicTarget(SenderOption):
    """Says that the target is a topic."""

    def apply(self, sender):
        sender.target.capabilities.put_object(symbol("topic"))


def subscribe(world, container, topic):
    """A connection of that container, and its durable subscription `inbox`."""
    connection = world.connect(container_id=container)
    options = [TopicSource(), DurableSubscription()]
    return connection, connection.create_receiver(topic, credit=10, name="inbox", options=options)


@case()
def a_durable_subscription_keeps_messages(world):
    topic, container = world.name(), world.name()
    connection, receiver = subscribe(world, container, topic)
    receiver.detach()
    connection.close()
    send(world.connect(), topic, "meanwhile", options=TopicTarget())
    connection, receiver = subscribe(world, container, topic)
    assert take(receiver, 1) == ["meanwhile"]
    receiver.close()
    connection.close()
    send(world.connect(), topic, "lost", options=TopicTarget())
    _, receiver = subscribe(world, container, topic)
    quiet(receiver)


@case()
def subscribers_each_get_everything(world):
    topic = world.name()
    receivers = [world.connect().create_receiver(topic, credit=10, options=TopicSource()) for _ in range(3)]
    send(world.connect(), topic, 1, 2, options=TopicTarget())
    for receiver in receivers:
        assert take(receiver, 2) == [1, 2]
