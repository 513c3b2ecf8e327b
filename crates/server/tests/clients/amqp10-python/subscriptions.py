"""Durable subscriptions over connections."""

import ctypes
import os
import socket
import struct

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


# What Linux calls them; Python's socket module does not.
SO_ATTACH_FILTER = 26
SO_DETACH_FILTER = 27
# The capability of a connection that has its container id to itself, which JMS clients ask for.
SOLE = [symbol("sole-connection-for-container")]


def sockets():
    """The files of this process's sockets."""
    paths = [f"/proc/self/fd/{file}" for file in os.listdir("/proc/self/fd")]
    # The one by which they were listed is closed.
    targets = {path: os.readlink(path) for path in paths if os.path.lexists(path)}
    return {int(path.rsplit("/", 1)[1]) for path, target in targets.items() if target.startswith("socket:")}


def set_deaf(files, is_deaf):
    """Has the system drop what comes for these sockets, and acknowledge nothing: the network seems gone."""
    drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
    program = struct.pack("HL", 1, ctypes.addressof(drop_all))
    for file in files:
        with socket.socket(fileno=os.dup(file)) as duplicate:
            if is_deaf:
                duplicate.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
            else:
                duplicate.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)


@case(ours=True)
def a_lost_connection_gives_its_subscription_up(world):
    for capabilities in [None, SOLE]:
        topic, container = world.name(), world.name()
        before = sockets()
        lost = world.connect(container_id=container, desired_capabilities=capabilities)
        options = [TopicSource(), DurableSubscription()]
        lost.create_receiver(topic, credit=10, name="inbox", options=options)
        files = sockets() - before
        send(world.connect(), topic, "kept", options=TopicTarget())
        set_deaf(files, True)
        try:
            # The broker does not know yet that the first one is lost.
            connection = world.connect(container_id=container, desired_capabilities=capabilities)
            receiver = connection.create_receiver(topic, credit=10, name="inbox", options=options)
            assert take(receiver, 1) == ["kept"]
        finally:
            set_deaf(files, False)


@case()
def subscribers_each_get_everything(world):
    topic = world.name()
    receivers = [world.connect().create_receiver(topic, credit=10, options=TopicSource()) for _ in range(3)]
    send(world.connect(), topic, 1, 2, options=TopicTarget())
    for receiver in receivers:
        assert take(receiver, 2) == [1, 2]
