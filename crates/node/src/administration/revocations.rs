//! Takes away what open connections rest on (users, their passwords and permissions, virtual hosts): first
//! those connections end, some in each turn on every shard; then home carries the request out and ends
//! connections that came meanwhile.
//!
//! Does not know how something is deleted or changed.

use crate::node::Node;
use crate::shard::message::{ShardMessage, ToHome};
use angarium_engine::{
    ConnectionId, Refusal, RefusalKind, Request, Revocation, ShardId, Shards, Time,
};
use angarium_journal::State;
use angarium_protocol::Close;
use std::collections::VecDeque;

/// Connections that end in one turn: each takes some 15 us, its socket's end included.
const ENDED_AT_ONCE: usize = 32;
/// Where more than those of a turn have ended, all are looked at again, so often at most: clients may come
/// back sooner than the others are gone.
const ROUNDS_MAX: usize = 5;
/// Slots that are looked at in one turn.
const LOOKS_PER_TURN: usize = 2_048;

/// What is going to be taken away.
#[derive(Debug, Default)]
pub(crate) struct Revocations {
    /// Whose connections end on this shard, one after the other.
    pub(crate) endings: VecDeque<Ending>,
    /// At home: requests that wait for that on all shards.
    waiting: VecDeque<Waiting>,
}

/// All that use one.
#[derive(Debug)]
pub(crate) struct Ending {
    revocation: Revocation<String>,
    /// The slot from which on connections were not looked at.
    next: u32,
    /// How many have ended since all were looked at last, and how often they were.
    ended: usize,
    rounds: usize,
}

/// An administrator's request.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The slot that it is asked in, and the virtual host.
    pub(crate) id: ConnectionId,
    pub(crate) asked_in: String,
    pub(crate) request: Request,
    /// Where connections may still end.
    shards: Shards,
}

impl Ending {
    /// Whether all are to be looked at again.
    fn begin_again(&mut self) -> bool {
        self.rounds += 1;
        self.next = 1;
        std::mem::take(&mut self.ended) > ENDED_AT_ONCE && self.rounds < ROUNDS_MAX
    }
}

impl Revocations {
    /// Ends connections for home.
    pub(crate) fn begin(&mut self, revocation: Revocation<&str>) {
        let revocation = revocation.to_owned();
        self.endings.push_back(Ending { revocation, next: 1, ended: 0, rounds: 0 });
    }

    /// A shard has ended all connections for the oldest request that waits for it. Returns one that waits for
    /// nothing more.
    fn ended_at(&mut self, shard: ShardId) -> Option<Waiting> {
        let oldest = self.waiting.iter_mut().find(|waiting| waiting.shards.contains(shard))?;
        oldest.shards = oldest.shards.without(shard);
        // Shards keep their order: none is done with one before those that are older.
        let is_ready = self.waiting.front().is_some_and(|first| first.shards.is_empty());
        if is_ready { self.waiting.pop_front() } else { None }
    }
}

/// What a request takes away from connections.
fn revocation_of(request: &Request) -> Option<Revocation<&str>> {
    match request {
        Request::DeleteVhost { name } => Some(Revocation::Vhost(name)),
        Request::DeleteUser { name } => Some(Revocation::User(name)),
        Request::ChangeUser { name, password_hash: Some(_), .. } => {
            Some(Revocation::Password(name))
        }
        Request::ClearPermissions { user, vhost } => Some(Revocation::Permissions { user, vhost }),
        _ => None,
    }
}

impl Node {
    /// Holds an administrator's request back until the connections that rest on what it takes are gone;
    /// returns any other request. Refuses to delete the virtual host that it is asked in.
    pub(crate) fn await_endings(
        &mut self,
        id: ConnectionId,
        asked_in: &str,
        request: Request,
    ) -> Result<Option<Request>, Refusal> {
        let Some(revocation) = revocation_of(&request) else { return Ok(Some(request)) };
        if revocation == Revocation::Vhost(asked_in) {
            let text =
                format!("virtual host '{asked_in}' is the one that administration itself uses");
            return Err(Refusal::new(RefusalKind::PreconditionFailed, text));
        }
        // If it cannot be taken away, no connection ends.
        if !self.can_revoke(revocation) {
            return Ok(Some(request));
        }
        self.effects.links.say_to_all(ShardMessage::Ended { revocation });
        self.administration.revocations.begin(revocation);
        let shards = Shards::one(self.options.shard).and(self.effects.links.others);
        let asked_in = asked_in.to_owned();
        self.administration.revocations.waiting.push_back(Waiting {
            id,
            asked_in,
            request,
            shards,
        });
        Ok(None)
    }

