"""Publishing and subscribing: wildcards, groups, headers, ends of subscriptions."""

from cases import PATIENCE_S, case
from harness import next_data, settle, silent, until


@case()
async def messages_arrive_in_their_order(world):
    publisher, subscriber = await world.connect(), await world.connect()
    subject = world.name()
    subscription = await subscriber.subscribe(subject)
    await settle(subscriber)
    for number in range(5_000):
        await publisher.publish(subject, b"%d" % number)
    await publisher.flush()
    got = await next_data(subscription, 5_000)
    assert got == [b"%d" % number for number in range(5_000)]


@case()
async def wildcards_stand_for_tokens(world):
    client = await world.connect()
    prefix = world.name()
    one = await client.subscribe(f"{prefix}.*.end")
    many = await client.subscribe(f"{prefix}.>")
    for ending in ("a.end", "a.b.end", "a", "b.end"):
        await client.publish(f"{prefix}.{ending}", ending.encode())
    await client.publish(prefix, b"itself")
    assert await next_data(one, 2) == [b"a.end", b"b.end"]
    assert await next_data(many, 4) == [b"a.end", b"a.b.end", b"a", b"b.end"]
    await silent(one)
    await silent(many)


@case()
async def one_of_a_group_gets_each_message(world):
    publisher = await world.connect()
    subject = world.name()
    counts = [0, 0, 0]

    def counter(index):
        async def count(_message):
            counts[index] += 1

        return count

    members = [await world.connect() for _ in counts]
    for index, member in enumerate(members):
        await member.subscribe(subject, queue="workers", cb=counter(index))
        await settle(member)
    everything = await publisher.subscribe(subject)
    for _ in range(300):
        await publisher.publish(subject, b"x")
    await next_data(everything, 300)
    await until(lambda: sum(counts) >= 300, "messages for one of the group each")
    for member in members:
        await member.flush()
    assert sum(counts) == 300, counts
    assert min(counts) > 0, counts


@case()
async def hundreds_of_clients_each_get_every_message(world):
    subject = world.name()
    members = [await world.connect() for _ in range(400)]
    subscriptions = [await member.subscribe(subject) for member in members]
    for member in members:
        await settle(member)
    publisher = await world.connect()
    # The second does not fit into sockets that nobody has read from yet.
    sent = [b"small", b"x" * 400_000, b"last"]
    for payload in sent:
        await publisher.publish(subject, payload)
        await publisher.flush()
    for subscription in subscriptions:
        assert await next_data(subscription, len(sent)) == sent
    await silent(subscriptions[0])


@case()
async def headers_pass_as_they_are(world):
    client = await world.connect()
    subject = world.name()
    subscription = await client.subscribe(subject)
    headers = {"Content-Type": "text/plain", "x-lower": "ä", "Empty": ""}
    await client.publish(subject, b"hi", headers=headers)
    message = await subscription.next_msg()
    assert message.headers == headers, message.headers
    assert message.data == b"hi"
    await client.publish(subject, b"", headers={"A": "b"})
    assert (await subscription.next_msg()).headers == {"A": "b"}


@case()
async def payloads_of_all_sizes(world):
    client = await world.connect()
    subject = world.name()
    subscription = await client.subscribe(subject)
    sizes = [0, 1, 100, 4_096, 65_535, 65_536, 200_000, client.max_payload]
    for size in sizes:
        await client.publish(subject, bytes([size % 251]) * size)
    for size, got in zip(sizes, await next_data(subscription, len(sizes))):
        assert got == bytes([size % 251]) * size, f"{size} bytes"


@case()
async def a_subscription_ends_after_so_many_messages(world):
    client = await world.connect()
    subject = world.name()
    got = []

    async def keep(message):
        got.append(message.data)

    subscription = await client.subscribe(subject, cb=keep)
    await subscription.unsubscribe(limit=2)
    for number in range(5):
        await client.publish(subject, b"%d" % number)
    await client.flush()
    await until(lambda: len(got) == 2, "two messages")
    await client.flush()
    assert got == [b"0", b"1"], got


@case()
async def an_unsubscribed_subject_is_silent(world):
    client, publisher = await world.connect(), await world.connect()
    subject = world.name()
    subscription = await client.subscribe(subject)
    await settle(client)
    await publisher.publish(subject, b"1")
    assert await next_data(subscription) == [b"1"]
    await subscription.unsubscribe()
    await settle(client)
    again = await client.subscribe(subject)
    await settle(client)
    await publisher.publish(subject, b"2")
    assert await next_data(again) == [b"2"]


@case()
async def without_echo_a_client_does_not_hear_itself(world):
    deaf, other = await world.connect(no_echo=True), await world.connect()
    subject = world.name()
    subscription = await deaf.subscribe(subject)
    await settle(deaf)
    await deaf.publish(subject, b"own")
    await deaf.flush()
    await other.publish(subject, b"other's")
    assert await next_data(subscription) == [b"other's"]


@case()
async def verbose_and_pedantic_clients_work(world):
    client = await world.connect(verbose=True, pedantic=True)
    subject = world.name()
    subscription = await client.subscribe(subject)
    for number in range(100):
        await client.publish(subject, b"%d" % number)
    assert len(await next_data(subscription, 100)) == 100
    await client.flush()


@case()
async def many_subscriptions_on_one_connection(world):
    client = await world.connect()
    prefix = world.name()
    subscriptions = [await client.subscribe(f"{prefix}.{number}") for number in range(1_000)]
    for number in range(1_000):
        await client.publish(f"{prefix}.{number}", b"%d" % number)
    for number, subscription in enumerate(subscriptions):
        assert await next_data(subscription) == [b"%d" % number]


@case()
async def many_get_the_same_of_any_size(world):
    """Twenty on each of three connections; some bodies are copied for each of them, others once."""
    subject, clients = world.name(), [await world.connect() for _ in range(3)]
    subscriptions = [await client.subscribe(subject) for client in clients for _ in range(20)]
    for client in clients:
        await settle(client)
    sizes = (100, 4_096, 20_000, 100, 300_000, 4_095)
    bodies = [bytes(number % 251 for number in range(size)) for size in sizes]
    for body in bodies:
        await clients[0].publish(subject, body)
    for subscription in subscriptions:
        got = [await subscription.next_msg(timeout=PATIENCE_S) for _ in bodies]
        assert [message.data for message in got] == bodies
