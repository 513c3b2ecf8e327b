"""`$management` and `/management`, asked with plain messages, as any client can."""

from cases import PATIENCE_S, case
from harness import send
from proton import Message, symbol
from proton.reactor import LinkOption
from proton.utils import LinkDetached


# The reply address that stands for the paired link, by which answers come settled.
PAIRED = "$me"


class Paired(LinkOption):
    """Makes two links of one name a pair: requests go by one, answers come by the other."""

    def apply(self, link):
        link.properties = {symbol("paired"): True}


class Asker:
    """Sends requests to an address; answers come to a queue of its own, or by the paired link."""

    def __init__(self, connection, address, is_paired=False):
        if is_paired:
            options = {"name": "pair", "options": Paired()}
            self.answers = connection.create_receiver(address, **options)
            self.reply_to = PAIRED
        else:
            options = {}
            self.answers = connection.create_receiver(None, dynamic=True)
            self.reply_to = self.answers.link.remote_source.address
        self.requests = connection.create_sender(address, **options)
        self.count = 0

    def ask(self, **message):
        self.count += 1
        self.requests.send(Message(id=str(self.count), reply_to=self.reply_to, **message))
        answer = self.answers.receive(timeout=PATIENCE_S)
        if self.reply_to != PAIRED:
            self.answers.accept()
        assert answer.correlation_id == str(self.count), answer
        return answer

    def operate(self, operation, **arguments):
        """An operation of the management draft: its status, and the body of the answer."""
        answer = self.ask(properties={"operation": operation, **arguments})
        return answer.properties["statusCode"], answer.body

    def request(self, method, path, body=None):
        """A request of HTTP over AMQP: its status, and the body of the answer."""
        answer = self.ask(subject=method, address=path, body=body)
        return answer.subject, answer.body


@case()
def queues_are_listed_and_shown(world):
    connection = world.connect()
    queue = world.name()
    send(connection, queue, "1", "2")
    receiver = connection.create_receiver(queue)
    receiver.receive(timeout=PATIENCE_S)
    asker = Asker(connection, "$management")
    assert asker.operate("GET-TYPES") == (200, {"queue": []})
    status, attributes = asker.operate("GET-ATTRIBUTES")
    assert status == 200 and "messages" in attributes["queue"], attributes
    status, shown = asker.operate("READ", name=queue, type="queue")
    assert status == 200, shown
    assert (shown["name"], shown["messages"], shown["unsettled"]) == (queue, 1, 1), shown
    assert (shown["consumers"], shown["durable"]) == (1, True), shown
    found, offset = [], 0
    while offset is not None:
        status, listed = asker.operate("QUERY", entityType="queue", offset=offset, count=1)
        assert status == 200 and len(listed["results"]) <= 1, listed
        names = list(listed["attributeNames"])
        found += [row[names.index("name")] for row in listed["results"]]
        offset = listed.get("next")
    assert queue in found, found


@case()
def what_management_does_not_do_says_so(world):
    asker = Asker(world.connect(), "$management")
    for operation, arguments, status in (
        ("DELETE", {"name": "q", "type": "queue"}, 405),
        ("READ", {"name": world.name(), "type": "queue"}, 404),
        ("READ", {"type": "queue"}, 400),
        ("QUERY", {"entityType": "router"}, 404),
        ("DANCE", {}, 501),
    ):
        assert asker.operate(operation, **arguments)[0] == status, operation
    answer = asker.ask(properties={})
    assert answer.properties["statusCode"] == 400, answer.properties
    assert "operation" in answer.properties["statusDescription"], answer.properties


@case()
def queues_are_declared_by_a_pair_of_links_and_by_any_two(world):
    for is_paired in (True, False):
        connection = world.connect()
        asker = Asker(connection, "/management", is_paired)
        queue = world.name()
        arguments = {"x-max-length": 2, "x-overflow": "reject-publish"}
        declared = {"durable": True, "arguments": arguments}
        status, body = asker.request("PUT", f"/queues/{queue}", declared)
        assert (status, body["name"]) == ("201", queue), (status, body)
        assert asker.request("PUT", f"/queues/{queue}", declared)[0] == "200"
        status, why = asker.request("PUT", f"/queues/{queue}", {"durable": False})
        assert status == "409" and queue in why, (status, why)
        exchange = world.name()
        assert asker.request("PUT", f"/exchanges/{exchange}", {"type": "topic", "durable": True})[0] == "204"
        binding = {"source": exchange, "destination_queue": queue, "binding_key": "a.#", "arguments": {}}
        assert asker.request("POST", "/bindings", binding)[0] == "204"
        send(connection, f"/exchanges/{exchange}/a.b", "x")
        status, shown = asker.request("GET", f"/queues/{queue}")
        assert status == "200" and shown["message_count"] == 1, shown
        status, purged = asker.request("DELETE", f"/queues/{queue}/messages")
        assert status == "200" and purged["message_count"] == 1, purged
        status, listed = asker.request("GET", f"/bindings?src={exchange}&dstq={queue}&key=a.%23")
        assert status == "200" and len(listed) == 1, listed
        assert asker.request("DELETE", f"/queues/{queue}")[0] == "200"
        assert asker.request("DELETE", f"/exchanges/{exchange}")[0] == "204"
        assert asker.request("GET", f"/queues/{queue}")[0] == "404"
        assert asker.request("BREW", "/queues/tea")[0].startswith("4")


@case()
def management_asks_for_rights(world):
    """A queue that is another connection's own is not deleted, and the link goes on."""
    owner = world.connect().create_receiver(None, dynamic=True)
    address = owner.link.remote_source.address
    asker = Asker(world.connect(), "/management", is_paired=True)
    status, why = asker.request("DELETE", f"/queues/{address}")
    assert status in ("400", "403"), (status, why)
    assert asker.request("GET", f"/queues/{world.name()}")[0] == "404"
    try:
        world.connect().create_receiver(address)
    except LinkDetached as error:
        assert error.condition == "amqp:resource-locked", error.condition
    else:
        raise AssertionError("another connection consumes from it")
