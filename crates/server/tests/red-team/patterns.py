"""Attacks on the work per message: patterns that nearly match, and very many recipients."""

import random

from attack import attack
from wire import Amqp, Closed, Nats, long, method, publish, short, table

WORST_S = 2.0


def bind(queue, exchange, key):
    return method(1, 50, 20, b"\0\0" + short(queue) + short(exchange) + short(key) + b"\0" + table({}))


def declare_exchange(client, name, kind):
    client.send(method(1, 40, 10, b"\0\0" + short(name) + short(kind) + b"\0" + table({})))
    client.expect(40, 11)


def lines_until_pong(client):
    """The lines, errors among them, that come before the answer to a PING."""
    client.send(b"PING\r\n")
    lines = []
    while True:
        try:
            line = client.line().decode()
        except Closed as error:
            line = str(error)
            if not line.startswith("-ERR"):
                raise
        if line == "PONG":
            return lines
        lines.append(line)


def must_be_quick(innocent):
    assert max(innocent.worst.values()) < WORST_S, innocent.worst


@attack(grows_mb_max=100)
def near_misses_are_bounded_and_ordinary_patterns_are_taken(broker, innocent):
    broker.add_user("low", "^$", "^amq.topic$", "^amq.topic$")
    subscriber = Nats(broker.nats, user="low", password="pw")
    publisher = Nats(broker.nats, user="low", password="pw")
    words = 13
    subjects = [
        ".".join("*" if number >> bit & 1 else "a" for bit in range(words)) + f".end{number}"
        for number in range(1 << words)
    ]
    for at in range(0, len(subjects), 1024):
        several = enumerate(subjects[at : at + 1024], at)
        subscriber.send(b"".join(f"SUB {subject} {sid}\r\n".encode() for sid, subject in several))
    refused = lines_until_pong(subscriber)
    assert refused and all(line.startswith("-ERR") for line in refused), refused[:3]
    subscriber.send(b"SUB a.*.c.> 99999\r\n")
    assert lines_until_pong(subscriber) == []
    for number in range(50):
        publisher.send(f"PUB {'a.' * words}no{number} 0\r\n\r\n".encode())
    assert lines_until_pong(publisher) == []
    must_be_quick(innocent)


@attack(grows_mb_max=100)
def patterns_of_wildcards_alone_are_bounded(broker, innocent):
    random.seed(1)
    client = Amqp(broker.amqp)
    client.open()
    client.queue("many")
    declare_exchange(client, "wild", "topic")
    try:
        for number in range(2000):
            words = [random.choice("*#") for _ in range(100)]
            client.send(bind("many", "wild", ".".join(words) + f".e{number}"))
            client.expect(50, 21)
        raise AssertionError("2,000 patterns of a hundred wildcards were taken")
    except Closed as error:
        assert str(error).startswith("406"), error
    other = Amqp(broker.amqp)
    other.open()
    for number in range(20):
        other.send(publish("wild", ".".join(["a"] * 120) + f".{number}", b""))
    other.queue("done")
    must_be_quick(innocent)


@attack(grows_mb_max=150)
def a_message_to_very_many_subscribers_reaches_all_in_order(broker, innocent):
    many = 30_000
    subscriber, publisher = Nats(broker.nats), Nats(broker.nats)
    for at in range(0, many, 5000):
        subscriber.send(b"".join(b"SUB a.b %d\r\n" % sid for sid in range(at, at + 5000)))
    assert lines_until_pong(subscriber) == []
    publisher.send(b"PUB a.b 1\r\n1\r\nPUB a.b 1\r\n2\r\n")
    assert lines_until_pong(publisher) == []
    last = {}
    for _ in range(2 * many):
        _, _, sid, _ = subscriber.line().split(b" ")
        body = subscriber.line()
        assert last.get(sid, b"") < body, (sid, body)
        last[sid] = body
    assert len(last) == many and set(last.values()) == {b"2"}
    must_be_quick(innocent)


@attack(grows_mb_max=150)
def a_message_to_very_many_queues_is_confirmed_when_all_have_it(broker, innocent):
    many = 5_000
    client = Amqp(broker.amqp)
    client.open()
    declare_exchange(client, "wide", "fanout")
    for at in range(0, many, 1000):
        frames = []
        for number in range(at, at + 1000):
            fields = b"\0\0" + short(f"w{number}") + b"\x10" + table({})
            frames.append(method(1, 50, 10, fields))
        client.send(b"".join(frames))
        client.send(b"".join(bind(f"w{number}", "wide", "k") for number in range(at, at + 1000)))
        for _ in range(1000):
            client.expect(50, 21)
    client.send(method(1, 85, 10, b"\0"))
    client.expect(85, 11)
    for number in range(1, 6):
        client.send(publish("wide", "k", b"x"))
        assert client.expect(60, 80)[:8] == number.to_bytes(8, "big")
    for queue in ("w0", f"w{many - 1}"):
        client.send(method(1, 50, 10, b"\0\0" + short(queue) + b"\x01" + long(b"")))
        fields = client.expect(50, 11)
        assert fields[1 + fields[0] :][:4] == (5).to_bytes(4, "big"), queue
    must_be_quick(innocent)


@attack(grows_mb_max=150)
def a_long_chain_of_exchanges_and_what_ends_with_it_hold_nobody_up(broker, innocent):
    length, patterns = 300, 40
    client = Amqp(broker.amqp)
    client.open()
    client.queue("end")
    for at in range(length):
        name = short(f"chain{at}")
        frames = [method(1, 40, 10, b"\0\0" + name + short("topic") + b"\x10" + table({}))]
        for number in range(patterns):
            words = ["*" if number >> bit & 1 else "a" for bit in range(6)]
            key = short(".".join(words) + f".{number}")
            frames.append(method(1, 50, 20, b"\0\0" + short("end") + name + key + b"\1" + table({})))
        if at > 0:
            before = short(f"chain{at - 1}")
            frames.append(method(1, 40, 30, b"\0\0" + name + before + short("#") + b"\1" + table({})))
        client.send(b"".join(frames))
    client.send(bind("end", f"chain{length - 1}", "#"))
    client.expect(50, 21)
    client.send(method(1, 85, 10, b"\0"))
    client.expect(85, 11)
    for number in range(1, 21):
        client.send(publish("chain0", "a.a.a.a.a.a.none", b"x"))
    confirmed = 0
    while confirmed < 20:
        fields = client.expect(60, 80)
        confirmed = int.from_bytes(fields[:8], "big")
    # The queue goes with its 12,000 bindings, and is not found any more.
    client.send(method(1, 50, 40, b"\0\0" + short("end") + b"\0"))
    messages = client.expect(50, 41)
    assert int.from_bytes(messages[:4], "big") == 20, messages
    client.send(publish("chain0", "a.a.a.a.a.a.none", b"x"))
    client.expect(60, 80)
    client.queue("end")
    client.send(method(1, 50, 40, b"\0\0" + short("end") + b"\0"))
    assert client.expect(50, 41)[:4] == bytes(4)
    must_be_quick(innocent)
