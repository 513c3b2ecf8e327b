"""Attacks on memory: what peers can make grow. Most brokers here may hold little, so little is enough."""

import select
import time

from attack import attack
from wire import Amqp, Closed, Nats, body, header, method, publish, short, table

NOTHING = "^$"
LITTLE = ["--memory-max", "64MiB"]


def send_all(client, parts):
    """Sends until the broker closes, refuses or takes no more."""
    client.socket.settimeout(2)
    try:
        for part in parts:
            client.send(part)
    except OSError:
        pass
    client.socket.settimeout(20)


def subscriptions(start, count):
    """NATS subscriptions to long subjects, with numbers from `start` on."""
    return b"".join(b"SUB %d.%s %d\r\n" % (at, b"a" * 3900, at) for at in range(start, start + count))


@attack(grows_mb_max=60)
def bodies_of_a_user_without_rights_are_not_collected(broker, innocent):
    broker.add_user("zero", NOTHING, NOTHING, NOTHING)
    client = Amqp(broker.amqp, user="zero", password="pw")
    for channel in range(1, 5):
        client.open(channel)
    for channel in range(1, 5):
        refused = b"\0\0" + short("") + short("x") + b"\0"
        client.send(method(channel, 60, 40, refused) + header(channel, 64 << 20))
        send_all(client, (body(channel, b"x" * 131000) for _ in range(150)))
    assert client.closed_with().startswith("403")


@attack(grows_mb_max=60)
def a_nats_client_told_of_an_error_is_read_no_more(broker, innocent):
    client = Nats(broker.nats)
    send_all(client, [b"PUB a 99999999\r\n"] + [b"x" * 65536] * 1600)
    try:
        while True:
            client.line()
    except (Closed, OSError) as error:
        assert "ERR" in str(error) or isinstance(error, OSError), error


@attack(LITTLE, grows_mb_max=90)
def unfinished_bodies_are_refused_where_they_are_too_many(broker, innocent):
    clients = []
    for _ in range(3):
        client = Amqp(broker.amqp)
        clients.append(client)
        for channel in range(1, 4):
            client.open(channel)
        for channel in range(1, 4):
            begun = b"\0\0" + short("") + short("x") + b"\0"
            client.send(method(channel, 60, 40, begun) + header(channel, 128 << 20))
        send_all(client, (body(1 + at % 3, b"x" * 131000) for at in range(400)))
    assert any(client.closed_with().startswith("311") for client in clients)


@attack(LITTLE, grows_mb_max=90)
def transactions_are_refused_where_they_hold_too_much(broker, innocent):
    client = Amqp(broker.amqp)
    client.open()
    client.queue("work")
    client.send(method(1, 90, 10))
    client.expect(90, 11)
    message = publish("", "work", b"x" * 100_000)
    send_all(client, (message for _ in range(1500)))
    assert client.closed_with().startswith("506")


@attack(LITTLE, grows_mb_max=110)
def arguments_are_refused_where_they_are_too_many(broker, innocent):
    broker.add_user("low")
    client = Amqp(broker.amqp, user="low", password="pw")
    client.open()
    arguments = table({"x": "y" * 100_000})
    declared = (
        method(1, 50, 10, b"\0\0" + short(f"low{number}") + b"\x10" + arguments) for number in range(1500)
    )
    send_all(client, declared)
    assert client.closed_with().startswith("506")
    shortages = [line for line in broker.errors if "memory is short" in line]
    assert len(shortages) == 1 and 'largest_user="low"' in shortages[0], broker.errors
    other = Amqp(broker.amqp)
    other.open()
    other.queue("of another user")


@attack(LITTLE, grows_mb_max=110)
def bindings_are_refused_where_they_are_too_many(broker, innocent):
    broker.add_user("low")
    client = Amqp(broker.amqp, user="low", password="pw")
    client.open()
    client.queue("low")
    ends = b"\0\0" + short("low") + short("amq.topic")

    def bind(number):
        return method(1, 50, 20, ends + short(f"a.{number}.{'k' * 230}") + b"\1" + table({}))

    starts = range(0, 120_000, 1000)
    send_all(client, (b"".join(map(bind, range(start, start + 1000))) for start in starts))
    assert client.closed_with().startswith("506")


@attack(LITTLE, grows_mb_max=110)
def subscriptions_are_refused_where_they_are_too_many(broker, innocent):
    broker.add_user("low")
    client = Nats(broker.nats, user="low", password="pw")

    send_all(client, (subscriptions(start, 100) for start in range(0, 30_000, 100)))
    try:
        while True:
            client.line()
    except Closed as error:
        assert "memory" in str(error), error


@attack(LITTLE, grows_mb_max=110)
def output_that_nobody_reads_is_bounded_in_all(broker, innocent):
    stalled = [Nats(broker.nats, receive_bytes=4096) for _ in range(6)]
    for client in stalled:
        client.send(b"SUB z.> 1\r\nPING\r\n")
        while client.line() != b"PONG":
            pass
    message = b"PUB z.a 1000\r\n" + b"x" * 1000 + b"\r\n"
    send_all(Nats(broker.nats), (message * 100 for _ in range(400)))


@attack(LITTLE, grows_mb_max=110)
def unsettled_deliveries_stop_where_they_hold_too_much(broker, innocent):
    consumer, producer = Amqp(broker.amqp), Amqp(broker.amqp)
    consumer.open()
    producer.open()
    consumer.queue("work")
    consumer.consume("work", no_ack=False)
    message = publish("", "work", b"")
    send_all(producer, (message * 1000 for _ in range(400)))
    consumer.socket.settimeout(2)
    try:
        while consumer.socket.recv(1 << 20):
            pass
    except OSError:
        pass


def wait_for_log(broker, words):
    """Waits until the broker has logged them."""
    end = time.monotonic() + 20
    while not any(words in line for line in broker.errors):
        assert time.monotonic() < end, f"no '{words}' in {broker.errors[-5:]}"
        time.sleep(0.02)


def send_until_answered(client, parts):
    """Sends until there is something to read, or the broker closes."""
    try:
        for part in parts:
            client.send(part)
            if select.select([client.socket], [], [], 0)[0]:
                return
    except OSError:
        pass


@attack(["--memory-max", "8GiB"], grows_mb_max=300, addresses_mb=320)
def what_the_system_refuses_is_refused_to_clients_until_there_is_memory(broker, innocent):
    broker.add_user("ann")
    attacker = Nats(broker.nats)
    starts = range(0, 100_000, 100)
    send_until_answered(attacker, (subscriptions(start, 100) for start in starts))
    wait_for_log(broker, "the system refuses memory")
    broker.add_user("bob")
    try:
        Nats(broker.nats)
        raise AssertionError("a connection was taken")
    except Closed as error:
        assert "memory" in str(error), error
    try:
        while True:
            attacker.line()
    except Closed as error:
        assert "memory" in str(error), error
    attacker.close()
    wait_for_log(broker, "there is memory again")
    assert innocent.refused, "the innocent were not told that their messages are refused"
    client = Amqp(broker.amqp, user="ann", password="pw")
    client.open()
    client.queue("after")
    client.consume("after")
    client.send(publish("", "after", b"x"))
    assert client.delivered() == b"x"
