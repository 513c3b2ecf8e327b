"""Data that rots while it waits: its queue stops, and everybody hears of it."""

import glob
import json
import os

import pika
from cases import PROGRAM, case, command
from harness import SMALL_DISK, SMALL_URL, Inbox, refused, wait_for
from pika.exceptions import ChannelClosedByBroker

COUNT, DAMAGED = 40, 30


def damage(mark):
    """Changes a message where it lies in the journal."""
    for path in glob.glob(os.path.join(SMALL_DISK, "**", "*.segment"), recursive=True):
        with open(path, "r+b") as file:
            at = file.read().find(mark)
            if at >= 0:
                file.seek(at)
                file.write(b"X")
                return
    raise AssertionError(f"{mark} is nowhere in the journal")


def listed(name):
    """The queue as an operator sees it."""
    rows = json.loads(command("queue", "list", "--json", "--data", os.path.join(SMALL_DISK, "data")))
    return next(row for row in rows if row["name"] == name)


@case(ours=True, needs=SMALL_DISK and PROGRAM)
def a_queue_stops_at_what_cannot_be_read_and_its_consumers_are_cancelled(world):
    connection = pika.BlockingConnection(pika.URLParameters(SMALL_URL))
    channel = connection.channel()
    channel.confirm_delivery()
    name = world.name("rotten")
    channel.queue_declare(name, durable=True)
    for number in range(COUNT):
        body = b"%s-%03d-" % (name.encode(), number) + bytes(100_000)
        channel.basic_publish("", name, body, pika.BasicProperties(delivery_mode=2))
    assert listed(name)["state"] == "running"
    damage(b"%s-%03d-" % (name.encode(), DAMAGED))
    inbox = Inbox(channel, name, auto_ack=True)
    wait_for(connection, lambda: inbox.cancelled, "basic.cancel")
    assert len(inbox.got) == DAMAGED, len(inbox.got)
    row = listed(name)
    assert (row["state"], row["ready"], row["consumers"]) == ("stopped", COUNT - DAMAGED, 0), row
    assert row["stopped_at"]["segment"] > 0 and row["stopped_at"]["offset"] >= 0, row
    refused(506, ChannelClosedByBroker, lambda: channel.basic_get(name))
    channel = connection.channel()
    channel.queue_purge(name)
    assert listed(name)["state"] == "running"
    channel.queue_delete(name)
    connection.close()
