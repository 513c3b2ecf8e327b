//! Several direct messages in a row from one publisher to one subject: who hears them is looked up once.

use super::hearing::{Emission, Hearing};
use super::listen::Listener;
use super::{Direct, SUBJECT_EXCHANGE};
use crate::engine::Engine;
use crate::queue::stored::NO_ANNOTATIONS;
use crate::{ConnectionId, Effects, Emit, MessageView, Reached, Refusal, SessionId, Shards, Time};

/// What [`Engine::emit_next`] found out about a subject: that those who listen to it here, outside of
/// groups, are all who get its messages.
///
/// True for as long as nothing else is asked of the engine, and for the same session, subject and `echo`.
/// Whoever keeps it forgets it before.
#[derive(Clone, Copy, Debug)]
pub struct Streak {
    vhost: u32,
    /// Whose listeners they are.
    leaf: u32,
    /// The emission after which it was found, by which it is told from others.
    number: u64,
}

impl Engine {
    /// Emits one of several messages in a row, and says in `streak` what the next one need not look up.
    #[inline(always)]
    pub(crate) fn take_emit<F: Effects>(
        &mut self,
        now: Time,
        id: SessionId,
        emit: &Emit<'_>,
        streak: &mut Option<Streak>,
        fx: &mut F,
    ) -> Result<Reached, Refusal> {
        if let Some(known) = *streak
            && emit.content.body.len() as u64 <= self.options.limits.body_bytes_max
        {
            debug_assert!(self.is_known(id, emit, known), "the caller forgets a streak in time");
            let reached = self.emit_along(id.connection, emit, known, fx);
            if self.direct.has_spent() {
                *streak = None;
                self.end_spent(fx);
            }
            return Ok(reached);
        }
        *streak = None;
        self.emit_first(now, id, emit, streak, fx)
    }

    /// What was found out about the subject of the message that has just been emitted.
    #[inline]
    pub(super) fn find_streak(&self, vhost: u32) -> Option<Streak> {
        let Direct { leaves, emissions: number, .. } = &self.direct;
        let &[leaf] = &leaves[..] else { return None };
        let found = self.vhosts.get(vhost)?.interest.leaf(leaf)?;
        let are_all = found.groups.is_empty() && found.shards().is_empty() && !found.all.is_empty();
        are_all.then_some(Streak { vhost, leaf, number: *number })
    }

    /// Whether looking everything up would find the same.
    fn is_known(&mut self, id: SessionId, emit: &Emit<'_>, streak: Streak) -> bool {
        let vhost =
            self.session_slot(id).and_then(|slot| self.sessions.get(slot)).map(|it| it.vhost);
        let mut leaves = Vec::new();
        if let Some(host) = self.vhosts.get_mut(streak.vhost) {
            host.interest.find(emit.subject, &mut leaves);
        }
        vhost == Some(streak.vhost) && leaves == [streak.leaf] && self.check_emit(id, emit).is_ok()
    }

    /// Hands a message to those who got the last one.
    #[inline(always)]
    fn emit_along<F: Effects>(
        &mut self,
        connection: ConnectionId,
        emit: &Emit<'_>,
        streak: Streak,
        fx: &mut F,
    ) -> Reached {
        let Emit { subject, content, .. } = *emit;
        let message = MessageView {
            exchange: SUBJECT_EXCHANGE,
            routing_key: subject,
            format: content.format,
            properties: content.properties,
            body: content.body,
            persistent: content.persistent,
            annotations: &NO_ANNOTATIONS,
        };
        self.counters.emitted += 1;
        let number = self.direct.next_emission();
        let tried = Shards::NONE;
        let emission = Emission { number, streak: streak.number, message: &message, tried };
        let Direct { listeners, sessions, spent, .. } = &mut self.direct;
        let interest = &self.vhosts.get(streak.vhost).expect("it was there just now").interest;
        let leaf = interest.leaf(streak.leaf).expect("it was there just now");
        let silent = (!emit.echo).then_some(connection);
        let mut hearing = Hearing::default();
        let is_deaf = |listener: &Listener| listener.is_deaf(subject, silent, sessions);
        hearing.count_all(&leaf.all, listeners, spent, is_deaf, emission, fx);
        let reached = self.count_hearing(&hearing);
        if reached.is_nobody() {
            self.counters.unheard += 1;
        }
        reached
    }
}

#[cfg(test)]
mod tests;
