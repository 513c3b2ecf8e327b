"""Clients that do not keep up, and quotas: what is missed, what is told, what comes later."""

import asyncio
import json

import nats
import pika
from access import url
from cases import PROGRAM, SILENCE_S, administer, case
from harness import AMQP_URL, next_data, settle, until, within

# Messages so large that a few hundred fill every buffer on the way.
BYTES = 64 << 10
MANY = 400


class User:
    """A user of one case, with a quota."""

    def __init__(self, world, *quota):
        self.name = world.name("user").replace(".", "-")
        administer("user", "add", self.name, text="pw")
        administer("permission", "set", self.name)
        self.set(*quota)

    def set(self, *quota):
        administer("user", "quota", self.name, *quota)

    def delete(self):
        administer("user", "delete", self.name)


async def stalled(world, user, subject):
    """A client of the user, subscribed, to which nothing more comes; and what holds it up."""
    relay = await world.relay()
    client = await world.connect(relay.url, user=user.name, password="pw")
    subscription = await client.subscribe(subject)
    await settle(client)
    relay.stall()
    return relay, subscription


async def publish(client, subject, numbers):
    """Publishes numbered messages."""
    for number in numbers:
        await client.publish(subject, b"%06d" % number + bytes(BYTES))
        if number % 16 == 15:
            await client.flush()
    await client.flush()


async def received(subscription, last):
    """Numbers up to the last one, and how many messages the client was told that it missed."""
    numbers, missed = [], 0
    while not numbers or numbers[-1] != last:
        message = await within(subscription.next_msg(timeout=10))
        numbers.append(int(message.data[:6]))
        missed += int((message.headers or {}).get("Angarium-Missed", 0))
    assert numbers == sorted(set(numbers)), numbers
    return numbers, missed


@case(ours=True, needs=PROGRAM)
async def what_is_spooled_comes_later_and_in_order(world):
    user, subject = User(world, "--slow-consumer-policy", "spool"), world.name()
    relay, subscription = await stalled(world, user, subject)
    publisher = await world.connect()
    await publish(publisher, subject, range(MANY))
    relay.resume()
    await publish(publisher, subject, range(MANY, MANY + 100))
    numbers, missed = await received(subscription, MANY + 99)
    assert (numbers, missed) == (list(range(MANY + 100)), 0), (len(numbers), missed)
    user.delete()


def listed(user):
    """What `connection list` says of the user's only connection."""
    rows = json.loads(administer("connection", "list", "--json"))
    (row,) = [row for row in rows if row["user"] == user.name]
    return row


@case(ours=True, needs=PROGRAM)
async def the_oldest_are_dropped_and_counted(world):
    user = User(world, "--slow-consumer-policy", "drop-oldest", "--unsent-bytes", "1MiB")
    subject = world.name()
    relay, subscription = await stalled(world, user, subject)
    publisher = await world.connect()
    await publish(publisher, subject, range(MANY))
    row = listed(user)
    assert row["subjects"] == 1 and 0 < row["unsent_bytes"] <= 2 << 20, row
    assert row["too_slow"]["policy"] == "drop-oldest" and row["too_slow"]["missed"] > 0, row
    relay.resume()
    numbers, missed = await received(subscription, MANY - 1)
    # What was dropped last is told with the next one.
    await publish(publisher, subject, [MANY])
    _, more = await received(subscription, MANY)
    missed += more
    assert len(numbers) + missed == MANY, (len(numbers), missed)
    assert missed > 0 and numbers[-5:] == list(range(MANY - 5, MANY)), numbers
    user.delete()


@case(ours=True, needs=PROGRAM)
async def a_subscription_says_itself_that_new_ones_are_dropped(world):
    user, subject = User(world, "--unsent-bytes", "1MiB"), world.name()
    relay, subscription = await stalled(world, user, f"$SLOW_CONSUMER.drop-new.{subject}")
    publisher = await world.connect()
    await publish(publisher, subject, range(MANY))
    relay.resume()
    numbers, missed, last = [], 0, MANY
    while not numbers or numbers[-1] != last - 1:
        try:
            message = await subscription.next_msg(timeout=SILENCE_S)
        except nats.errors.TimeoutError:
            # What it missed last it is told with the next one, for which there is room now.
            await publish(publisher, subject, [last])
            last += 1
            continue
        missed += int((message.headers or {}).get("Angarium-Missed", 0))
        numbers.append(int(message.data[:6]))
    assert missed > 0
    assert len(numbers) + missed == last, (len(numbers), missed, last)
    user.delete()


@case(ours=True, needs=PROGRAM)
async def who_is_to_be_disconnected_is(world):
    user = User(world, "--slow-consumer-policy", "disconnect", "--unsent-bytes", "1MiB")
    subject = world.name()
    relay = await world.relay()
    client = await world.connect(relay.url, user=user.name, password="pw")
    await client.subscribe(subject)
    await settle(client)
    relay.stall()
    publisher = await world.connect()
    await publish(publisher, subject, range(MANY))
    relay.resume()
    await until(lambda: client.is_closed, "the end of the connection")
    user.delete()


