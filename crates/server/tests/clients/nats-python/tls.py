"""TLS from the first byte. (The library begins it after INFO only where the server demands it.)"""

import os
import ssl

import nats
from cases import CERTIFICATES, case
from harness import TLS_PORT, next_data


def context():
    """TLS that trusts our authority."""
    return ssl.create_default_context(cafile=os.path.join(CERTIFICATES, "authority.pem"))


async def round_trip(world, client):
    """Publishes and gets something longer than a TLS record."""
    subject = world.name()
    subscription = await client.subscribe(subject)
    body = bytes(range(256)) * 400
    await client.publish(subject, body)
    await client.publish(subject, b"short")
    assert await next_data(subscription, 2) == [body, b"short"]


@case(ours=True, needs=TLS_PORT)
async def tls_begins_before_info(world):
    client = await world.connect(
        f"tls://127.0.0.1:{TLS_PORT}", tls=context(), tls_hostname="localhost", tls_handshake_first=True
    )
    await round_trip(world, client)


@case(ours=True, needs=TLS_PORT)
async def a_broker_of_another_authority_is_not_trusted(world):
    try:
        await world.connect(
            f"tls://127.0.0.1:{TLS_PORT}",
            tls=ssl.create_default_context(),
            tls_hostname="localhost",
            tls_handshake_first=True,
        )
    except (ssl.SSLError, nats.errors.Error):
        return
    raise AssertionError("a certificate was accepted that nobody vouches for")
