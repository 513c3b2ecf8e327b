"""Users, permissions and virtual hosts, administered by the program's own commands."""

import pika
from cases import PROGRAM, administer, case
from harness import get_until, publish, refused, wait_for
from pika.exceptions import AMQPConnectionError, ChannelClosedByBroker, ConnectionClosedByBroker


def add_user(world):
    """A user of a fresh name; returns its credentials."""
    name = world.name("user")
    administer("user", "add", name, text="secret")
    return pika.PlainCredentials(name, "secret")


@case(ours=True, needs=PROGRAM)
def a_user_without_permissions_is_not_let_into_a_virtual_host(world):
    credentials = add_user(world)
    try:
        world.connect(credentials=credentials)
    except AMQPConnectionError as error:
        assert "530" in repr(error) or "403" in repr(error), f"{error!r}"
        return
    raise AssertionError("was let in")


@case(ours=True, needs=PROGRAM)
def permissions_part_configure_write_and_read(world):
    credentials = add_user(world)
    patterns = ("--configure", "^mine-", "--write", "^(mine-|amq.default$)", "--read", "^mine-")
    administer("permission", "set", credentials.username, *patterns)
    connection = world.connect(credentials=credentials)
    mine, other = world.name("mine"), world.queue(world.channel())
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare(mine)
    publish(channel, mine, b"x")
    assert get_until(channel, mine)[2] == b"x"
    channel.queue_delete(mine)
    for action in (
        lambda c: c.queue_declare(world.name("other")),
        lambda c: c.basic_get(other),
        lambda c: c.queue_purge(other),
        lambda c: c.queue_delete(other),
        lambda c: c.basic_consume(other, lambda *_: None),
        lambda c: c.queue_bind(other, "amq.direct", "k"),
    ):
        refused(403, ChannelClosedByBroker, lambda: action(connection.channel()))
    confirming = connection.channel()
    confirming.confirm_delivery()
    refused(403, ChannelClosedByBroker, lambda: confirming.basic_publish("amq.fanout", "", b"x"))


@case(ours=True, needs=PROGRAM)
def routing_keys_of_an_exchange_are_narrowed_whichever_way_messages_go(world):
    credentials = add_user(world)
    administer("permission", "set", credentials.username)
    admin = world.channel()
    events, detour = world.exchange(admin, "topic"), world.exchange(admin, "fanout")
    admin.exchange_bind(events, detour)
    narrow = ("permission", "subjects", credentials.username, "--exchange", events)
    administer(*narrow, "--publish", "m.>", "--subscribe", "m.>")
    connection = world.connect(credentials=credentials)
    further = pika.BasicProperties(headers={"CC": ["secret.x"]})
    for exchange in (events, detour):
        for key, properties in (("secret.x", None), ("m.x", further)):
            channel = connection.channel()
            channel.confirm_delivery()
            send = lambda: channel.basic_publish(exchange, key, b"x", properties)
            refused(403, ChannelClosedByBroker, send)
    dead = {"x-dead-letter-exchange": events, "x-dead-letter-routing-key": "secret.x"}
    for action in (
        lambda c: c.queue_declare("", exclusive=True, arguments=dead),
        lambda c: c.exchange_declare(world.name("x"), arguments={"alternate-exchange": events}),
        lambda c: c.queue_bind(c.queue_declare("", exclusive=True).method.queue, events, "secret.#"),
    ):
        refused(403, ChannelClosedByBroker, lambda: action(connection.channel()))
    # What is under way is judged again: a binding of a queue of its own, and a transaction.
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, events, "m.a.#")
    channel.queue_bind(queue, events, "m.b.#")
    transaction = connection.channel()
    transaction.tx_select()
    transaction.basic_publish(events, "m.a.x", b"x")
    administer(*narrow, "--publish", "m.b.>", "--subscribe", "m.b,m.b.>")
    refused(403, ChannelClosedByBroker, transaction.tx_commit)
    for key in ("m.a.x", "m.b.x"):
        admin.basic_publish(events, key, key.encode())
    assert get_until(channel, queue)[2] == b"m.b.x"


@case(ours=True, needs=PROGRAM)
def virtual_hosts_keep_apart(world):
    host = world.name("host")
    administer("vhost", "add", host)
    administer("permission", "set", "guest", "--vhost", host)
    name = world.queue(world.channel())
    connection = world.connect(virtual_host=host)
    inside = connection.channel()
    refused(404, ChannelClosedByBroker, lambda: inside.queue_declare(name, passive=True))
    again = connection.channel()
    again.queue_declare(name)
    publish(again, name, b"inside")
    assert world.channel().basic_get(name)[0] is None
    assert get_until(again, name)[2] == b"inside"
    connection.close()
    administer("vhost", "delete", host)


@case(ours=True, needs=PROGRAM)
def a_deleted_user_cannot_log_in(world):
    credentials = add_user(world)
    administer("permission", "set", credentials.username)
    world.connect(credentials=credentials).close()
    administer("user", "delete", credentials.username)
    try:
        world.connect(credentials=credentials)
    except AMQPConnectionError:
        return
    raise AssertionError("was let in")


def is_closed_with(connection, code):
    """Whether the broker closes the connection, with that reply code."""
    try:
        wait_for(connection, lambda: False, "connection.close")
    except ConnectionClosedByBroker as error:
        return error.reply_code == code
    return False


@case(ours=True, needs=PROGRAM)
def who_is_deleted_is_disconnected(world):
    credentials = add_user(world)
    administer("permission", "set", credentials.username)
    connection, other = world.connect(credentials=credentials), world.connect()
    administer("user", "delete", credentials.username)
    assert is_closed_with(connection, 320)
    other.process_data_events(time_limit=0.1)
    assert other.is_open


@case(ours=True, needs=PROGRAM)
def a_virtual_host_goes_with_its_connections(world):
    host = world.name("host")
    administer("vhost", "add", host)
    administer("permission", "set", "guest", "--vhost", host)
    connection, other = world.connect(virtual_host=host), world.connect()
    connection.channel().queue_declare("q", durable=True)
    administer("vhost", "delete", host)
    assert is_closed_with(connection, 320)
    other.process_data_events(time_limit=0.1)
    assert other.is_open
    assert host not in administer("vhost", "list")


@case(ours=True, needs=PROGRAM)
def deleting_what_is_not_there_fails_for_an_operator(world):
    for what in ("queue", "exchange", "user", "vhost"):
        name = world.name("no")
        try:
            administer(what, "delete", name)
        except AssertionError as error:
            assert name in str(error), error
        else:
            raise AssertionError(f"{what} delete of what is not there succeeds")
