//! Who may do what: users, and their permissions per virtual host as patterns over names.
//!
//! Knows no passwords: a password's hash is opaque here and is checked by whoever authenticates.

#![allow(clippy::todo, unused_variables, dead_code)]

use crate::{Refusal, Request};

/// The name under which patterns see the default exchange.
const DEFAULT_EXCHANGE: &str = "amq.default";

/// What a permission is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// Create and delete.
    Configure,
    /// Put messages in.
    Write,
    /// Take messages out.
    Read,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    /// Opaque.
    pub(crate) password_hash: String,
    /// May manage virtual hosts, users and permissions.
    pub(crate) administrator: bool,
}

/// One user's permissions in one virtual host, as listings and snapshots see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PermissionView<'a> {
    /// The user.
    pub(crate) user: &'a str,
    /// The virtual host.
    pub(crate) vhost: &'a str,
    /// Pattern over what it may create and delete.
    pub(crate) configure: &'a str,
    /// Pattern over what it may put messages into.
    pub(crate) write: &'a str,
    /// Pattern over what it may take messages out of.
    pub(crate) read: &'a str,
}

/// All users and permissions.
#[derive(Debug, Default)]
pub(crate) struct Access {}

impl Access {
    /// Creates or changes a user.
    pub(crate) fn put_user(&mut self, name: &str, password_hash: &str, administrator: bool) {
        todo!()
    }
    /// Deletes a user and its permissions; false where there was none.
    pub(crate) fn delete_user(&mut self, name: &str) -> bool {
        todo!()
    }
    /// The user of that name.
    pub(crate) fn user(&self, name: &str) -> Option<&User> {
        todo!()
    }
    /// All users by name.
    pub(crate) fn users(&self) -> impl Iterator<Item = (&str, &User)> {
        std::iter::empty()
    }
    /// Sets a user's permissions in a virtual host. Refused: no such user, a malformed or too large
    /// pattern.
    pub(crate) fn set_permissions(&mut self, set: PermissionView<'_>) -> Result<(), Refusal> {
        todo!()
    }
    /// Takes them away; false where there were none.
    pub(crate) fn clear_permissions(&mut self, user: &str, vhost: &str) -> bool {
        todo!()
    }
    /// Takes everybody's permissions in a virtual host away.
    pub(crate) fn vhost_deleted(&mut self, vhost: &str) {
        todo!()
    }
    /// All permissions, by user, then virtual host.
    pub(crate) fn permissions(&self) -> impl Iterator<Item = PermissionView<'_>> {
        std::iter::empty()
    }
    /// What a connection by `user` to `vhost` may do. Refused where it may not connect.
    pub(crate) fn grant(&self, user: &str, vhost: &str) -> Result<Grant, Refusal> {
        todo!()
    }
}

/// What one connection may do; kept by the connection. Every check takes the [`Access`] it came
/// from, so that changed permissions hold at once for connections that are open.
#[derive(Clone, Debug)]
pub(crate) struct Grant {}

impl Grant {
    /// Whether the user may publish to `exchange`; cheap where it is the same as last time.
    #[inline]
    pub(crate) fn may_publish(&mut self, access: &Access, exchange: &str) -> bool {
        todo!()
    }
    /// The refusal for an exchange that [`Grant::may_publish`] denied.
    pub(crate) fn publish_refused(&self, exchange: &str) -> Refusal {
        todo!()
    }
    /// Whether the user has `right` on the queue or exchange `name`.
    pub(crate) fn may(&mut self, access: &Access, right: Right, name: &str) -> bool {
        todo!()
    }
    /// Checks all rights that a control request takes. A queue declaration without a name is to be
    /// given its name first.
    pub(crate) fn check(&mut self, access: &Access, request: &Request) -> Result<(), Refusal> {
        todo!()
    }
    /// The user's name.
    pub(crate) fn user(&self) -> &str {
        todo!()
    }
}
