"""Durability by name: the argument x-durability, as clients and operators see it."""

import json

import pika
from cases import PROGRAM, administer, case
from harness import get_until, refused
from pika.exceptions import ChannelClosedByBroker

LEVELS = ("flushed", "buffered", "memory")


@case(ours=True)
def each_level_takes_confirms_and_gives_back(world):
    channel = world.channel(confirms=True)
    for level in LEVELS:
        queue = world.queue(channel, {"x-durability": level}, durable=True)
        for number in range(200):
            properties = pika.BasicProperties(delivery_mode=2)
            channel.basic_publish("", queue, str(number).encode(), properties, mandatory=True)
        for number in range(200):
            assert get_until(channel, queue)[2] == str(number).encode(), level


@case(ours=True)
def another_level_is_406_and_so_is_none_that_exists(world):
    connection = world.connect()
    queue = world.queue(connection.channel(), {"x-durability": "buffered"}, durable=True)
    for arguments in ({}, {"x-durability": "memory"}, {"x-durability": "written"}, {"x-durability": 1}):
        channel = connection.channel()
        text = refused(
            406,
            ChannelClosedByBroker,
            lambda: channel.queue_declare(queue, durable=True, arguments=arguments),
        )
        assert "x-durability" in text, text
    # The default may be said, too.
    queue = world.queue(connection.channel(), {"x-durability": "flushed"}, durable=True)
    connection.channel().queue_declare(queue, durable=True)


@case(ours=True, needs=PROGRAM)
def operators_see_and_choose_it(world):
    channel = world.channel()
    names = {}
    for level in LEVELS:
        names[world.queue(channel, {"x-durability": level}, durable=True)] = level
    names[world.queue(channel)] = "memory"
    own = world.name("q")
    administer("queue", "add", own, "--durability", "buffered")
    names[own] = "buffered"
    rows = {row["name"]: row for row in json.loads(administer("queue", "list", "--json"))}
    for name, level in names.items():
        assert rows[name]["durability"] == level, rows[name]
        assert rows[name]["state"] == "running" and rows[name]["stopped_at"] is None
    shown = administer("queue", "list")
    assert "durability" in shown.splitlines()[0].lower() and "buffered" in shown
    channel.queue_delete(own)
