"""TLS, and logging in by a certificate (SASL EXTERNAL)."""

import os
import ssl

import pika
from cases import CERTIFICATES, PROGRAM, administer, case, command
from harness import TLS_PORT, get_until, publish


def options(certificate=None):
    """TLS that trusts our authority; with a client certificate if asked for."""
    context = ssl.create_default_context(cafile=os.path.join(CERTIFICATES, "authority.pem"))
    if certificate:
        path = os.path.join(CERTIFICATES, certificate)
        context.load_cert_chain(path + ".pem", path + ".key")
    return pika.SSLOptions(context, "localhost")


def round_trip(world, connection):
    """Publishes and gets something longer than a TLS record."""
    channel = connection.channel()
    channel.confirm_delivery()
    queue = world.queue(channel)
    body = bytes(range(256)) * 400
    publish(channel, queue, body, b"short")
    assert get_until(channel, queue)[2] == body
    assert get_until(channel, queue)[2] == b"short"


@case(ours=True, needs=TLS_PORT)
def amqps_carries_messages(world):
    connection = world.connect(port=int(TLS_PORT), ssl_options=options())
    round_trip(world, connection)


@case(ours=True, needs=TLS_PORT and PROGRAM)
def the_programs_own_commands_take_amqps(world):
    queue = world.queue(world.channel(), durable=True)
    uri = ("--uri", f"amqps://localhost:{TLS_PORT}/")
    trusted = ("--authorities", os.path.join(CERTIFICATES, "authority.pem"))
    for text in ("first", "x" * 100_000):
        command("publish", "--queue", queue, *uri, *trusted, text)
    shown = command("consume", queue, "--count", "2", *uri, *trusted)
    assert shown.split() == ["first", "x" * 100_000], shown[:100]
    try:
        command("publish", "--queue", queue, *uri, "untrusted")
    except AssertionError as error:
        assert "certificate" in str(error), error
    else:
        raise AssertionError("an unknown authority is trusted")


@case(ours=True, needs=TLS_PORT)
def a_broker_of_another_authority_is_not_trusted(world):
    parameters = {"port": int(TLS_PORT), "ssl_options": pika.SSLOptions(ssl.create_default_context())}
    try:
        world.connect(**parameters)
    except (pika.exceptions.AMQPConnectionError, ssl.SSLError):
        return
    raise AssertionError("a certificate was accepted that nobody vouches for")


@case(ours=True, needs=TLS_PORT and PROGRAM)
def a_certificate_logs_in(world):
    administer("user", "add", "ada", "--no-password")
    administer("permission", "set", "ada")
    credentials = pika.credentials.ExternalCredentials()
    connection = world.connect(port=int(TLS_PORT), ssl_options=options("ada"), credentials=credentials)
    round_trip(world, connection)
    administer("user", "delete", "ada")
