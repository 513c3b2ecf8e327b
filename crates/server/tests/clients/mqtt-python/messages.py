"""Messages, subscriptions, properties."""

from cases import case
from harness import properties
from paho.mqtt.subscribeoptions import SubscribeOptions


@case()
def messages_arrive_in_every_version_and_qos(world):
    topic = world.name()
    for version in ("3.1", "3.1.1", "5"):
        client = world.connect(version=version)
        assert client.subscribe(f"{topic}/#", 2) == [2]
        for qos in (0, 1, 2):
            client.publish(f"{topic}/{version}", f"{qos}", qos)
            got = client.message()
            assert (got.topic, got.payload, got.qos) == (f"{topic}/{version}", b"%d" % qos, qos)
        client.close()


@case()
def many_messages_keep_their_order(world):
    topic, client, publisher = world.name(), world.connect(), world.connect()
    client.subscribe(topic, 1)
    for number in range(2_000):
        publisher.client.publish(topic, str(number), 1)
    assert client.payloads(2_000) == [str(number).encode() for number in range(2_000)]


@case()
def large_messages_arrive_whole(world):
    topic, client = world.name(), world.connect()
    client.subscribe(topic, 1)
    for qos in (0, 1):
        payload = bytes(range(256)) * 12_000
        client.publish(topic, payload, qos)
        assert client.message().payload == payload


@case()
def properties_of_requests_arrive(world):
    topic, client = world.name(), world.connect()
    client.subscribe(topic, 1)
    sent = properties(
        "PUBLISH",
        ResponseTopic="answers/1",
        CorrelationData=b"\0\1",
        ContentType="text/plain",
        PayloadFormatIndicator=1,
        MessageExpiryInterval=60,
        UserProperty=[("a", "1"), ("a", "2")],
    )
    client.publish(topic, "hello", 1, properties=sent)
    got = client.message().properties
    assert (got.ResponseTopic, got.CorrelationData, got.ContentType) == ("answers/1", b"\0\1", "text/plain")
    assert got.UserProperty == [("a", "1"), ("a", "2")] and got.PayloadFormatIndicator == 1
    assert 58 <= got.MessageExpiryInterval <= 60


@case()
def overlapping_subscriptions_get_one_copy(world):
    topic, client = world.name(), world.connect()
    for number, (filter, qos) in enumerate([(f"{topic}/#", 0), (f"{topic}/+", 2), (f"{topic}/a", 1)], 1):
        identifier = properties("SUBSCRIBE", SubscriptionIdentifier=number)
        client.subscribe(filter, options=SubscribeOptions(qos=qos), properties=identifier)
    client.publish(f"{topic}/a", "x", 2)
    got = client.message()
    assert got.qos == 2 and sorted(got.properties.SubscriptionIdentifier) == [1, 2, 3]
    client.silent()


@case()
def no_local_and_shared_subscriptions(world):
    topic, own, other = world.name(), world.connect(), world.connect()
    own.subscribe(topic, options=SubscribeOptions(qos=1, noLocal=True))
    own.publish(topic, "own", 1)
    other.publish(topic, "other", 1)
    assert own.payloads(1) == [b"other"]
    members = [world.connect() for _ in range(2)]
    for member in members:
        assert member.subscribe(f"$share/group/{topic}/#") == [0]
    for number in range(10):
        other.publish(f"{topic}/{number}", str(number))
    got = []
    while len(got) < 10:
        got += [member.message().payload for member in members if not member.messages.empty()]
    assert sorted(got) == [str(number).encode() for number in range(10)]
    for member in members:
        member.silent()


@case()
def shared_subscriptions_of_every_qos_get_each_message_once(world):
    topic, publisher = world.name(), world.connect()
    members = [world.connect() for _ in range(2)]
    for member in members:
        assert member.subscribe(f"$share/group/{topic}/#", 2) == [2]
    for number in range(30):
        publisher.publish(f"{topic}/{number}", str(number), number % 3)
    got = [[], []]
    while sum(len(some) for some in got) < 30:
        for some, member in zip(got, members):
            if not member.messages.empty():
                message = member.message()
                assert message.qos == int(message.payload) % 3
                some.append(message.payload)
    assert sorted(got[0] + got[1], key=int) == [str(number).encode() for number in range(30)]
    assert all(got), got
    for member in members:
        member.silent()


@case()
def a_shared_subscription_collects_for_sessions_that_nobody_holds(world):
    name, topic, publisher = world.name("session"), world.name(), world.connect()
    member = world.connect(name, clean=False, expiry=60)
    assert member.subscribe(f"$share/group/{topic}", 2) == [2]
    member.close()
    for qos in (1, 2):
        publisher.publish(topic, str(qos), qos)
    again = world.connect(name, clean=False, expiry=60)
    assert again.resumed and again.payloads(2) == [b"1", b"2"]
    again.silent()
    again.close()
    assert not world.connect(name, clean=True).resumed


@case(ours=True)
def nobody_may_publish_as_the_broker(world):
    client = world.connect()
    assert client.publish("$SYS/x", "x", 1).value == 0x87
