"""What receipts are worth: the broker is killed, and started again with the same data."""

import contextlib
import subprocess
import tempfile

from cases import PROGRAM, case


class OwnBroker:
    """A broker of the case's own."""

    def __init__(self, data):
        self.data = data
        self.process = None

    def start(self):
        off = ["--amqp", "off", "--nats", "off", "--mqtt", "off", "--http", "off"]
        command = [PROGRAM, "serve", "--data", self.data, *off, "--stomp", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        shown = next(line for line in self.process.stdout if line.strip().startswith("stomp on "))
        return int(shown.rsplit(":", 1)[1])

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def own_broker():
    with tempfile.TemporaryDirectory() as data:
        broker = OwnBroker(data)
        try:
            yield broker
        finally:
            broker.kill()


@case(ours=True, needs=bool(PROGRAM))
def what_receipts_have_told_survives(world):
    with own_broker() as broker:
        port = broker.start()
        client = world.connect(port=port)
        told = set()
        for number in range(200):
            client.send("/queue/safe", str(number), persistent="true", receipt=number)
            # Some are under way when the broker is killed.
            while number > 150 and len(told) < number - 20:
                told.add(client.receipt())
        broker.kill()
        told |= set(client.got.receipts.queue)
        again = world.connect(port=broker.start())
        again.subscribe("/queue/safe", ack="client")
        got = set(again.bodies(len(told)))
        while not again.got.messages.empty():
            got.add(again.message().body)
        assert told <= got, sorted(told - got)
        again.close()


@case(ours=True, needs=bool(PROGRAM))
def acknowledgements_and_transactions_with_receipts_survive(world):
    with own_broker() as broker:
        client = world.connect(port=broker.start())
        client.subscribe("/queue/work", ack="client-individual")
        client.subscribe("/topic/news", id="1", durable="true", auto_delete="false")
        for body in ("a", "b", "c"):
            client.send("/queue/work", body, persistent="true")
        frames = [client.message() for _ in "abc"]
        client.acknowledge(frames[0], receipt="a")
        assert client.receipt() == "a"
        transaction = client.connection.begin()
        client.acknowledge(frames[1], transaction=transaction)
        client.send("/queue/done", "b", persistent="true", transaction=transaction)
        client.connection.commit(transaction, receipt="b")
        assert client.receipt() == "b"
        broker.kill()
        again = world.connect(port=broker.start())
        again.subscribe("/queue/work", ack="client-individual")
        assert again.bodies(1) == ["c"]
        again.silent()
        again.subscribe("/queue/done", id="1")
        assert again.bodies(1) == ["b"]
        # The durable subscription is there as well.
        again.unsubscribe(id="1")
        again.send("/topic/news", "news", persistent="true")
        again.subscribe("/topic/news", id="1", durable="true", auto_delete="false")
        assert again.bodies(1) == ["news"]
        again.close()
