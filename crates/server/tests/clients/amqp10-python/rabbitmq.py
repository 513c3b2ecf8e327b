"""RabbitMQ's AMQP 1.0 client for Python: management, publishers, consumers."""

from cases import case
from harness import URL
from rabbitmq_amqp_python_client import (
    AddressHelper,
    AMQPMessagingHandler,
    ClassicQueueSpecification,
    Environment,
    ExchangeSpecification,
    ExchangeToQueueBindingSpecification,
    ExchangeType,
    Message,
    OutcomeState,
    QuorumQueueSpecification,
    ValidationCodeException,
)


def environment():
    """An environment for the broker."""
    return Environment(uri=URL)


class Enough(Exception):
    """Ends a consumer: its loop has no other end after which it can be closed."""


class Collector(AMQPMessagingHandler):
    """Does with each message what its body says, until `total` have come."""

    def __init__(self, total):
        super().__init__(auto_accept=False, auto_settle=False)
        self.total = total
        self.got = []

    def on_amqp_message(self, event):
        body = bytes(event.message.body).decode()
        self.got.append((body, event.message.delivery_count or 0, event.message.annotations))
        context = self.delivery_context
        if body.startswith("discard"):
            context.discard(event)
        elif body.startswith("requeue") and len(self.got) < self.total:
            context.requeue_with_annotations(event, {"x-opt-tried": "once"})
        else:
            context.accept(event)
        if len(self.got) == self.total:
            raise Enough


def consume(connection, address, total):
    """What comes from an address."""
    collector = Collector(total)
    consumer = connection.consumer(address, message_handler=collector)
    try:
        consumer.run()
    except Enough:
        consumer.close()
    return collector.got


@case()
def queues_are_declared_used_and_deleted(world):
    connection = environment().connection()
    connection.dial()
    management = connection.management()
    for specification in (
        ClassicQueueSpecification(name=world.name() + " /", max_len=100),
        QuorumQueueSpecification(name=world.name(), deliver_limit=5),
    ):
        name = specification.name
        management.declare_queue(specification)
        management.declare_queue(specification)
        address = AddressHelper.queue_address(name)
        publisher = connection.publisher(address)
        for body in (b"1", b"2"):
            delivery = publisher.publish(Message(body=body))
            assert delivery.remote_state == OutcomeState.ACCEPTED, delivery.remote_state
        publisher.close()
        info = management.queue_info(name)
        assert (info.name, info.message_count) == (name, 2), info
        assert [body for body, _, _ in consume(connection, address, 2)] == ["1", "2"]
        assert management.purge_queue(name) == 0
        management.delete_queue(name)
        try:
            management.queue_info(name)
        except ValidationCodeException:
            continue
        raise AssertionError("the queue is still there")
    management.close()
    connection.close()


@case()
def exchanges_lead_to_queues(world):
    connection = environment().connection()
    connection.dial()
    management = connection.management()
    queue, exchange = world.name(), world.name()
    management.declare_queue(QuorumQueueSpecification(name=queue))
    management.declare_exchange(ExchangeSpecification(name=exchange, exchange_type=ExchangeType.topic))
    binding = ExchangeToQueueBindingSpecification(
        source_exchange=exchange, destination_queue=queue, binding_key="a.*"
    )
    path = management.bind(binding)
    publisher = connection.publisher(f"/exchanges/{exchange}/a.b")
    assert publisher.publish(Message(body=b"x")).remote_state == OutcomeState.ACCEPTED
    publisher.close()
    anywhere = connection.publisher()
    anywhere.publish(Message(body=b"y", address=f"/queues/{queue}"))
    anywhere.close()
    assert [body for body, _, _ in consume(connection, f"/queues/{queue}", 2)] == ["x", "y"]
    management.unbind(path)
    management.delete_exchange(exchange)
    management.delete_queue(queue)
    connection.close()


@case()
def what_consumers_do_with_messages(world):
    connection = environment().connection()
    connection.dial()
    management = connection.management()
    dead, queue = world.name(), world.name()
    management.declare_queue(QuorumQueueSpecification(name=dead))
    management.declare_queue(
        QuorumQueueSpecification(name=queue, dead_letter_exchange="", dead_letter_routing_key=dead)
    )
    publisher = connection.publisher(f"/queues/{queue}")
    for body in (b"discard", b"requeue"):
        publisher.publish(Message(body=body))
    publisher.close()
    got = consume(connection, f"/queues/{queue}", 3)
    assert [body for body, _, _ in got] == ["discard", "requeue", "requeue"], got
    assert got[2][2]["x-opt-tried"] == "once", got[2]
    assert [body for body, _, _ in consume(connection, f"/queues/{dead}", 1)] == ["discard"]
    for name in (queue, dead):
        management.delete_queue(name)
    connection.close()
