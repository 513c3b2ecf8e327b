"""Routing: every type of exchange, bindings between exchanges, alternates, CC and BCC."""

import pika
from cases import case
from harness import count_until, drain, get_until


def bound(world, channel, exchange, *keys, arguments=None):
    """A fresh queue bound with each of the keys."""
    queue = world.queue(channel)
    for key in keys:
        channel.queue_bind(queue, exchange, key, arguments)
    return queue


def send(channel, exchange, key, body, headers=None):
    channel.basic_publish(exchange, key, body, pika.BasicProperties(headers=headers))


@case()
def the_standard_exchanges_are_there(world):
    channel = world.channel()
    for name, kind in (
        ("amq.direct", "direct"),
        ("amq.fanout", "fanout"),
        ("amq.topic", "topic"),
        ("amq.headers", "headers"),
        ("amq.match", "headers"),
    ):
        channel.exchange_declare(name, kind, durable=True)


@case()
def direct_routes_by_the_same_key(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "direct")
    one, both = bound(world, channel, exchange, "a"), bound(world, channel, exchange, "a", "b")
    for key in ("a", "b", "c", "A"):
        send(channel, exchange, key, key.encode())
    assert drain(channel, one) == [b"a"] and drain(channel, both) == [b"a", b"b"]


@case()
def two_bindings_that_match_are_one_copy(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "topic")
    queue = bound(world, channel, exchange, "#", "a.*", "a.b")
    send(channel, exchange, "a.b", b"once")
    assert drain(channel, queue) == [b"once"]


@case()
def fanout_routes_to_all(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "fanout")
    queues = [bound(world, channel, exchange, "") for _ in range(10)]
    send(channel, exchange, "whatever", b"x")
    assert [drain(channel, queue) for queue in queues] == [[b"x"]] * 10


@case()
def topic_patterns_match_words(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "topic")
    table = {
        "a.b.c": ["a.b.c"],
        "a.*.c": ["a.b.c", "a.x.c", "a..c"],
        "#": ["", "a", "a.b.c", "a.x.c", "a..c", "x.b.c.d", "a.b"],
        "a.#": ["a", "a.b.c", "a.x.c", "a..c", "a.b"],
        "#.c": ["a.b.c", "a.x.c", "a..c"],
        "*.b.#": ["a.b.c", "x.b.c.d", "a.b"],
        "*": ["a"],
        "a.#.#.c": ["a.b.c", "a.x.c", "a..c"],
    }
    queues = {pattern: bound(world, channel, exchange, pattern) for pattern in table}
    # RabbitMQ takes an empty routing key as no word, not as one empty word.
    keys = ["", "a", "a.b.c", "a.x.c", "a..c", "x.b.c.d", "a.b"]
    for key in keys:
        send(channel, exchange, key, key.encode())
    for pattern, queue in queues.items():
        found = [body.decode() for body in drain(channel, queue)]
        assert found == [key for key in keys if key in table[pattern]], f"'{pattern}': {found}"


@case()
def an_unbound_pattern_matches_no_more(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "topic")
    queue = bound(world, channel, exchange, "a.*", "b.#")
    channel.queue_unbind(queue, exchange, "a.*")
    channel.queue_unbind(queue, exchange, "never.bound")
    for key in ("a.x", "b.x.y"):
        send(channel, exchange, key, key.encode())
    assert drain(channel, queue) == [b"b.x.y"]


@case()
def headers_match_all_or_any(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "headers")
    wanted = {"a": 1, "b": "two"}
    queues = {
        match: bound(world, channel, exchange, "", arguments={"x-match": match, **wanted})
        for match in ("all", "any")
    }
    default = bound(world, channel, exchange, "", arguments=wanted)
    messages = {
        b"both": {"a": 1, "b": "two", "c": 3},
        b"one": {"a": 1},
        b"other value": {"a": 2, "b": "two"},
        b"none": {"c": 3},
        b"no headers": None,
    }
    for body, headers in messages.items():
        send(channel, exchange, "", body, headers)
    assert drain(channel, queues["all"]) == [b"both"]
    assert drain(channel, default) == [b"both"]
    assert drain(channel, queues["any"]) == [b"both", b"one", b"other value"]


@case()
def headers_with_x_count_only_where_asked(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "headers")
    queues = {
        match: bound(world, channel, exchange, "", arguments={"x-match": match, "x-kind": "k", "a": 1})
        for match in ("all", "any", "all-with-x", "any-with-x")
    }
    send(channel, exchange, "", b"a", {"a": 1})
    send(channel, exchange, "", b"x", {"x-kind": "k"})
    send(channel, exchange, "", b"ax", {"a": 1, "x-kind": "k"})
    expected = {
        "all": [b"a", b"ax"],
        "any": [b"a", b"ax"],
        "all-with-x": [b"ax"],
        "any-with-x": [b"a", b"x", b"ax"],
    }
    assert {match: drain(channel, queue) for match, queue in queues.items()} == expected


