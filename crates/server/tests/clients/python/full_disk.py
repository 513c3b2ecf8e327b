"""A full disk: publishers are told by connection.blocked, and told again when there is room."""

import os

import pika
from cases import PATIENCE_S, case
from harness import SMALL_DISK, SMALL_URL, get_until, wait_for


def fill(path):
    """Writes until nothing more fits."""
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(bytes(64 << 10)):
                pass
        except OSError:
            pass


@case(ours=True, needs=SMALL_DISK)
def a_publisher_hears_of_a_full_disk_and_of_room(world):
    parameters = pika.URLParameters(SMALL_URL)
    parameters.blocked_connection_timeout = 6 * PATIENCE_S
    connection, consumer = pika.BlockingConnection(parameters), pika.BlockingConnection(parameters)
    said = []
    connection.add_on_connection_blocked_callback(lambda _, frame: said.append(frame.method.reason))
    connection.add_on_connection_unblocked_callback(lambda *_: said.append("unblocked"))
    channel = connection.channel()
    channel.queue_declare("full", durable=True)
    persistent = pika.BasicProperties(delivery_mode=2)
    channel.basic_publish("", "full", b"before", persistent)
    filler = os.path.join(SMALL_DISK, "filler")
    fill(filler)
    try:

        def publish_until_blocked():
            channel.basic_publish("", "full", bytes(64 << 10), persistent)
            # What the journal still finds to give back is used up first.
            return said and said[-1] != "unblocked"

        wait_for(connection, publish_until_blocked, "connection.blocked")
        assert len(said[-1]) > 5, said
        # Consumers go on.
        assert get_until(consumer.channel(), "full")[2] == b"before"
    finally:
        os.remove(filler)
    wait_for(connection, lambda: said[-1] == "unblocked", "connection.unblocked")
    channel.queue_purge("full")
    channel.confirm_delivery()
    channel.basic_publish("", "full", b"after", persistent)
    assert get_until(consumer.channel(), "full")[2] == b"after"
    channel.queue_delete("full")
    connection.close()
    consumer.close()
