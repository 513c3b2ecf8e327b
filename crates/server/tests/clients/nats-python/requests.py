"""Requests, replies, and what happens when nobody answers."""

import asyncio
import json

import nats
from cases import PATIENCE_S, case
from harness import settle, within
from nats.js.errors import NoStreamResponseError, ServiceUnavailableError


@case()
async def requests_are_answered(world):
    service, client = await world.connect(), await world.connect()
    subject = world.name()

    async def answer(message):
        await message.respond(message.data.upper())

    await service.subscribe(subject, cb=answer)
    await settle(service)
    asked = [client.request(subject, b"a%d" % n, timeout=PATIENCE_S) for n in range(200)]
    answers = await asyncio.gather(*asked)
    assert [answer.data for answer in answers] == [b"A%d" % n for n in range(200)]


@case()
async def old_style_requests_are_answered(world):
    service, client = await world.connect(), await world.connect()
    subject = world.name()

    async def answer(message):
        await message.respond(b"yes")

    await service.subscribe(subject, cb=answer)
    await settle(service)
    answer = await client.request(subject, b"?", timeout=PATIENCE_S, old_style=True)
    assert answer.data == b"yes"


@case()
async def nobody_there_is_told_at_once(world):
    client = await world.connect()
    try:
        await client.request(world.name(), b"?", timeout=PATIENCE_S)
    except nats.errors.NoRespondersError:
        return
    raise AssertionError("nobody was there, and that was not told")


@case()
async def a_service_that_left_is_nobody(world):
    service, client = await world.connect(), await world.connect()
    subject = world.name()
    subscription = await service.subscribe(subject)
    await settle(service)
    try:
        await client.request(subject, b"?", timeout=0.2)
        raise AssertionError("there was no answer")
    except nats.errors.TimeoutError:
        pass
    await subscription.unsubscribe()
    await settle(service)
    try:
        await client.request(subject, b"?", timeout=PATIENCE_S)
    except nats.errors.NoRespondersError:
        return
    raise AssertionError("nobody was there, and that was not told")


@case()
async def streams_are_declined(world):
    client = await world.connect()
    stream = client.jetstream(timeout=PATIENCE_S)
    for what in (lambda: stream.account_info(), lambda: stream.publish(world.name(), b"x")):
        try:
            await within(what())
        except (ServiceUnavailableError, NoStreamResponseError, nats.errors.NoRespondersError):
            continue
        raise AssertionError("streams are not offered")


@case()
async def a_client_can_ask_which_connections_there_are(world):
    client, other = await world.connect(), await world.connect()
    subject = world.name()
    await other.subscribe(subject)
    await settle(other)
    for number in range(3):
        await client.publish(subject, b"%d" % number)
    options = json.dumps({"subscriptions": True, "filter_subject": subject}).encode()
    for asked in ("$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.ACCOUNT.PING.CONNZ"):
        answer = json.loads((await client.request(asked, options, timeout=PATIENCE_S)).data)
        (row,) = answer["data"]["connections"]
        assert row["cid"] == other.client_id, row
        assert row["subscriptions_list"] == [subject], row
        assert (row["in_msgs"], row["out_msgs"]) == (0, 3), row
    question = "$SYS.REQ.ACCOUNT.PING.STATZ"
    answer = json.loads((await client.request(question, b"", timeout=PATIENCE_S)).data)
    (account,) = answer["data"]["account_statz"]
    assert account["conns"] >= 2 and account["num_subscriptions"] >= 2, account
    assert account["received"]["msgs"] >= 3 and account["sent"]["msgs"] >= 3, account


@case(ours=True)
async def a_client_can_ask_who_it_is(world):
    client = await world.connect()
    answer = json.loads((await client.request("$SYS.REQ.USER.INFO", b"", timeout=PATIENCE_S)).data)
    assert answer["data"]["user"] == "guest", answer
    assert answer["data"]["account"] == "/", answer