@case()
def a_header_without_a_value_asks_only_for_its_presence(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "headers")
    queue = bound(world, channel, exchange, "", arguments={"x-match": "all", "a": None})
    send(channel, exchange, "", b"yes", {"a": "anything"})
    send(channel, exchange, "", b"no", {"b": 1})
    assert drain(channel, queue) == [b"yes"]


@case()
def the_default_exchange_routes_to_the_queue_of_that_name(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    send(channel, "", queue, b"x")
    assert drain(channel, queue) == [b"x"]


@case()
def exchanges_are_bound_to_exchanges(world):
    channel = world.channel(confirms=True)
    source, middle = world.exchange(channel, "topic"), world.exchange(channel, "fanout")
    target = world.exchange(channel, "direct")
    channel.exchange_bind(middle, source, "a.#")
    channel.exchange_bind(target, middle)
    queue = bound(world, channel, target, "a.b")
    send(channel, source, "a.b", b"passes")
    send(channel, source, "a.c", b"stops at target")
    send(channel, source, "b.b", b"stops at source")
    assert drain(channel, queue) == [b"passes"]
    channel.exchange_unbind(middle, source, "a.#")
    send(channel, source, "a.b", b"no more")
    assert drain(channel, queue) == []


@case()
def a_cycle_of_exchanges_routes_once(world):
    channel = world.channel(confirms=True)
    one, two = world.exchange(channel, "fanout"), world.exchange(channel, "fanout")
    channel.exchange_bind(one, two)
    channel.exchange_bind(two, one)
    queue = bound(world, channel, one, "")
    channel.queue_bind(queue, two)
    send(channel, one, "", b"once")
    assert drain(channel, queue) == [b"once"]


@case()
def what_nobody_takes_goes_to_the_alternate(world):
    channel = world.channel(confirms=True)
    last = world.exchange(channel, "fanout")
    second = world.exchange(channel, "direct", {"alternate-exchange": last})
    first = world.exchange(channel, "direct", {"alternate-exchange": second})
    taken, rest = bound(world, channel, first, "a"), bound(world, channel, last, "")
    for key in ("a", "b"):
        channel.basic_publish(first, key, key.encode(), mandatory=True)
    assert drain(channel, taken) == [b"a"] and drain(channel, rest) == [b"b"]


@case()
def cc_and_bcc_name_further_keys(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "direct")
    queues = {key: bound(world, channel, exchange, key) for key in ("to", "cc", "bcc")}
    headers = {"CC": ["cc"], "BCC": ["bcc"], "other": 1}
    send(channel, exchange, "to", b"x", headers)
    for key, queue in queues.items():
        method, properties, body = get_until(channel, queue)
        assert body == b"x" and method.routing_key == "to", key
        assert properties.headers == {"CC": ["cc"], "other": 1}, f"{properties.headers}"


@case()
def one_queue_gets_one_copy_of_to_and_cc(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "direct")
    queue = bound(world, channel, exchange, "to", "cc")
    send(channel, exchange, "to", b"x", {"CC": ["cc", "to"]})
    assert drain(channel, queue) == [b"x"]


@case()
def an_auto_delete_exchange_goes_with_its_last_binding(world):
    channel = world.channel()
    exchange = world.exchange(channel, "direct", auto_delete=True)
    queue = bound(world, channel, exchange, "a", "b")
    channel.queue_unbind(queue, exchange, "a")
    channel.exchange_declare(exchange, passive=True)
    channel.queue_unbind(queue, exchange, "b")
    from harness import refused
    from pika.exceptions import ChannelClosedByBroker

    refused(404, ChannelClosedByBroker, lambda: channel.exchange_declare(exchange, passive=True))


@case()
def a_deleted_queue_takes_its_bindings_with_it(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "fanout")
    queue = bound(world, channel, exchange, "")
    channel.queue_delete(queue)
    channel.queue_declare(queue)
    send(channel, exchange, "", b"x")
    count_until(channel, queue, 0)


@case()
def a_deleted_exchange_takes_its_bindings_with_it(world):
    channel = world.channel(confirms=True)
    exchange = world.exchange(channel, "fanout")
    queue = bound(world, channel, exchange, "")
    channel.exchange_delete(exchange)
    channel.exchange_declare(exchange, "fanout")
    send(channel, exchange, "", b"x")
    count_until(channel, queue, 0)
