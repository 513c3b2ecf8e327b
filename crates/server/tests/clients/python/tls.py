"""TLS, and logging in by a certificate (SASL EXTERNAL)."""

import contextlib
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import time

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


def is_refused(world, **parameters):
    """Whether a connection does not come about: the handshake or the login fails."""
    try:
        world.connect(**parameters).close()
    except (pika.exceptions.AMQPConnectionError, ssl.SSLError, OSError):
        return True
    return False


@case(ours=True, needs=TLS_PORT and PROGRAM)
def a_revoked_certificate_is_refused(world):
    administer("user", "add", "eve", "--no-password")
    administer("permission", "set", "eve")
    parameters = {"port": int(TLS_PORT), "credentials": pika.credentials.ExternalCredentials()}
    assert is_refused(world, ssl_options=options("eve"), **parameters)
    # With a password, too: the certificate is shown, and not trusted.
    assert is_refused(world, port=int(TLS_PORT), ssl_options=options("eve"))
    administer("user", "delete", "eve")


def has_ended(connection):
    """Whether a connection is closed within some seconds, and why."""
    try:
        end = time.time() + 10
        while time.time() < end:
            connection.process_data_events(0.1)
    except pika.exceptions.ConnectionClosedByBroker as error:
        return error.reply_text
    return None


@case(ours=True, needs=TLS_PORT and PROGRAM)
def who_is_connected_by_a_certificate_that_is_revoked_is_closed(world):
    external = pika.credentials.ExternalCredentials()
    with tempfile.TemporaryDirectory() as folder:
        lists = os.path.join(folder, "list.pem")
        shutil.copyfile(os.path.join(CERTIFICATES, "none-revoked.pem"), lists)
        with broker("--tls-client-revocations", lists) as (port, data, process):
            connections = []
            for user in ("ada", "eve"):
                command("user", "add", user, "--no-password", "--data", data)
                command("permission", "set", user, "--data", data)
                shown = {"ssl_options": options(user), "credentials": external}
                connections.append(world.connect(port=port, **shown))
            shutil.copyfile(os.path.join(CERTIFICATES, "revoked.pem"), lists)
            process.send_signal(signal.SIGHUP)
            why = has_ended(connections[1])
            assert why and "not trusted any more" in why, why
            round_trip(world, connections[0])


@contextlib.contextmanager
def broker(*settings):
    """Another broker with TLS, for as long as the block; its port, data folder and process."""
    path = lambda name: os.path.join(CERTIFICATES, name)
    with tempfile.TemporaryDirectory() as data:
        arguments = ["--data", data, "--amqp", "off", "--nats", "off", "--stomp", "off", "--http", "off"]
        arguments += ["--mqtt", "off"]
        arguments += ["--amqps", "127.0.0.1:0", "--tls-certificate", path("server.pem")]
        arguments += ["--tls-key", path("server.key"), "--tls-client-authorities", path("authority.pem")]
        whole = [PROGRAM, "serve", *arguments, *settings]
        process = subprocess.Popen(whole, stdout=subprocess.PIPE, text=True)
        try:
            shown = next(line for line in process.stdout if line.strip().startswith("amqps on "))
            yield int(shown.rsplit(":", 1)[1]), data, process
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


@case(ours=True, needs=TLS_PORT and PROGRAM)
def a_certificate_is_demanded_and_names_the_user_by_mail(world):
    external = pika.credentials.ExternalCredentials()
    with broker("--tls-client-verify", "required", "--tls-client-user", "email") as (port, data, _):
        assert is_refused(world, port=port, ssl_options=options())
        # Nobody is called so yet.
        assert is_refused(world, port=port, ssl_options=options("ada"), credentials=external)
        command("user", "add", "ada@example.com", "--no-password", "--data", data)
        command("permission", "set", "ada@example.com", "--data", data)
        round_trip(world, world.connect(port=port, ssl_options=options("ada"), credentials=external))
        # A password is as good, once a certificate is shown.
        round_trip(world, world.connect(port=port, ssl_options=options("ada")))


@case(ours=True, needs=TLS_PORT and PROGRAM)
def a_certificate_may_name_nobody(world):
    with broker("--tls-client-user", "none") as (port, *_):
        external = pika.credentials.ExternalCredentials()
        assert is_refused(world, port=port, ssl_options=options("ada"), credentials=external)
        round_trip(world, world.connect(port=port, ssl_options=options("ada")))
