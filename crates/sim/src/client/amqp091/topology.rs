//! Declares the plan's exchanges, queues and bindings, which every client does on each connection.

use super::channel::{Asked, Channel};
use super::wire::with_table;
use crate::plan::{Binding, Plan, Queue, QueueIndex, Target};
use angarium_engine::ExchangeKind;
use angarium_protocol::amqp091::codec::Method;
use angarium_protocol::amqp091::codec::table::TableWriter;

/// Sends all declarations, including that of `own_queue`, which only its consumer declares.
pub(super) fn declare(plan: &Plan, own_queue: Option<QueueIndex>, channel: &mut Channel<'_>) {
    for exchange in &plan.exchanges {
        let kind = exchange.kind.name();
        let arguments = |table: &mut TableWriter<'_>| {
            if exchange.delaying {
                table.text("x-delayed-type", kind);
            }
            if let Some(alternate) = exchange.alternate {
                table.text("alternate-exchange", &plan.exchanges[alternate].name);
            }
        };
        with_table(arguments, |arguments| {
            let method = Method::ExchangeDeclare {
                ticket: 0,
                exchange: &exchange.name,
                kind: if exchange.delaying { "x-delayed-message" } else { kind },
                passive: false,
                durable: true,
                auto_delete: false,
                internal: false,
                no_wait: false,
                arguments,
            };
            channel.ask(&method, Asked::Done);
        });
    }
    let is_declared =
        |index: QueueIndex| own_queue == Some(index) || !plan.queues[index].is_private();
    for index in (0..plan.queues.len()).filter(|index| is_declared(*index)) {
        declare_queue(plan, index, Asked::Done, channel);
    }
    for binding in &plan.bindings {
        if !matches!(binding.target, Target::Queue(queue) if !is_declared(queue)) {
            bind(plan, binding, channel);
        }
    }
}

fn bind(plan: &Plan, binding: &Binding, channel: &mut Channel<'_>) {
    let source = plan.exchanges[binding.exchange].name.as_str();
    let is_headers = plan.exchanges[binding.exchange].kind == ExchangeKind::Headers;
    let wanted = |table: &mut TableWriter<'_>| {
        if is_headers {
            table.text("x-match", binding.headers.mode());
            for (name, value) in &binding.headers.headers {
                table.int(name, *value);
            }
        }
    };
    let (ticket, routing_key, no_wait) = (0, binding.key.as_str(), false);
    with_table(wanted, |arguments| {
        let method = match binding.target {
            Target::Queue(queue) => {
                let (queue, exchange) = (plan.queues[queue].name.as_str(), source);
                Method::QueueBind { ticket, queue, exchange, routing_key, no_wait, arguments }
            }
            Target::Exchange(exchange) => {
                let destination = plan.exchanges[exchange].name.as_str();
                Method::ExchangeBind {
                    ticket,
                    destination,
                    source,
                    routing_key,
                    no_wait,
                    arguments,
                }
            }
        };
        channel.ask(&method, Asked::Done);
    });
}

pub(super) fn declare_queue(
    plan: &Plan,
    index: QueueIndex,
    asked: Asked,
    channel: &mut Channel<'_>,
) {
    let queue = &plan.queues[index];
    let fill = |table: &mut TableWriter<'_>| arguments(plan, queue, table);
    with_table(fill, |arguments| {
        let method = Method::QueueDeclare {
            ticket: 0,
            queue: &queue.name,
            passive: false,
            durable: queue.durable,
            exclusive: queue.exclusive,
            auto_delete: queue.auto_delete,
            no_wait: false,
            arguments,
        };
        channel.ask(&method, asked);
    });
}

fn arguments(plan: &Plan, queue: &Queue, table: &mut TableWriter<'_>) {
    let numbers = [
        ("x-message-ttl", queue.ttl),
        ("x-max-length", queue.length_max),
        ("x-max-priority", queue.priority_max.map(u64::from)),
        ("x-expires", queue.expires),
        ("x-delivery-limit", queue.delivery_limit),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            table.int(name, number.cast_signed());
        }
    }
    if queue.length_max.is_some() {
        table.text("x-overflow", queue.overflow.name());
    }
    if let Some(target) = queue.dead_letters_to {
        table.text("x-dead-letter-exchange", "");
        table.text("x-dead-letter-routing-key", &plan.queues[target].name);
    }
    if queue.single_active {
        table.bool("x-single-active-consumer", true);
    }
}
