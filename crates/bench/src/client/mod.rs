//! Native clients of the protocols that loads are made of, one folder each.

pub mod amqp091;
