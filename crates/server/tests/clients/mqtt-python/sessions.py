"""Sessions that outlive connections, takeovers, wills."""

from cases import case


@case()
def sessions_collect_while_nobody_is_there(world):
    for version, options in (("5", {"expiry": 60}), ("3.1.1", {})):
        name, topic, publisher = world.name("session"), world.name(), world.connect()
        client = world.connect(name, version=version, clean=False, **options)
        assert not client.resumed
        client.subscribe(topic, 2)
        client.close()
        for qos in (1, 2):
            publisher.publish(topic, f"{qos}", qos)
        again = world.connect(name, version=version, clean=False, **options)
        assert again.resumed
        assert again.payloads(2) == [b"1", b"2"]
        again.silent()
        again.close()
        fresh = world.connect(name, version=version, clean=True)
        assert not fresh.resumed
        fresh.close()


@case()
def clients_that_are_away_get_each_message_once_in_order(world):
    topic, publisher = world.name(), world.connect()
    names = [world.name("away") for _ in range(20)]
    for name in names:
        client = world.connect(name, clean=False, expiry=60)
        client.subscribe(f"{topic}/#", 1)
        client.subscribe(f"{topic}/+", 1)
        client.close()
    sent = [f"{number}".encode() for number in range(12)]
    for payload in sent[:10]:
        assert publisher.publish(f"{topic}/a", payload, 1).value == 0
    back = [world.connect(name, clean=False, expiry=60) for name in names]
    for payload in sent[10:]:
        publisher.publish(f"{topic}/a", payload, 1)
    for client in back:
        assert client.resumed
        assert client.payloads(len(sent)) == sent
    back[0].silent()


@case()
def a_second_connection_takes_over(world):
    name = world.name("session")
    first = world.connect(name)
    first.client.reconnect_delay_set(60, 60)
    world.connect(name)
    assert first.ended.get(timeout=10).value == 0x8E
    first.client.loop_stop()


@case()
def wills_come_where_connections_are_lost(world):
    topic, watcher = world.name(), world.connect()
    watcher.subscribe(topic, 1)
    lost = world.connect(will=(topic, "gone", 1))
    lost.cut()
    got = watcher.message()
    assert (got.payload, got.qos) == (b"gone", 1)
    left = world.connect(will=(topic, "gone", 1))
    left.close()
    watcher.silent()


@case()
def logins_are_refused(world):
    assert world.connect(user="guest", password="guest").reason.value == 0
    refused = world.connect(user="guest", password="wrong")
    assert refused.reason.value == 0x86
    refused.client.loop_stop()
