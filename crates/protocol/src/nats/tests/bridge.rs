//! One address space with AMQP 0-9-1: the table in `docs/protocols/mapping.md`, pair by pair.

use super::check;

#[test]
fn what_nats_publishes_reaches_queues_with_amqp_properties() {
    check(
        "A> 1 queue.declare queue=q
         A< 1 queue.declare-ok queue=q
         A> 1 queue.bind queue=q exchange=amq.topic routing_key=orders.#
         A< 1 queue.bind-ok
         > PUB orders.eu 5|hello
         > nothing",
    );
}
