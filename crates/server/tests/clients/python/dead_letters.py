"""Dead letters: why, where to, with which history; limits on redelivery."""

from cases import case
from harness import Inbox, count_until, drain, get_until, publish


def with_dead_letters(world, channel, arguments=None, key=None):
    """A queue whose dead letters go, through a fanout exchange, to a second queue; returns all three."""
    exchange = world.exchange(channel, "fanout")
    letters = world.queue(channel)
    channel.queue_bind(letters, exchange)
    arguments = {"x-dead-letter-exchange": exchange, **(arguments or {})}
    if key:
        arguments["x-dead-letter-routing-key"] = key
    return world.queue(channel, arguments), exchange, letters


def death_of(properties):
    """The latest entry of the history."""
    return properties.headers["x-death"][0]


@case()
def a_discarded_message_becomes_a_dead_letter(world):
    channel = world.channel(confirms=True)
    queue, _, letters = with_dead_letters(world, channel)
    publish(channel, queue, b"x", message_id="m", headers={"mine": 1})
    method, _, _ = get_until(channel, queue, auto_ack=False)
    channel.basic_nack(method.delivery_tag, requeue=False)
    method, properties, body = get_until(channel, letters)
    death = death_of(properties)
    assert body == b"x" and properties.message_id == "m" and properties.headers["mine"] == 1
    assert (death["reason"], death["queue"], death["count"]) == ("rejected", queue, 1)
    assert (death["exchange"], death["routing-keys"]) == ("", [queue])
    assert "time" in death and method.routing_key == queue
    first = [properties.headers[f"x-first-death-{part}"] for part in ("reason", "queue", "exchange")]
    assert first == ["rejected", queue, ""]


@case()
def several_rejected_at_once_keep_their_order(world):
    channel = world.channel(confirms=True)
    queue, _, letters = with_dead_letters(world, channel)
    publish(channel, queue, b"1", b"2", b"3")
    inbox = Inbox(channel, queue)
    inbox.wait(3)
    channel.basic_nack(3, multiple=True, requeue=False)
    count_until(channel, letters, 3)
    assert drain(channel, letters) == [b"1", b"2", b"3"]


@case()
def an_expired_message_becomes_a_dead_letter(world):
    channel = world.channel(confirms=True)
    queue, _, letters = with_dead_letters(world, channel, {"x-message-ttl": 20})
    publish(channel, queue, b"x")
    _, properties, body = get_until(channel, letters)
    assert body == b"x" and death_of(properties)["reason"] == "expired"


@case()
def a_message_with_its_own_expiration_loses_it_as_a_dead_letter(world):
    channel = world.channel(confirms=True)
    queue, _, letters = with_dead_letters(world, channel)
    publish(channel, queue, b"x", expiration="20")
    _, properties, _ = get_until(channel, letters)
    assert properties.expiration is None
    assert death_of(properties)["original-expiration"] == "20"


@case()
def what_a_full_queue_drops_becomes_a_dead_letter(world):
    channel = world.channel(confirms=True)
    queue, _, letters = with_dead_letters(world, channel, {"x-max-length": 1})
    publish(channel, queue, b"1", b"2")
    _, properties, body = get_until(channel, letters)
    assert body == b"1" and death_of(properties)["reason"] == "maxlen"
    assert get_until(channel, queue)[2] == b"2"


@case()
def what_a_full_queue_refuses_becomes_a_dead_letter(world):
    channel = world.channel()
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish-dlx"}
    queue, _, letters = with_dead_letters(world, channel, arguments)
    publish(channel, queue, b"1", b"2")
    _, properties, body = get_until(channel, letters)
    assert body == b"2" and death_of(properties)["reason"] == "maxlen"
    assert get_until(channel, queue)[2] == b"1"


@case()
def dead_letters_can_get_a_routing_key(world):
    channel = world.channel(confirms=True)
    queue, _, letters = with_dead_letters(world, channel, key="other.key")
    publish(channel, queue, b"x")
    channel.basic_reject(get_until(channel, queue, auto_ack=False)[0].delivery_tag, requeue=False)
    method, properties, _ = get_until(channel, letters)
    assert method.routing_key == "other.key"
    assert death_of(properties)["routing-keys"] == [queue]


