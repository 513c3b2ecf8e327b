"""Clients that do nothing wrong while others attack: they have to be served all the time."""

import threading
import time

from wire import Amqp, Nats, method, publish

PATIENCE_S = 30.0


class Innocent:
    """A pair over AMQP and one over NATS; each sends a message and waits until it has come.

    Where a message is refused, it is sent again after a while.
    """

    def __init__(self, broker):
        self.rounds = {"AMQP": 0, "NATS": 0}
        self.worst = {"AMQP": 0.0, "NATS": 0.0}
        self.failed = []
        self.stopped = threading.Event()
        self.producer, self.consumer = Amqp(broker.amqp), Amqp(broker.amqp)
        self.producer.open()
        self.producer.send(method(1, 85, 10, b"\0"))
        self.producer.expect(85, 11)
        self.refused = 0
        self.consumer.open()
        self.consumer.queue("innocent")
        self.consumer.consume("innocent")
        self.publisher, self.subscriber = Nats(broker.nats), Nats(broker.nats)
        self.subscriber.send(b"SUB innocent 1\r\nPING\r\n")
        while self.subscriber.line() != b"PONG":
            pass
        loops = [("AMQP", self._amqp), ("NATS", self._nats)]
        self.threads = [threading.Thread(target=self._run, args=loop, daemon=True) for loop in loops]
        for thread in self.threads:
            thread.start()

    def _run(self, name, once):
        while not self.stopped.is_set():
            begun = time.monotonic()
            try:
                once()
            except Exception as error:  # Whatever it is, the innocent were not served.
                if not self.stopped.is_set():
                    self.failed.append(f"{name} after {self.rounds[name]} messages: {error!r}")
                return
            self.worst[name] = max(self.worst[name], time.monotonic() - begun)
            self.rounds[name] += 1
            time.sleep(0.001)

    def _amqp(self):
        while not self._is_taken(publish("", "innocent", b"x" * 100)):
            self.refused += 1
            time.sleep(0.01)
        assert self.consumer.delivered() == b"x" * 100

    def _is_taken(self, message):
        """Publishes; returns whether the broker confirms it."""
        self.producer.send(message)
        while True:
            numbers, _ = self.producer.method()
            if numbers in ((60, 80), (60, 120)):
                return numbers == (60, 80)

    def _nats(self):
        self.publisher.send(b"PUB innocent 5\r\nhello\r\n")
        assert self.subscriber.line() == b"MSG innocent 1 5"
        assert self.subscriber.line() == b"hello"

    def must_be_served(self):
        """Waits until each pair has had two more messages; fails where one is refused or waits too long."""
        wanted = {name: rounds + 2 for name, rounds in self.rounds.items()}
        end = time.monotonic() + PATIENCE_S
        while any(self.rounds[name] < wanted[name] for name in wanted):
            assert not self.failed, f"the innocent are not served: {self.failed}"
            assert time.monotonic() < end, f"the innocent wait: {self.rounds} of {wanted}"
            time.sleep(0.01)

    def end(self):
        self.stopped.set()
        for client in (self.producer, self.consumer, self.publisher, self.subscriber):
            client.close()
        for thread in self.threads:
            thread.join()
