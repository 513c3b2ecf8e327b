//! Declares the plan's exchanges, queues and bindings, which every client does on each connection.

use super::context::Asked;
use super::wire::{Channel, with_table};
use crate::plan::{Binding, Plan, Queue, Target};
use angarium_engine::{ExchangeKind, Overflow};
use angarium_protocol::amqp091::codec::Method;
use angarium_protocol::amqp091::codec::table::TableWriter;
use std::collections::VecDeque;

/// Sends all declarations, including that of `own_queue`, which only its consumer declares.
pub(super) fn declare(
    plan: &Plan,
    own_queue: Option<usize>,
    wire: &mut Channel<'_>,
    asked: &mut VecDeque<Asked>,
) {
    for exchange in &plan.exchanges {
        let kind = kind(exchange.kind);
        let arguments = |table: &mut TableWriter<'_>| {
            if exchange.delaying {
                table.text("x-delayed-type", kind);
            }
            if let Some(alternate) = exchange.alternate {
                table.text("alternate-exchange", &plan.exchanges[alternate].name);
            }
        };
        with_table(arguments, |arguments| {
            wire.send(&Method::ExchangeDeclare {
                ticket: 0,
                exchange: &exchange.name,
                kind: if exchange.delaying { "x-delayed-message" } else { kind },
                passive: false,
                durable: true,
                auto_delete: false,
                internal: false,
                no_wait: false,
                arguments,
            });
        });
        asked.push_back(Asked::Done);
    }
    let is_declared = |index: usize| {
        let queue = &plan.queues[index];
        own_queue == Some(index) || !queue.is_private()
    };
    for index in (0..plan.queues.len()).filter(|index| is_declared(*index)) {
        declare_queue(plan, index, wire);
        asked.push_back(Asked::Done);
    }
    for binding in &plan.bindings {
        if let Target::Queue(queue) = binding.target
            && !is_declared(queue)
        {
            continue;
        }
        bind(plan, binding, wire);
        asked.push_back(Asked::Done);
    }
}

fn bind(plan: &Plan, binding: &Binding, wire: &mut Channel<'_>) {
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
    let routing_key = binding.key.as_str();
    with_table(wanted, |arguments| match binding.target {
        Target::Queue(queue) => wire.send(&Method::QueueBind {
            ticket: 0,
            queue: &plan.queues[queue].name,
            exchange: source,
            routing_key,
            no_wait: false,
            arguments,
        }),
        Target::Exchange(exchange) => wire.send(&Method::ExchangeBind {
            ticket: 0,
            destination: &plan.exchanges[exchange].name,
            source,
            routing_key,
            no_wait: false,
            arguments,
        }),
    });
}

/// Sends one queue's declaration.
pub(super) fn declare_queue(plan: &Plan, index: usize, wire: &mut Channel<'_>) {
    let queue = &plan.queues[index];
    with_table(
        |table| arguments(plan, queue, table),
        |arguments| {
            wire.send(&Method::QueueDeclare {
                ticket: 0,
                queue: &queue.name,
                passive: false,
                durable: queue.durable,
                exclusive: queue.exclusive,
                auto_delete: queue.auto_delete,
                no_wait: false,
                arguments,
            });
        },
    );
}

fn arguments(plan: &Plan, queue: &Queue, table: &mut TableWriter<'_>) {
    let int = |number: u64| i64::try_from(number).expect("plans have small numbers");
    if let Some(ttl) = queue.ttl {
        table.int("x-message-ttl", int(ttl));
    }
    if let Some(limit) = queue.length_max {
        table.int("x-max-length", int(limit));
        table.text(
            "x-overflow",
            match queue.overflow {
                Overflow::DropHead => "drop-head",
                Overflow::RejectPublish => "reject-publish",
                Overflow::RejectPublishDeadLetter => "reject-publish-dlx",
            },
        );
    }
    if let Some(target) = queue.dead_letters_to {
        table.text("x-dead-letter-exchange", "");
        table.text("x-dead-letter-routing-key", &plan.queues[target].name);
    }
    if let Some(priority) = queue.priority_max {
        table.int("x-max-priority", i64::from(priority));
    }
    if let Some(expires) = queue.expires {
        table.int("x-expires", int(expires));
    }
    if queue.single_active {
        table.bool("x-single-active-consumer", true);
    }
    if let Some(limit) = queue.delivery_limit {
        table.int("x-delivery-limit", int(limit));
    }
}

fn kind(kind: ExchangeKind) -> &'static str {
    match kind {
        ExchangeKind::Direct => "direct",
        ExchangeKind::Fanout => "fanout",
        ExchangeKind::Topic => "topic",
        ExchangeKind::Headers => "headers",
    }
}
