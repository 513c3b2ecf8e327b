"""What is refused, with which code, and that nothing else suffers."""

import socket
import struct
from urllib.parse import urlparse

import pika
from cases import PATIENCE_S, case
from harness import URL, Inbox, get_until, publish, refused
from pika.exceptions import (
    AMQPConnectionError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
)


@case()
def what_does_not_exist_is_404(world):
    connection = world.connect()
    missing = world.name("missing")
    actions = {
        "consume": lambda channel: Inbox(channel, missing),
        "get": lambda channel: channel.basic_get(missing),
        "passive queue": lambda channel: channel.queue_declare(missing, passive=True),
        "passive exchange": lambda channel: channel.exchange_declare(missing, passive=True),
        "bind queue": lambda channel: channel.queue_bind(missing, "amq.direct", "k"),
        "bind exchange": lambda channel: channel.exchange_bind("amq.direct", missing, "k"),
        "purge": lambda channel: channel.queue_purge(missing),
    }
    for name, action in actions.items():
        channel = connection.channel()
        text = refused(404, ChannelClosedByBroker, lambda: action(channel))
        assert missing in text, f"{name}: {text!r} does not name '{missing}'"
    assert connection.is_open, "a channel's error is not the connection's"


@case()
def publish_to_no_exchange_is_404(world):
    channel = world.channel(confirms=True)
    refused(404, ChannelClosedByBroker, lambda: channel.basic_publish(world.name("no"), "k", b"x"))


@case()
def deleting_what_is_not_there_succeeds(world):
    channel = world.channel()
    channel.queue_delete(world.name("no"))
    channel.exchange_delete(world.name("no"))


@case()
def another_declaration_of_the_same_name_is_406(world):
    connection = world.connect()
    channel = connection.channel()
    queue = world.queue(channel, {"x-max-length": 5}, durable=True)
    exchange = world.exchange(channel, "direct")
    for action in (
        lambda c: c.queue_declare(queue, durable=False, arguments={"x-max-length": 5}),
        lambda c: c.queue_declare(queue, durable=True, arguments={"x-max-length": 6}),
        lambda c: c.queue_declare(queue, durable=True),
        lambda c: c.exchange_declare(exchange, "fanout"),
        lambda c: c.exchange_declare(exchange, "direct", durable=True),
    ):
        refused(406, ChannelClosedByBroker, lambda: action(connection.channel()))
    connection.channel().queue_declare(queue, durable=True, arguments={"x-max-length": 5})


@case()
def the_text_of_a_406_names_the_argument_and_both_values(world):
    connection = world.connect()
    queue = world.queue(connection.channel(), {"x-max-length": 5}, durable=True)
    five, one, dead = (
        f"the value '{value}' of type '{kind}'"
        for value, kind in (("5", "signedint"), ("1", "signedint"), ("e", "longstr"))
    )
    has = {"x-max-length": 5}
    for durable, arguments, name, received, current in (
        (False, has, "durable", "'false'", "'true'"),
        (True, {"x-max-length": 6}, "x-max-length", "'6'", "'5'"),
        (True, {}, "x-max-length", "none", five),
        (True, {**has, "x-message-ttl": 1}, "x-message-ttl", one, "none"),
        (True, {**has, "x-dead-letter-exchange": "e"}, "x-dead-letter-exchange", dead, "none"),
    ):
        said = refused(
            406,
            ChannelClosedByBroker,
            lambda: connection.channel().queue_declare(queue, durable=durable, arguments=arguments),
        )
        where = f"inequivalent arg '{name}' for queue '{queue}' in vhost '/'"
        expected = f"PRECONDITION_FAILED - {where}: received {received} but current is {current}"
        assert said == expected, said


@case()
def a_wrong_argument_is_406(world):
    connection = world.connect()
    for arguments in (
        {"x-message-ttl": -1},
        {"x-message-ttl": "soon"},
        {"x-expires": 0},
        {"x-max-length": -1},
        {"x-max-priority": 256},
        {"x-overflow": "explode"},
        {"x-dead-letter-routing-key": "k"},
    ):
        declare = lambda: connection.channel().queue_declare(world.name(), arguments=arguments)
        refused(406, ChannelClosedByBroker, declare)


@case()
def an_unknown_delivery_tag_is_406(world):
    connection = world.connect()
    channel = connection.channel()
    queue = world.queue(channel)
    publish(channel, queue, b"x")
    tag = get_until(channel, queue, auto_ack=False)[0].delivery_tag
    channel.basic_ack(tag)
    channel.basic_ack(tag)
    refused(406, ChannelClosedByBroker, lambda: channel.basic_get(queue))
    assert connection.is_open


