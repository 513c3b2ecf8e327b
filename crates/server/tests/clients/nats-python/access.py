"""Who gets in, and what it may do."""

import base64

import nacl.signing
import nats
from cases import PROGRAM, administer, case
from harness import address, next_data, settle, until
from nkeys import PREFIX_BYTE_USER, crc16


def url(user, password):
    host, port = address()
    return f"nats://{user}:{password}@{host}:{port}"


async def refused(world, *arguments, **options):
    try:
        await world.connect(*arguments, **options)
    except nats.errors.Error as error:
        assert "uthorization" in str(error), f"{error!r}"
        return
    raise AssertionError("was let in")


@case(ours=True, needs=PROGRAM)
async def a_name_and_a_password(world):
    # A broker with the default user alone takes whatever is offered.
    administer("user", "add", "another", text="pw")
    client = await world.connect(url("guest", "guest"))
    await client.flush()
    await refused(world, url("guest", "wrong"))
    await refused(world, url("nobody", "guest"))
    await refused(world, token="wrong")
    administer("user", "delete", "another")


@case(ours=True, needs=PROGRAM)
async def a_token_is_a_password(world):
    administer("user", "add", "token", text="s3cret")
    administer("permission", "set", "token")
    client = await world.connect(token="s3cret")
    await client.flush()
    await refused(world, token="s3cre")
    administer("user", "delete", "token")


def made_nkey(seed):
    """A user's nkey and its seed, as the nkeys tool writes them."""

    def written(data):
        return base64.b32encode(data + crc16(data).to_bytes(2, "little")).rstrip(b"=").decode()

    key = nacl.signing.SigningKey(seed).verify_key.encode()
    first = 18 << 3 | PREFIX_BYTE_USER >> 5
    second = (PREFIX_BYTE_USER & 31) << 3
    return written(bytes([PREFIX_BYTE_USER]) + key), written(bytes([first, second]) + seed)


@case(ours=True, needs=PROGRAM)
async def an_nkey_signs_the_nonce(world):
    key, seed = made_nkey(bytes(range(32)))
    _, other = made_nkey(bytes(range(1, 33)))
    administer("user", "add", key, "--no-password")
    administer("permission", "set", key)
    client = await world.connect(nkeys_seed_str=seed)
    subscription = await client.subscribe("nkey.*")
    await client.publish("nkey.a", b"x")
    assert await next_data(subscription) == [b"x"]
    await refused(world, nkeys_seed_str=other)
    administer("user", "delete", key)


@case(ours=True, needs=PROGRAM)
async def rights_are_checked(world):
    administer("user", "add", "reader", text="pw")
    administer("permission", "set", "reader", "--write", "", "--read", ".*", "--configure", "")
    reader, writer = await world.connect(url("reader", "pw")), await world.connect()
    subject = world.name()
    subscription = await reader.subscribe(subject)
    await settle(reader)
    await reader.publish(subject, b"no")
    await until(lambda: world.errors, "an error")
    assert "permissions violation for publish to" in str(world.errors[0]).lower(), world.errors
    await writer.publish(subject, b"yes")
    assert await next_data(subscription) == [b"yes"]
    administer("user", "delete", "reader")


@case(ours=True, needs=PROGRAM)
async def virtual_hosts_keep_apart(world):
    administer("vhost", "add", "apart")
    administer("permission", "set", "guest", "--vhost", "apart")
    inside, outside = await world.connect(user="apart:guest", password="guest"), await world.connect()
    subject = world.name()
    heard = await outside.subscribe(subject)
    heard_inside = await inside.subscribe(subject)
    await settle(outside)
    await settle(inside)
    await inside.publish(subject, b"inside")
    assert await next_data(heard_inside) == [b"inside"]
    await outside.publish(subject, b"outside")
    assert await next_data(heard) == [b"outside"]
    await inside.close()
    # Who has no name to say it with is where it has rights.
    key, seed = made_nkey(bytes(range(2, 34)))
    administer("user", "add", key, "--no-password")
    administer("permission", "set", key, "--vhost", "apart")
    inside = await world.connect(nkeys_seed_str=seed)
    heard_inside = await inside.subscribe(subject)
    await settle(inside)
    await outside.publish(subject, b"outside")
    await inside.publish(subject, b"inside")
    assert await next_data(heard_inside) == [b"inside"]
    assert await next_data(heard) == [b"outside"]
    await inside.close()
    administer("user", "delete", key)
    administer("vhost", "delete", "apart")
