"""Sending and receiving, in every version."""

import time

from cases import case
from harness import VERSIONS


@case()
def messages_arrive_in_their_order(world):
    for version in VERSIONS:
        sender, receiver = world.connect(version), world.connect(version)
        queue = f"/queue/{world.name()}"
        receiver.subscribe(queue)
        for number in range(2_000):
            sender.send(queue, str(number))
        assert receiver.bodies(2_000) == [str(number) for number in range(2_000)]


@case()
def headers_arrive_as_they_were_sent(world):
    for version in VERSIONS:
        client = world.connect(version)
        queue = f"/queue/{world.name()}"
        client.subscribe(queue)
        # stomp.py escapes in 1.1 and 1.2.
        odd = "a:b" if version == "1.0" else "a:b\nc\\d"
        client.send(queue, "body", odd=odd, content_type="text/plain", grüße="ü", priority=7)
        headers = client.message().headers
        assert headers["odd"] == odd, headers
        assert headers["grüße"] == "ü" and headers["content-type"] == "text/plain", headers
        assert headers["priority"] == "7" and headers["destination"] == queue, headers


@case()
def bodies_may_be_large_and_of_any_bytes(world):
    sender, receiver = world.connect(), world.connect(auto_decode=False)
    queue = f"/queue/{world.name()}"
    receiver.subscribe(queue)
    for size in (0, 1, 70_000, 8 << 20):
        body = bytes(range(256)) * (size // 256 + 1)
        sender.send(queue, body[:size])
        got = receiver.message()
        # stomp.py knows no empty body.
        assert (got.body or b"") == body[:size], (size, len(got.body or b""))
        assert got.headers["content-length"] == str(size)


@case()
def topics_have_wildcards(world):
    prefix = world.name()
    one, some, all_of = world.connect(), world.connect(), world.connect("1.1")
    one.subscribe(f"/topic/{prefix}.*.c")
    some.subscribe(f"/topic/{prefix}.>")
    all_of.subscribe(f"/topic/{prefix}.#")
    sender = world.connect()
    for ending in ("", ".b", ".b.c"):
        sender.send(f"/topic/{prefix}{ending}", ending)
    assert one.bodies(1) == [".b.c"]
    assert some.bodies(2) == [".b", ".b.c"]
    assert all_of.bodies(3) in ([None, ".b", ".b.c"], ["", ".b", ".b.c"])
    one.silent()
    some.silent()


@case()
def answers_come_by_temporary_queues(world):
    queue = f"/queue/{world.name()}"
    asks, answers = world.connect("1.1"), world.connect()
    answers.subscribe(queue)
    asks.send(queue, "ask", reply_to="/temp-queue/mine", correlation_id="7")
    request = answers.message()
    reply_to = request.headers["reply-to"]
    assert reply_to.startswith("/reply-queue/"), request.headers
    answers.send(reply_to, "answer", correlation_id=request.headers["correlation-id"])
    answer = asks.message()
    assert answer.body == "answer" and answer.headers["correlation-id"] == "7"
    assert answer.headers["subscription"] == "/temp-queue/mine", answer.headers


@case()
def messages_expire(world):
    client = world.connect()
    queue = f"/queue/{world.name()}"
    client.send(queue, "short", expiration=1)
    client.send(queue, "long", expiration=60_000, receipt="sent")
    assert client.receipt() == "sent"
    time.sleep(0.05)
    client.subscribe(queue)
    assert client.bodies(1) == ["long"]
    client.silent()
