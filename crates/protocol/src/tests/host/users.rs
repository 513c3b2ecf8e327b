//! Users, other than they are at first.

use super::{ADMIN, TestHost};
use crate::{amqp091, nats};
use angarium_engine::{ChannelId, Request};

impl TestHost {
    /// A host without any user but `guest`.
    pub(crate) fn with_guest_alone(amqp091: amqp091::Settings, nats: nats::Settings) -> TestHost {
        let mut host = TestHost::of(amqp091, nats);
        let users: Vec<_> = host.engine.list_users().map(|user| user.name.to_owned()).collect();
        let handler = ChannelId { connection: ADMIN, number: 1 };
        for name in users.into_iter().filter(|name| name != "guest") {
            host.admin(handler, Request::DeleteUser { name });
        }
        host.turn_ends();
        host
    }

    /// Changes what is stored of a user's password.
    pub(crate) fn store_password(&mut self, user: &str, stored: &str) {
        let (name, password_hash) = (user.to_owned(), Some(stored.to_owned()));
        let change = Request::ChangeUser { name, password_hash, administrator: None };
        self.admin(ChannelId { connection: ADMIN, number: 1 }, change);
        self.turn_ends();
    }
}