@case()
def dead_letters_go_straight_to_a_queue_by_the_default_exchange(world):
    channel = world.channel(confirms=True)
    letters = world.queue(channel)
    queue = world.queue(channel, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": letters})
    publish(channel, queue, b"x")
    channel.basic_reject(get_until(channel, queue, auto_ack=False)[0].delivery_tag, requeue=False)
    assert get_until(channel, letters)[2] == b"x"


@case()
def without_the_exchange_a_dead_letter_is_gone(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel, {"x-dead-letter-exchange": world.name("missing")})
    publish(channel, queue, b"x")
    channel.basic_reject(get_until(channel, queue, auto_ack=False)[0].delivery_tag, requeue=False)
    count_until(channel, queue, 0)


@case()
def a_cycle_of_expiry_without_a_rejection_ends(world):
    channel = world.channel(confirms=True)
    queue = world.name("q")
    arguments = {"x-message-ttl": 20, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
    channel.queue_declare(queue, arguments=arguments)
    publish(channel, queue, b"x")
    count_until(channel, queue, 0)
    channel.queue_delete(queue)


@case()
def a_retry_by_way_of_a_waiting_queue_goes_round(world):
    channel = world.channel(confirms=True)
    main, waiting = world.name("q"), world.name("q")
    to_waiting = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": waiting}
    channel.queue_declare(main, arguments=to_waiting)
    to_main = {"x-message-ttl": 10, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": main}
    channel.queue_declare(waiting, arguments=to_main)
    publish(channel, main, b"x")
    for round_number in range(3):
        method, properties, _ = get_until(channel, main, auto_ack=False)
        deaths = (properties.headers or {}).get("x-death", [])
        assert all(death["count"] == round_number for death in deaths), f"{deaths}"
        assert len(deaths) == (2 if round_number else 0)
        channel.basic_reject(method.delivery_tag, requeue=False)
    for queue in (main, waiting):
        channel.queue_delete(queue)


@case(ours=True)
def after_the_delivery_limit_a_message_becomes_a_dead_letter(world):
    channel = world.channel(confirms=True)
    queue, _, letters = with_dead_letters(world, channel, {"x-delivery-limit": 2})
    publish(channel, queue, b"poison")
    counts = []
    for _ in range(3):
        method, properties, _ = get_until(channel, queue, auto_ack=False)
        counts.append((properties.headers or {}).get("x-delivery-count", 0))
        channel.basic_nack(method.delivery_tag, requeue=True)
    _, properties, _ = get_until(channel, letters)
    assert counts == [0, 1, 2], f"{counts}"
    assert death_of(properties)["reason"] == "delivery_limit"


@case()
def a_death_tells_every_routing_key(world):
    channel = world.channel(confirms=True)
    queue, _, letters = with_dead_letters(world, channel, key="k")
    publish(channel, queue, b"x", headers={"CC": ["elsewhere"], "keep": 1})
    channel.basic_reject(get_until(channel, queue, auto_ack=False)[0].delivery_tag, requeue=False)
    _, properties, _ = get_until(channel, letters)
    assert properties.headers["keep"] == 1
    assert death_of(properties)["routing-keys"] == [queue, "elsewhere"]


@case()
def a_key_of_its_own_takes_cc_away(world):
    channel = world.channel(confirms=True)
    for key in (None, "own"):
        queue, _, letters = with_dead_letters(world, channel, key=key)
        headers = {"CC": ["elsewhere"], "BCC": ["hidden"], "mine": 1}
        publish(channel, queue, b"x", headers=headers)
        method, _, _ = get_until(channel, queue, auto_ack=False)
        channel.basic_nack(method.delivery_tag, requeue=False)
        _, properties, _ = get_until(channel, letters)
        assert ("CC" in properties.headers) == (key is None), properties.headers
        assert properties.headers["mine"] == 1
        assert death_of(properties)["routing-keys"] == [queue, "elsewhere"]


@case()
def a_history_that_is_published_anew_begins_anew(world):
    channel = world.channel(confirms=True)
    queue, _, letters = with_dead_letters(world, channel)
    headers = {}
    for _ in range(3):
        publish(channel, queue, b"x", headers=headers)
        method, _, _ = get_until(channel, queue, auto_ack=False)
        channel.basic_nack(method.delivery_tag, requeue=False)
        _, properties, _ = get_until(channel, letters)
        headers = properties.headers
        deaths = [(death["queue"], death["reason"], death["count"]) for death in headers["x-death"]]
        assert deaths == [(queue, "rejected", 1)], deaths
