"""TLS, and logging in by a certificate (SASL EXTERNAL)."""

import os

from cases import CERTIFICATES, PROGRAM, administer, case
from harness import TLS_PORT, send, take
from proton import ConnectionException, SSLDomain


def domain(certificate=None):
    """TLS that trusts our authority; with a client certificate if asked for."""
    found = SSLDomain(SSLDomain.MODE_CLIENT)
    found.set_trusted_ca_db(os.path.join(CERTIFICATES, "authority.pem"))
    found.set_peer_authentication(SSLDomain.VERIFY_PEER)
    if certificate:
        path = os.path.join(CERTIFICATES, certificate)
        found.set_credentials(path + ".pem", path + ".key", None)
    return found


def round_trip(world, connection):
    """Sends and receives something longer than a TLS record."""
    queue = world.name()
    body = "länger " * 15_000
    send(connection, queue, body, "short")
    assert take(connection.create_receiver(queue), 2) == [body, "short"]


@case(ours=True, needs=TLS_PORT)
def amqps_carries_messages(world):
    url = f"amqps://guest:guest@localhost:{TLS_PORT}"
    round_trip(world, world.connect(url, ssl_domain=domain()))


@case(ours=True, needs=TLS_PORT and PROGRAM)
def a_certificate_logs_in(world):
    administer("user", "add", "ada", "--no-password")
    administer("permission", "set", "ada")
    try:
        url = f"amqps://localhost:{TLS_PORT}"
        round_trip(world, world.connect(url, ssl_domain=domain("ada")))
    finally:
        administer("user", "delete", "ada")


@case(ours=True, needs=TLS_PORT)
def a_broker_of_another_authority_is_not_trusted(world):
    strict = SSLDomain(SSLDomain.MODE_CLIENT)
    strict.set_trusted_ca_db("/etc/ssl/certs/ca-certificates.crt")
    strict.set_peer_authentication(SSLDomain.VERIFY_PEER)
    try:
        world.connect(f"amqps://guest:guest@localhost:{TLS_PORT}", ssl_domain=strict)
    except ConnectionException:
        return
    raise AssertionError("a certificate was accepted that nobody vouches for")
