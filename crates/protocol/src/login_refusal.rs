//! Why a login was refused, as a text for the log: clients get no detail.

use crate::Peer;
use angarium_engine::{Refusal, RefusalKind};

/// Adds the client's address, and replaces control characters, which could forge a line of the log.
pub(crate) fn from(why: &str, peer: &Peer) -> String {
    let why = why.replace(char::is_control, "?");
    format!("{why}; from {}", peer.address)
}

/// Why the engine refused a user whose credentials were right, and what to do about it.
pub(crate) fn refused(refusal: &Refusal, user: &str, vhost: &str, peer: &Peer) -> String {
    let why = match refusal.kind {
        RefusalKind::NotFound => {
            format!(
                "user '{user}' asked for virtual host '{vhost}', and there is none of that name"
            )
        }
        RefusalKind::AccessRefused => format!(
            "user '{user}' has no rights in virtual host '{vhost}': \
             `angarium permission set {user} --vhost {vhost}` gives it some"
        ),
        _ => refusal.text.clone(),
    };
    from(&why, peer)
}
