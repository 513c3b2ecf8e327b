"""Transactions, by Proton's reactor."""

from cases import PATIENCE_S, case
from harness import URL, quiet, send, take
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container


class Mover(MessagingHandler, TransactionHandler):
    """Moves messages from one queue to another, a few in each transaction; some are undone first."""

    def __init__(self, source, target, total):
        super().__init__(prefetch=0, auto_accept=False)
        self.source, self.target, self.total = source, target, total
        self.moved = self.current = self.undone = 0
        self.transaction = None
        self.failure = None

    def on_start(self, event):
        self.container = event.container
        self.connection = event.container.connect(URL, allowed_mechs="PLAIN", reconnect=False)
        self.receiver = event.container.create_receiver(self.connection, self.source)
        self.sender = event.container.create_sender(self.connection, self.target)
        event.container.declare_transaction(self.connection, handler=self)
        event.container.schedule(PATIENCE_S, self)

    def on_timer_task(self, _event):
        self.failure = f"{self.moved} of {self.total} moved in time"
        self.connection.close()

    def on_transaction_declared(self, event):
        self.transaction = event.transaction
        self.current = 0
        self.receiver.flow(4)

    def on_message(self, event):
        self.transaction.send(self.sender, event.message)
        self.transaction.accept(event.delivery)
        self.current += 1
        if self.current == 4:
            if self.undone * 4 <= self.moved:
                self.transaction.abort()
            else:
                self.transaction.commit()
            self.transaction = None

    def on_transaction_committed(self, event):
        self.moved += self.current
        self._next()

    def on_transaction_aborted(self, event):
        self.undone += 1
        self._next()

    def _next(self):
        if self.moved < self.total:
            self.container.declare_transaction(self.connection, handler=self)
        else:
            self.container.stop()

    def on_transaction_declare_failed(self, event):
        self.failure = "declare failed"
        self.connection.close()

    def on_transaction_commit_failed(self, event):
        self.failure = "commit failed"
        self.connection.close()


@case()
def messages_are_moved_in_transactions(world):
    connection = world.connect()
    source, target = world.name(), world.name()
    send(connection, source, *range(20))
    mover = Mover(source, target, 20)
    Container(mover).run()
    assert mover.failure is None, mover.failure
    assert mover.undone > 0
    assert take(connection.create_receiver(target, credit=20), 20) == list(range(20))
    quiet(connection.create_receiver(source))
