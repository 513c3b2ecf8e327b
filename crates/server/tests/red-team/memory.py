"""Attacks on memory: what peers can make grow."""

from attack import attack
from wire import Amqp, Closed, Nats, body, header, method, short

NOTHING = "^$"


def send_all(client, parts):
    """Sends until the broker closes or refuses."""
    try:
        for part in parts:
            client.send(part)
    except OSError:
        pass


@attack(grows_mb_max=60)
def bodies_of_a_user_without_rights_are_not_collected(broker, innocent):
    broker.add_user("zero", NOTHING, NOTHING, NOTHING)
    client = Amqp(broker.amqp, user="zero", password="pw")
    for channel in range(1, 5):
        client.open(channel)
    for channel in range(1, 5):
        refused = b"\0\0" + short("") + short("x") + b"\0"
        client.send(method(channel, 60, 40, refused) + header(channel, 64 << 20))
        send_all(client, (body(channel, b"x" * 131000) for _ in range(150)))
    assert client.closed_with().startswith("403")


@attack(grows_mb_max=60)
def a_nats_client_told_of_an_error_is_read_no_more(broker, innocent):
    client = Nats(broker.nats)
    send_all(client, [b"PUB a 99999999\r\n"] + [b"x" * 65536] * 1600)
    try:
        while True:
            client.line()
    except (Closed, OSError) as error:
        assert "ERR" in str(error) or isinstance(error, OSError), error
