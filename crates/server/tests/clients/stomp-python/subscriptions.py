"""Durable subscriptions, selectors, options of queues, and what the operator sees."""

import json

from cases import PROGRAM, administer, case


@case()
def durable_subscriptions_of_rabbitmq_gather_messages(world):
    topic = f"/topic/{world.name()}"
    first = world.connect()
    first.subscribe(topic, id="mine", durable="true", auto_delete="false")
    first.cut()
    world.connect().send(topic, "meanwhile", persistent="true")
    second = world.connect("1.1")
    second.subscribe(topic, id="mine", durable="true", auto_delete="false")
    assert second.bodies(1) == ["meanwhile"]
    second.unsubscribe(id="mine", durable="true")
    second.send(topic, "afterwards")
    second.subscribe(topic, id="mine", durable="true", auto_delete="false")
    second.silent()
    second.unsubscribe(id="mine", durable="true")


@case()
def durable_subscriptions_of_artemis_gather_messages(world):
    topic, client_id = f"/topic/{world.name()}", world.name("client")
    named = {"durable-subscription-name": "news"}
    first = world.connect(headers={"client-id": client_id})
    first.subscribe(topic, **named)
    first.close()
    world.connect().send(topic, "meanwhile")
    second = world.connect(headers={"client-id": client_id})
    second.subscribe(topic, **named)
    assert second.bodies(1) == ["meanwhile"]
    second.unsubscribe(**named)


@case()
def selectors_choose(world):
    client = world.connect()
    queue, topic = f"/queue/{world.name()}", f"/topic/{world.name()}"
    client.subscribe(queue, selector="colour IN ('red', 'blue')")
    client.subscribe(topic, id="1", selector="JMSPriority > 4")
    for colour in ("green", "red"):
        client.send(queue, colour, colour=colour)
    for priority in (4, 5):
        client.send(topic, str(priority), priority=priority)
    assert client.bodies(2) == ["red", "5"]
    client.silent()


@case()
def queues_have_options(world):
    client = world.connect()
    queue = f"/queue/{world.name()}"
    options = {"x-max-length": 2, "x-max-priority": 9, "auto-delete": "true"}
    client.subscribe(queue, ack="client", prefetch_count=1, **options)
    other = world.connect()
    for body in "abcd":
        other.send(queue, body, receipt=body)
        assert other.receipt() == body
    got = [client.message()]
    for _ in range(2):
        client.acknowledge(got[-1])
        got.append(client.message())
    # The queue keeps the last two of those that wait.
    assert [frame.body for frame in got] == ["a", "c", "d"]


@case(needs=bool(PROGRAM))
def operators_see_connections(world):
    name = world.name("client")
    client = world.connect("1.1", headers={"client-id": name})
    client.subscribe(f"/queue/{world.name()}")
    listed = json.loads(administer("connection", "list", "--json"))
    found = [it for it in listed if it["name"] == name]
    assert [it["protocol"] for it in found] == ["STOMP 1.1"], listed
