"""What the broker refuses, and how it says so."""

import ssl

import stomp
from cases import CERTIFICATES, PROGRAM, administer, case
from harness import PORT, TLS_PORT


@case()
def wrong_passwords_are_refused(world):
    client = world.client(password="wrong")
    try:
        client.connect()
    except stomp.exception.ConnectFailedException:
        assert client.got.errors.get(timeout=5).headers["message"] == "Bad CONNECT"
        return
    raise AssertionError("logged in with a wrong password")


@case()
def errors_explain_and_come_before_the_end(world):
    client = world.connect()
    client.connection.subscribe("/exchange/does.not.exist", id="0", headers={"receipt": "r"})
    error = client.error()
    assert error.headers["message"] == "not_found" and error.headers["receipt-id"] == "r"
    assert error.body == "NOT_FOUND - no exchange 'does.not.exist' in vhost '/'\n", error.body


@case()
def arguments_that_differ_are_named(world):
    queue = f"/queue/{world.name()}"
    world.connect().subscribe(queue)
    client = world.connect()
    client.connection.subscribe(queue, id="0", headers={"auto-delete": "true"})
    error = client.error()
    assert error.headers["message"] == "precondition_failed"
    assert "differs in auto_delete" in error.body, error.body


@case(needs=bool(PROGRAM))
def users_have_rights(world):
    user = world.name("user")
    administer("user", "add", user, text="secret")
    administer("permission", "set", user, "--write", "amq.topic", "--read", "", "--configure", "")
    client = world.connect(user=user, password="secret")
    client.send("/topic/a", "x", receipt="r")
    assert client.receipt() == "r"
    client.connection.subscribe("/topic/a", id="0")
    assert client.error().headers["message"] == "access_refused"


@case(needs=bool(TLS_PORT))
def tls_is_offered(world):
    context = f"{CERTIFICATES}/authority.pem"
    client = world.client(port=int(TLS_PORT))
    client.connection.set_ssl(
        for_hosts=[("127.0.0.1", int(TLS_PORT))],
        ca_certs=context,
        ssl_version=ssl.PROTOCOL_TLS_CLIENT,
        cert_validator=lambda *_: (True, ""),
    )
    client.connect()
    queue = f"/queue/{world.name()}"
    client.subscribe(queue)
    world.connect(port=PORT).send(queue, "hello")
    assert client.bodies(1) == ["hello"]
