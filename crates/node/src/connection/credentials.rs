//! Credentials on their way from protocol handlers to the host that checks them, and the answers.

use crate::connection::key::ConnectionKey;
use crate::connection::proof::Proof;
use crate::effects::Verification;
use crate::node::Node;
use angarium_engine::{ConnectionId, Time};
use angarium_protocol::{Authentication, Credentials, ProtocolHandler};

impl Node {
    /// The next credentials to check, if any; the answer comes back by [`Node::verified`].
    pub fn next_verification(&mut self) -> Option<Verification> {
        self.connections.verifications.pop_front()
    }

    /// Why the next login was refused, for the log, where that is not the host's own answer.
    pub fn next_refused_login(&mut self) -> Option<String> {
        self.effects.refused_logins.pop_front()
    }

    /// The answer to a [`Verification`].
    pub fn verified(&mut self, now: Time, id: ConnectionId, serial: u64, answer: Authentication) {
        let key = ConnectionKey { id, serial };
        if !self.is_open(id) || !self.is_there(key) {
            return;
        }
        if answer.is_err() {
            self.stats.authentications_failed += 1;
        }
        match answer {
            Ok(identity) if !self.is_home() => self.ask_for_admission(key, identity),
            answer => self.logged_in(now, id, answer),
        }
    }

    /// Hands a connection the answer to its credentials.
    pub(crate) fn logged_in(&mut self, now: Time, id: ConnectionId, answer: Authentication) {
        let answer = answer.and_then(|identity| {
            self.still_proves(id, &identity.user)?;
            Ok(identity)
        });
        if self.resume_with(now, id, |handler, context| handler.authenticated(context, answer)) {
            self.apply_quota(id);
        }
    }

    /// Refuses a password that was right, where the user's password was changed or the user deleted while it
    /// was checked.
    fn still_proves(&mut self, id: ConnectionId, user: &str) -> Result<(), String> {
        let Some(connection) = self.connections.get_mut(id) else { return Ok(()) };
        let Proof::Password(checked) = &mut connection.proof else { return Ok(()) };
        let checked = checked.take();
        if checked.is_none() || checked.as_deref() == self.engine.password_hash(user) {
            return Ok(());
        }
        let user = user.escape_debug();
        let why = format!("the password of user '{user}' was changed while it was checked");
        let from = &connection.peer.address;
        self.effects.refused_logins.push_back(format!("{why}, for a client from {from}"));
        Err(why)
    }

    /// Makes verifications for the host of the credentials that protocol handlers passed on.
    pub(crate) fn take_credentials(&mut self, now: Time) {
        for (id, credentials) in std::mem::take(&mut self.effects.credentials) {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            let serial = connection.serial;
            if !connection.peer.local
                && self.options.local_users.iter().any(|user| user == credentials.user())
            {
                let user = credentials.user();
                let why = format!("user '{user}' can only connect from the broker's own host");
                let from = &connection.peer.address;
                self.effects.refused_logins.push_back(format!("{why}, and came from {from}"));
                self.verified(now, id, serial, Err(why));
                continue;
            }
            let stored = self.engine.password_hash(credentials.user());
            connection.proof = match &credentials {
                Credentials::Password { .. } | Credentials::Scram { .. } => {
                    Proof::Password(stored.map(Box::from))
                }
                _ => Proof::Other,
            };
            let verification = Verification {
                connection: id,
                serial,
                password_hash: stored.map(str::to_owned),
                credentials,
                address: connection.peer.address.clone(),
                local: connection.peer.local,
            };
            self.connections.verifications.push_back(verification);
        }
    }
}
