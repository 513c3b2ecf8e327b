//! Clients that speak AMQP 1.0: a role for each.

mod broken;
mod browser;
mod connection;
mod receiver;
mod taker;
mod transactor;
mod wire;

use super::endpoint::Endpoint;
use crate::plan::amqp10::Client;
use crate::random::Random;
use angarium_engine::Time;

/// A client for `plan` that first connects at `start`.
pub(super) fn client_for(plan: &Client, start: Time, random: Random) -> Box<dyn Endpoint> {
    match plan.clone() {
        Client::Taker(plan) => connection::client(taker::Taking::new(plan), start, random),
        Client::Transactor(plan) => {
            connection::client(transactor::Transacting::new(plan), start, random)
        }
        Client::Browser(plan) => connection::client(browser::Browsing::new(plan), start, random),
    }
}
