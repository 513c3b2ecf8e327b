//! Requests about sessions: claim, which resumes or takes over, detach and end.

use super::Session;
use super::attributes::Attributes;
use super::records::SessionChange;
use crate::engine::Engine;
use crate::interface::limits::{SESSION_NAME_BYTES_MAX, SESSION_STATE_BYTES_MAX};
use crate::interface::refusal::refuse;
use crate::{
    ChannelId, ClaimSession, ClaimedSession, Effects, Position, Refusal, RefusalKind, Reply,
    Request, SessionExpiry, SessionLoss, Time,
};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Engine {
    pub(crate) fn request_session<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        request: Request,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        match request {
            Request::ClaimSession(claim) => return self.claim_session(now, id, claim, fx),
            Request::DetachSession { name, expiry } => {
                let slot = self.session_held(id, &name)?;
                self.detach_session(now, slot, expiry, fx);
            }
            Request::EndSession { name } => {
                let slot = self.session_of(id, &name)?;
                if let Some(holder) = self.end_session(now, slot, fx).holder.filter(|it| *it != id)
                {
                    self.tell_session_lost(holder, &name, SessionLoss::Ended, fx);
                }
            }
            Request::ChangeSession(change) => self.change_session(id, *change, fx)?,
            Request::SetWill(will) => self.set_will(id, &will, fx)?,
            Request::ClearWill => {
                let slot = self.held_session(id)?;
                self.drop_will(slot, fx);
            }
            Request::ForgetPublished { number } => self.forget_published(id, number, fx)?,
            Request::ReleaseDelivery { tag } => self.release_delivery(now, id, tag, fx)?,
            Request::ForgetReleased { place } => self.forget_released(id, place, fx)?,
            Request::JoinShared(join) => self.join_shared(now, id, *join, fx)?,
            Request::LeaveShared { group } => self.leave_shared(now, id, &group, fx)?,
            _ => unreachable!("only requests about sessions come here"),
        }
        Ok(Reply::Done)
    }

    fn claim_session<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        claim: ClaimSession,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        let (vhost, user) = self.owner_of(id);
        let Some(user) = user else {
            refuse!(NotAllowed, "a session belongs to a user; the broker itself has none");
        };
        check_claim(&claim)?;
        let expiry = self.bounded_expiry(claim.expiry);
        let found = self.session_to_resume(now, vhost, &claim.name, fx);
        let is_stored = |slot| self.sessions.get(slot).is_some_and(|session| session.is_stored);
        let was_stored =
            found.is_some_and(is_stored) || self.sessions.ending(vhost, &claim.name).is_some();
        self.check_kept(claim.recorded || was_stored)?;
        match found {
            Some(slot) => self.check_owner(slot, Some(&user))?,
            None => self.check_session_limits(vhost, &user)?,
        }
        self.check_own_queue(id, found, &claim)?;
        self.counters.session_claims += 1;
        if let Some(slot) = found {
            let is_resumed = !claim.fresh && self.is_resumable(slot, id);
            self.take_over(now, slot, id, is_resumed, fx);
            if is_resumed {
                return Ok(self.resume_session(slot, claim, expiry, fx));
            }
            self.end_session(now, slot, fx);
        }
        Ok(self.begin_session(vhost, user, id, claim, expiry, fx))
    }

    fn begin_session<F: Effects>(
        &mut self,
        vhost: u32,
        user: Arc<str>,
        id: ChannelId,
        claim: ClaimSession,
        expiry: SessionExpiry,
        fx: &mut F,
    ) -> Reply {
        let name: Arc<str> = claim.name.into();
        let slot = self.sessions.insert(Session {
            number: self.sessions.next_number,
            vhost,
            name: Arc::clone(&name),
            user,
            expiry,
            recorded: claim.recorded,
            is_stored: false,
            state: claim.state.unwrap_or_default(),
            attributes: Attributes::default(),
            queue: 0,
            received: BTreeMap::new(),
            forgotten_at: Position::default(),
            underway: BTreeSet::new(),
            released: BTreeSet::new(),
            shared: BTreeSet::new(),
            handed: BTreeMap::new(),
            will: None,
            holder: Some(id),
            detached_at: None,
            expires_at: None,
            accounted: 0,
            cursor: None,
            is_draining: false,
        });
        if let Some(options) = claim.queue {
            self.create_own_queue(slot, *options, fx);
        }
        self.record_session(slot, &SessionChange::default(), fx);
        self.await_ending(vhost, &name);
        self.account_session(slot);
        self.claimed(slot, false, Bytes::new())
    }

    /// Goes on with a session that the claimant holds by now.
    fn resume_session<F: Effects>(
        &mut self,
        slot: u32,
        claim: ClaimSession,
        expiry: SessionExpiry,
        fx: &mut F,
    ) -> Reply {
        self.counters.session_resumes += 1;
        let session = &mut self.sessions[slot];
        session.expiry = expiry;
        session.recorded = claim.recorded;
        let state = session.state.clone();
        let has_state = claim.state.is_some();
        if let Some(state) = claim.state {
            session.state = state;
        }
        let (vhost, name) = (session.vhost, Arc::clone(&session.name));
        let is_missing = self.queues.slot_of(self.sessions[slot].queue).is_none();
        let new_queue = claim.queue.filter(|_| is_missing);
        let has_queue = new_queue.is_some();
        if let Some(options) = new_queue {
            self.create_own_queue(slot, *options, fx);
        }
        let change = SessionChange { has_state, has_queue, ..SessionChange::default() };
        self.record_session(slot, &change, fx);
        self.set_flush_gate(slot, false);
        self.await_ending(vhost, &name);
        self.account_session(slot);
        self.claimed(slot, true, state)
    }

    /// What a claim is answered. `state`: what was kept until now.
    fn claimed(&self, slot: u32, is_resumed: bool, state: Bytes) -> Reply {
        let session = &self.sessions[slot];
        let attributes = session.attributes.iter().map(|(key, value)| (key.clone(), value.clone()));
        let queue = self.queues.slot_of(session.queue).and_then(|slot| self.queues.get(slot));
        Reply::Session(Box::new(ClaimedSession {
            name: Arc::clone(&session.name),
            is_resumed,
            expiry: session.expiry,
            state,
            attributes: attributes.collect(),
            queue: queue.map_or_else(String::new, |queue| queue.name.clone()),
            released: session.released.iter().copied().collect(),
        }))
    }

    /// Whether a claim by that channel goes on with a session: one that another channel holds, and that does
    /// not outlive its holder, ends instead.
    fn is_resumable(&self, slot: u32, id: ChannelId) -> bool {
        let session = &self.sessions[slot];
        session.holder.is_none_or(|holder| holder == id) || session.expiry.outlives_holder()
    }

    /// Makes a channel the holder, and tells the one that was. `is_resumed`: the session goes on.
    fn take_over<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        id: ChannelId,
        is_resumed: bool,
        fx: &mut F,
    ) {
        let before = self.sessions.set_holder(slot, Some(id));
        if before == Some(id) {
            return;
        }
        if let Some(before) = before {
            self.counters.session_takeovers += 1;
            let name = Arc::clone(&self.sessions[slot].name);
            self.tell_session_lost(before, &name, SessionLoss::TakenOver, fx);
            self.leave_own_queue(now, slot, before, fx);
        }
        if is_resumed {
            self.end_will_of_resumed(now, slot, before.is_some(), fx);
        }
        self.attach_session(slot);
        self.move_replays(self.sessions[slot].number, id);
    }

    /// Tells a channel once that it does not hold a session any more: by a notice, or by refusing its claim
    /// where that still waits for a flush.
    pub(crate) fn tell_session_lost<F: Effects>(
        &mut self,
        holder: ChannelId,
        session: &str,
        why: SessionLoss,
        fx: &mut F,
    ) {
        let slot = self.channel_slot(holder);
        let Some(channel) = slot.and_then(|slot| self.clients.channels.get_mut(slot)) else {
            return;
        };
        let is_its_claim =
            |reply: &Reply| matches!(reply, Reply::Session(claimed) if *claimed.name == *session);
        let mut waiting = channel.unanswered.iter_mut();
        match waiting.find(|(_, reply)| reply.as_ref().is_ok_and(is_its_claim)) {
            Some((_, reply)) => {
                let text =
                    format!("session '{session}' {} before its claim was stored", why.text());
                *reply = Err(Refusal::new(RefusalKind::ResourceLocked, text));
                // What waits behind it waits on.
                if channel.unanswered.front().is_some_and(|(_, reply)| reply.is_err())
                    && let Some((_, refused)) = channel.unanswered.pop_front()
                {
                    fx.reply(holder, refused);
                }
            }
            None => fx.session_lost(holder, session, why),
        }
    }

    /// The session of that name, unless its time has passed.
    fn session_to_resume<F: Effects>(
        &mut self,
        now: Time,
        vhost: u32,
        name: &str,
        fx: &mut F,
    ) -> Option<u32> {
        let slot = self.sessions.find(vhost, name)?;
        self.expire_session(now, slot, fx);
        self.sessions.get(slot).map(|_| slot)
    }

    /// The session that a channel names and holds.
    pub(super) fn session_held(&self, id: ChannelId, name: &str) -> Result<u32, Refusal> {
        let slot = self.session_of(id, name)?;
        if self.sessions.get(slot).is_none_or(|session| session.holder != Some(id)) {
            refuse!(PreconditionFailed, "session '{name}' is not held by this channel");
        }
        Ok(slot)
    }

    /// The session that a channel holds, the first one of several.
    pub(crate) fn held_session(&self, id: ChannelId) -> Result<u32, Refusal> {
        let Some(slot) = self.sessions.held_by(id) else {
            refuse!(PreconditionFailed, "the channel holds no session");
        };
        Ok(slot)
    }

    /// The session that a channel names, if its user owns it; the broker itself may name every one.
    pub(super) fn session_of(&self, id: ChannelId, name: &str) -> Result<u32, Refusal> {
        let (vhost, user) = self.owner_of(id);
        let Some(slot) = self.sessions.find(vhost, name) else {
            let vhost = &self.topology.vhosts[vhost].name;
            refuse!(NotFound, "no session '{name}' in vhost '{vhost}'");
        };
        self.check_owner(slot, user.as_ref())?;
        Ok(slot)
    }

    /// The virtual host and the user of a channel; no user: the broker itself.
    fn owner_of(&self, id: ChannelId) -> (u32, Option<Arc<str>>) {
        let connection = self.clients.connections[id.connection.0 as usize].as_ref();
        let vhost = connection.expect("channels end before their connection").vhost;
        (vhost, self.clients.user(id.connection).cloned())
    }

    fn check_owner(&self, slot: u32, user: Option<&Arc<str>>) -> Result<(), Refusal> {
        let session = &self.sessions[slot];
        if user.is_none_or(|user| *user == session.user) {
            return Ok(());
        }
        refuse!(AccessRefused, "session '{}' belongs to another user", session.name);
    }

    fn check_session_limits(&self, vhost: u32, user: &str) -> Result<(), Refusal> {
        let (limits, sessions) = (&self.options.limits, &self.sessions);
        let in_vhost = format!(" in vhost '{}'", self.topology.vhosts[vhost].name);
        for (count, most, which) in [
            (sessions.len(), limits.sessions_max, String::new()),
            (sessions.count_in_vhost(vhost), limits.vhost_sessions_max, in_vhost),
            (sessions.count_of_user(user), limits.user_sessions_max, format!(" of user '{user}'")),
        ] {
            if count >= most {
                refuse!(LimitExceeded, "more than {most} sessions{which}");
            }
        }
        Ok(())
    }

    /// The expiry that is granted where one is asked for.
    pub(crate) fn bounded_expiry(&self, asked: SessionExpiry) -> SessionExpiry {
        match (asked, self.options.limits.session_expiry_max) {
            (SessionExpiry::After(expiry), Some(most)) => SessionExpiry::After(expiry.min(most)),
            (SessionExpiry::Never, Some(most)) => SessionExpiry::After(most),
            (asked, _) => asked,
        }
    }
}

/// Refuses a claim by itself.
fn check_claim(claim: &ClaimSession) -> Result<(), Refusal> {
    let (name, state) = (claim.name.len(), claim.state.as_ref().map_or(0, Bytes::len));
    if name == 0 {
        refuse!(PreconditionFailed, "a session needs a name");
    }
    if name > SESSION_NAME_BYTES_MAX {
        refuse!(
            LimitExceeded,
            "a session name of {name} bytes is longer than {SESSION_NAME_BYTES_MAX}"
        );
    }
    if state > SESSION_STATE_BYTES_MAX {
        refuse!(
            LimitExceeded,
            "session state of {state} bytes is longer than {SESSION_STATE_BYTES_MAX}"
        );
    }
    Ok(())
}
