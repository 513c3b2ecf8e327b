"""Acknowledgements, transactions, receipts."""

from cases import case
from harness import VERSIONS


@case()
def what_is_not_acknowledged_comes_again(world):
    for version in VERSIONS:
        queue = f"/queue/{world.name()}"
        client = world.connect(version)
        client.subscribe(queue, ack="client")
        for body in "abc":
            client.send(queue, body)
        frames = [client.message() for _ in "abc"]
        assert [frame.headers["redelivered"] for frame in frames] == ["false"] * 3
        # It is cumulative.
        client.acknowledge(frames[1], receipt="acknowledged")
        assert client.receipt() == "acknowledged"
        client.cut()
        again = world.connect(version)
        again.subscribe(queue, ack="client-individual")
        frame = again.message()
        assert (frame.body, frame.headers["redelivered"]) == ("c", "true")
        again.silent()


@case()
def refused_messages_go_elsewhere(world):
    dead = world.name("dead")
    client, undertaker = world.connect("1.1"), world.connect()
    undertaker.subscribe(f"/topic/{dead}")
    queue = f"/queue/{world.name()}"
    letters = {"x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": dead}
    client.subscribe(queue, ack="client-individual", **letters)
    client.send(queue, "message", **letters)
    client.acknowledge(client.message(), refuse=True)
    again = client.message()
    assert again.headers["redelivered"] == "true"
    client.acknowledge(again, refuse=True, requeue="false")
    buried = undertaker.message()
    assert buried.body == "message" and buried.headers["x-first-death-reason"] == "rejected"


@case()
def transactions_are_all_or_nothing(world):
    for version in VERSIONS:
        queue = f"/queue/{world.name()}"
        client, other = world.connect(version), world.connect()
        other.subscribe(queue)
        one, two = client.connection.begin(), client.connection.begin()
        client.connection.send(queue, "one", transaction=one)
        client.connection.send(queue, "two", transaction=two)
        client.send(queue, "none")
        assert other.bodies(1) == ["none"]
        other.silent()
        client.connection.abort(two)
        client.connection.commit(one)
        assert other.bodies(1) == ["one"]
        other.silent()


@case()
def acknowledgements_are_part_of_transactions(world):
    queue = f"/queue/{world.name()}"
    client = world.connect()
    client.subscribe(queue, ack="client-individual")
    client.send(queue, "message")
    frame = client.message()
    transaction = client.connection.begin()
    client.acknowledge(frame, transaction=transaction)
    client.connection.send(queue + ".done", "result", transaction=transaction)
    client.connection.abort(transaction)
    again = client.message()
    assert again.headers["redelivered"] == "true"
    transaction = client.connection.begin()
    client.acknowledge(again, transaction=transaction)
    client.connection.send(queue + ".done", "result", transaction=transaction)
    client.connection.commit(transaction)
    client.subscribe(queue + ".done", id="1")
    assert client.bodies(1) == ["result"]
    client.silent()


@case()
def receipts_tell_what_was_done(world):
    for version in VERSIONS:
        client = world.connect(version)
        queue = f"/queue/{world.name()}"
        for number in range(100):
            client.send(queue, "x", receipt=number, persistent="true")
        assert {client.receipt() for _ in range(100)} == {str(number) for number in range(100)}


@case()
def prefetch_bounds_what_is_out(world):
    client, other = world.connect(), world.connect()
    queue = f"/queue/{world.name()}"
    client.subscribe(queue, ack="client-individual", prefetch_count=2)
    for body in "abc":
        client.send(queue, body)
    first = client.message()
    assert client.bodies(1) == ["b"]
    client.silent()
    client.acknowledge(first)
    assert client.bodies(1) == ["c"]
    other.silent()