@case(ours=True, needs=PROGRAM)
async def the_only_one_to_hear_a_flood_gets_all_that_it_takes(world):
    user, subject = User(world, "--slow-consumer-policy", "disconnect"), world.name()
    login = json.dumps({"verbose": False, "user": user.name, "pass": "pw"})
    reader, writer = await world.raw()
    writer.write(f"CONNECT {login}\r\nSUB {subject} 1\r\nPING\r\n".encode())
    assert await within(reader.readline()) == b"PONG\r\n"
    _, publisher = await world.raw()
    publisher.write(f"CONNECT {login}\r\n".encode())
    batch = (f"PUB {subject} 1000\r\n".encode() + bytes(1_000) + b"\r\n") * 64

    async def flood():
        while True:
            publisher.write(batch)
            await publisher.drain()

    flooding = asyncio.create_task(flood())
    # 1 MB/s for six seconds, of hundreds that the flood could send.
    for _ in range(600):
        await within(reader.readexactly(10_000))
        await asyncio.sleep(0.01)
    flooding.cancel()
    user.delete()


@case(ours=True, needs=PROGRAM)
async def connections_of_a_user_are_counted(world):
    user = User(world, "--connections", "1")
    first = await world.connect(url(user.name, "pw"))
    try:
        await world.connect(url(user.name, "pw"), connect_timeout=2)
    except nats.errors.Error as error:
        assert "maximum connections exceeded" in str(error), f"{error!r}"
    else:
        raise AssertionError("was let in")
    parameters = pika.URLParameters(AMQP_URL)
    parameters.credentials = pika.PlainCredentials(user.name, "pw")
    try:
        pika.BlockingConnection(parameters)
    except pika.exceptions.AMQPConnectionError as error:
        assert "user connection limit (1) is reached" in repr(error), repr(error)
    else:
        raise AssertionError("was let in")
    await first.close()
    await world.connect(url(user.name, "pw"))
    user.delete()


@case(ours=True, needs=PROGRAM)
async def subscriptions_of_a_connection_and_of_a_user_are_counted(world):
    for flag, first, second in [("--connection-subscriptions", 3, 2), ("--subscriptions", 1, 2)]:
        user = User(world, flag, "2")
        login = json.dumps({"verbose": False, "user": user.name, "pass": "pw"})
        refused = 0
        for count in (first, second):
            reader, writer = await world.raw()
            subs = "".join(f"SUB s{number} {number}\r\n" for number in range(count))
            writer.write(f"CONNECT {login}\r\n{subs}PING\r\n".encode())
            while (answer := await within(reader.readline())) != b"PONG\r\n":
                assert answer == b"-ERR 'maximum subscriptions exceeded'\r\n", answer
                refused += 1
        assert refused == 1, (flag, refused)
        user.delete()


@case(ours=True, needs=PROGRAM)
async def a_publisher_beyond_its_rate_loses_nothing(world):
    user = User(world, "--messages-per-second", "500", "--connection-bytes-per-second", "1MiB")
    publisher, listener = await world.connect(url(user.name, "pw")), await world.connect()
    subject = world.name()
    subscription = await listener.subscribe(subject)
    await settle(listener)
    for number in range(300):
        await publisher.publish(subject, b"%d" % number)
    await within(publisher.flush())
    assert await next_data(subscription, 300) == [b"%d" % number for number in range(300)]
    user.delete()


@case(ours=True, needs=PROGRAM)
async def what_a_publisher_waits_for_is_listed(world):
    for flag, expected in [
        ("--connections", None),
        ("--messages-per-second", "its user's rate"),
        ("--connection-messages-per-second", "its rate"),
    ]:
        user = User(world, flag, "10")
        reader, writer = await world.raw()
        login = json.dumps({"verbose": False, "user": user.name, "pass": "pw"})
        writer.write(f"CONNECT {login}\r\nPING\r\n".encode())
        assert await within(reader.readline()) == b"PONG\r\n"
        writer.write(f"PUB {world.name()} 1\r\nx\r\n".encode() * 500)
        await writer.drain()
        await asyncio.sleep(0.2)
        assert listed(user)["waits_for"] == expected, (flag, listed(user))
        user.delete()


@case(ours=True, needs=PROGRAM)
async def a_subscriber_of_advisories_gets_them(world):
    user, subject = User(world, "--slow-consumer-policy", "drop-new", "--unsent-bytes", "1MiB"), world.name()
    observer = await world.connect()
    advisories = await observer.subscribe("$SYS.ADVISORY.SLOW_CONSUMER.*")
    await settle(observer)
    relay, _ = await stalled(world, user, subject)
    publisher = await world.connect()
    await publish(publisher, subject, range(MANY))
    relay.resume()
    told = []
    while len(told) < 2:
        message = await within(advisories.next_msg(timeout=10))
        about = json.loads(message.data)
        if about["user"] == user.name:
            told.append((message.subject, about))
    (began, _), (ended, about) = told
    assert began.endswith(".BEGAN") and ended.endswith(".ENDED"), told
    assert about["policy"] == "drop-new" and about["missed"] > 0, about
    user.delete()


@case(ours=True, needs=PROGRAM)
async def who_conflates_gets_the_last_value_of_each_subject(world):
    user, subject = User(world, "--slow-consumer-policy", "conflate"), world.name()
    relay, subscription = await stalled(world, user, subject + ".*")
    publisher = await world.connect()
    for number in range(MANY):
        for name in ("a", "b", "c"):
            await publisher.publish(f"{subject}.{name}", b"%06d" % number + bytes(BYTES))
        await publisher.flush()
    relay.resume()
    last, missed, count = {}, 0, 0
    while last != {f"{subject}.{name}": MANY - 1 for name in ("a", "b", "c")}:
        message = await within(subscription.next_msg(timeout=10))
        assert last.get(message.subject, -1) < int(message.data[:6]), (message.subject, last)
        last[message.subject] = int(message.data[:6])
        missed += int((message.headers or {}).get("Angarium-Missed", 0))
        count += 1
    assert missed > 0 and count + missed == 3 * MANY, (count, missed)
    user.delete()