@case()
def reserved_names_are_403(world):
    connection = world.connect()
    refused(403, ChannelClosedByBroker, lambda: connection.channel().queue_declare("amq.mine"))
    declare = lambda: connection.channel().exchange_declare("amq.mine", "direct")
    refused(403, ChannelClosedByBroker, declare)
    bind = lambda: connection.channel().queue_bind(world.queue(connection.channel()), "", "k")
    refused(403, ChannelClosedByBroker, bind)


@case()
def conditional_deletes_are_406(world):
    connection = world.connect()
    channel = connection.channel()
    channel.confirm_delivery()
    queue, exchange = world.queue(channel), world.exchange(channel, "direct")
    channel.queue_bind(queue, exchange, "k")
    publish(channel, queue, b"x")
    delete_queue = lambda: connection.channel().queue_delete(queue, if_empty=True)
    refused(406, ChannelClosedByBroker, delete_queue)
    delete_exchange = lambda: connection.channel().exchange_delete(exchange, if_unused=True)
    refused(406, ChannelClosedByBroker, delete_exchange)
    Inbox(channel, queue)
    delete_used = lambda: connection.channel().queue_delete(queue, if_unused=True)
    refused(406, ChannelClosedByBroker, delete_used)


@case()
def an_exclusive_queue_is_405_for_others(world):
    owner = world.channel()
    queue = owner.queue_declare("", exclusive=True).method.queue
    refused(405, ChannelClosedByBroker, lambda: world.channel().queue_declare(queue, passive=True))
    other = world.channel()
    refused(405, ChannelClosedByBroker, lambda: Inbox(other, queue))


@case()
def an_unknown_exchange_type_ends_the_connection_with_503(world):
    channel = world.channel()
    declare = lambda: channel.exchange_declare(world.name(), "x-unheard-of")
    errors = (ConnectionClosedByBroker, ChannelClosedByBroker)
    try:
        declare()
    except errors as error:
        # RabbitMQ says 503 on the connection; a precondition failure on the channel is as clear.
        assert error.reply_code in (503, 406), f"{error}"
        return
    raise AssertionError("was not refused")


@case()
def a_wrong_password_is_403(world):
    credentials = pika.PlainCredentials("guest", "wrong")
    try:
        world.connect(credentials=credentials)
    except AMQPConnectionError as error:
        assert "403" in repr(error) or "ACCESS_REFUSED" in repr(error), f"{error!r}"
        return
    raise AssertionError("was let in")


@case()
def an_unknown_virtual_host_is_530(world):
    try:
        world.connect(virtual_host="/nowhere")
    except AMQPConnectionError as error:
        assert "530" in repr(error), f"{error!r}"
        return
    raise AssertionError("was let in")


@case()
def an_internal_exchange_is_403_for_publishers(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "fanout", internal=True)
    refused(403, ChannelClosedByBroker, lambda: channel.basic_publish(exchange, "", b"x"))


@case()
def the_number_of_a_closed_channel_can_be_used_again(world):
    connection = world.connect()
    for _ in range(3):
        channel = connection.channel(channel_number=7)
        refused(404, ChannelClosedByBroker, lambda: channel.basic_get(world.name("no")))
    channel = connection.channel(channel_number=7)
    queue = world.queue(channel)
    publish(channel, queue, b"x")
    assert get_until(channel, queue)[2] == b"x"


def raw_socket():
    """A bare connection to the broker."""
    url = urlparse(URL)
    return socket.create_connection((url.hostname, url.port), timeout=PATIENCE_S)


def read_to_the_end(connection):
    """Everything up to the end of the connection, which must come."""
    data = b""
    try:
        while part := connection.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    return data


@case()
def another_protocol_header_is_answered_with_ours(world):
    for header in (b"AMQP\x00\x02\x00\x00", b"AMQP\x00\x00\x0a\x00", b"GET / HT"):
        with raw_socket() as connection:
            connection.sendall(header)
            assert read_to_the_end(connection) == b"AMQP\x00\x00\x09\x01", f"{header}"


@case()
def a_malformed_frame_ends_only_its_connection(world):
    bystander = world.channel()
    queue = world.queue(bystander)
    frames = (
        struct.pack(">BHI", 1, 0, 4) + b"\x00\x0a\x00\x0b" + b"\x00",
        struct.pack(">BHI", 99, 0, 0) + b"\xce",
        struct.pack(">BHI", 1, 0, 0xFFFFFFFF) + b"x",
        struct.pack(">BHI", 1, 0, 4) + b"\xff\xff\xff\xff\xce",
        struct.pack(">BHI", 3, 5, 1) + b"x\xce",
    )
    for frame in frames:
        with raw_socket() as connection:
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            connection.sendall(frame)
            connection.shutdown(socket.SHUT_WR)
            read_to_the_end(connection)
    publish(bystander, queue, b"x")
    assert get_until(bystander, queue)[2] == b"x"
