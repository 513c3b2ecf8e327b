"""Attacks on logins: many at once, and guesses at once."""

import base64
import http.client
import threading
import time

from attack import attack
from wire import Amqp, Closed, Nats


def refused(broker, user, password):
    """Why a login over AMQP is refused."""
    try:
        Amqp(broker.amqp, user=user, password=password).close()
    except Closed as error:
        return str(error)
    raise AssertionError(f"{user} is let in with {password}")


@attack(grows_mb_max=80)
def a_flood_of_unknown_users_holds_no_login_up(broker, innocent):
    broker.add_user("bob")
    broker.add_user("cached")
    broker.command("user", "add", "admin", "--administrator", given="pw\n")
    Amqp(broker.amqp, user="cached", password="pw").close()
    ended = threading.Event()
    tried = []

    def flood(number):
        while not ended.is_set():
            try:
                Nats(broker.nats, user=f"x{number}", password="y")
            except (Closed, OSError):
                pass
            tried.append(number)

    threads = [threading.Thread(target=flood, args=(number,), daemon=True) for number in range(60)]
    for thread in threads:
        thread.start()
    try:
        while len(tried) < 120:
            ended.wait(0.05)
        for user in ("bob", "cached"):
            Amqp(broker.amqp, user=user, password="pw").close()
        login = base64.b64encode(b"admin:pw").decode()
        administration = http.client.HTTPConnection("127.0.0.1", broker.http, timeout=20)
        administration.request("GET", "/v1/overview", headers={"Authorization": "Basic " + login})
        assert administration.getresponse().status == 200
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@attack(grows_mb_max=80)
def guesses_at_once_are_counted_as_they_come(broker, innocent):
    broker.add_user("ada")
    guesses = [f"wrong {number}" for number in range(30)]
    why = []
    threads = [
        threading.Thread(target=lambda guess=guess: why.append(refused(broker, "ada", guess)))
        for guess in guesses
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(why) == len(guesses), why
    # The right one is refused as well now, as a guess that came too soon would be.
    refused(broker, "ada", "pw")
    # Of refusals one line a second is logged: guesses go on until there is one of this kind.
    end = time.monotonic() + 10
    while not any("too many wrong passwords" in line for line in broker.errors) and time.monotonic() < end:
        time.sleep(0.2)
        refused(broker, "ada", "another")
    assert any("too many wrong passwords" in line for line in broker.errors), broker.errors