    /// Whether it is there, and the journal keeps that it is taken away.
    fn can_revoke(&self, revocation: Revocation<&str>) -> bool {
        let is_there = match revocation {
            Revocation::Vhost(name) => self.engine.list_vhosts().any(|vhost| vhost.name == name),
            Revocation::User(name) | Revocation::Password(name) => {
                self.engine.list_users().any(|user| user.name == name)
            }
            Revocation::Permissions { user, vhost } => {
                let mut permissions = self.engine.list_permissions();
                permissions.any(|it| it.user == user && it.vhost == vhost)
            }
        };
        is_there && !matches!(self.storage.state, State::Failed(_))
    }

    /// Ends some more connections.
    #[cold]
    pub(crate) fn end_some_connections(&mut self, now: Time) {
        let Some(mut ending) = self.administration.revocations.endings.pop_front() else { return };
        let mut left = ENDED_AT_ONCE;
        let reason = ending.revocation.borrowed().reason();
        for _ in 0..LOOKS_PER_TURN {
            if left == 0 || ending.next as usize >= self.connections.slots.len() {
                break;
            }
            let id = ConnectionId(ending.next);
            ending.next += 1;
            left -=
                usize::from(self.end_if_included(now, id, ending.revocation.borrowed(), &reason));
        }
        ending.ended += ENDED_AT_ONCE - left;
        if (ending.next as usize) < self.connections.slots.len() || ending.begin_again() {
            return self.administration.revocations.endings.push_front(ending);
        }
        if self.is_home() {
            self.ended_at(now, self.options.shard);
        } else {
            self.effects.links.ask_home(ToHome::Ended);
        }
    }

    /// A shard has ended all connections for the oldest request.
    pub(crate) fn ended_at(&mut self, now: Time, shard: ShardId) {
        let waiting = self.administration.revocations.ended_at(shard);
        let Some(Waiting { id, asked_in, request, .. }) = waiting else { return };
        // Other shards end later connections when they learn of it.
        if let Some(revocation) = revocation_of(&request).filter(|it| self.can_revoke(*it)) {
            self.end_all(now, revocation);
        }
        self.ask_as_administrator(now, id, &asked_in, request);
    }

    /// Ends all connections here that use what goes next, at once.
    pub(crate) fn end_all(&mut self, now: Time, revocation: Revocation<&str>) {
        let reason = revocation.reason();
        for id in self.slots() {
            self.end_if_included(now, id, revocation, &reason);
        }
    }

    /// Ends a connection here, or home's part of one of another shard, if it rests on that, whatever
    /// time its protocol would give it; says whether it did.
    fn end_if_included(
        &mut self,
        now: Time,
        id: ConnectionId,
        revocation: Revocation<&str>,
        reason: &str,
    ) -> bool {
        if self.end_remote_if_included(now, id, revocation)
            || self.end_in_process_if_included(now, id, revocation, reason)
        {
            return true;
        }
        let Some(connection) = self.connections.get(id).filter(|it| it.ended.is_none()) else {
            return false;
        };
        let info = connection.handler.info();
        if !revocation.includes(info.user, info.vhost, connection.proof.is_password()) {
            return false;
        }
        self.close_connection(now, id, reason);
        if self.is_open(id) {
            self.end(now, id, Close { reason: reason.to_owned() });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which shards have ended connections, one after the other, and after which of them which request goes
    /// on.
    #[track_caller]
    fn check(requests: &[u64], steps: &[(u8, Option<usize>)]) {
        let mut revocations = Revocations::default();
        for (number, count) in requests.iter().enumerate() {
            let shards = (0..*count).fold(Shards::NONE, |all, shard| {
                all.and(Shards::one(ShardId(u8::try_from(shard).unwrap())))
            });
            let request = Request::DeleteUser { name: number.to_string() };
            let (id, asked_in) = (ConnectionId(1), String::new());
            revocations.waiting.push_back(Waiting { id, asked_in, request, shards });
        }
        for &(shard, expected) in steps {
            let found = revocations.ended_at(ShardId(shard));
            let found = found.as_ref().and_then(|waiting| revocation_of(&waiting.request));
            let expected = expected.map(|number| number.to_string());
            let expected = expected.as_deref().map(Revocation::User);
            assert_eq!(found, expected, "{requests:?} {steps:?}");
        }
    }

    #[test]
    fn a_request_goes_on_once_all_shards_have_ended_connections_for_it() {
        check(&[1], &[(0, Some(0)), (0, None)]);
        check(&[3], &[(1, None), (0, None), (2, Some(0))]);
        check(&[2, 2], &[(1, None), (1, None), (0, Some(0)), (0, Some(1))]);
        check(&[2, 2], &[(1, None), (0, Some(0)), (0, None), (1, Some(1))]);
    }
}
