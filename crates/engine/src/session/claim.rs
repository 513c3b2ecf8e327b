//! Requests about sessions: claim, which resumes or takes over, detach and end.

use super::Session;
use crate::engine::Engine;
use crate::interface::limits::{SESSION_NAME_BYTES_MAX, SESSION_STATE_BYTES_MAX};
use crate::interface::refusal::refuse;
use crate::{
    ChannelId, ClaimSession, Effects, Refusal, RefusalKind, Reply, Request, SessionExpiry,
    SessionLoss, Time,
};
use bytes::Bytes;
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
            Request::ClaimSession(claim) => self.claim_session(now, id, claim, fx),
            Request::DetachSession { name, expiry } => {
                let slot = self.session_of(id, &name)?;
                if self.sessions.get(slot).is_none_or(|session| session.holder != Some(id)) {
                    refuse!(PreconditionFailed, "session '{name}' is not held by this channel");
                }
                self.detach_session(now, slot, expiry, fx);
                Ok(Reply::Done)
            }
            Request::EndSession { name } => {
                let slot = self.session_of(id, &name)?;
                if let Some(holder) = self.end_session(slot, fx).holder.filter(|it| *it != id) {
                    self.tell_session_lost(holder, &name, SessionLoss::Ended, fx);
                }
                Ok(Reply::Done)
            }
            _ => unreachable!("only requests about sessions come here"),
        }
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
        if let Some(slot) = found {
            self.check_owner(slot, Some(&user))?;
            self.counters.session_claims += 1;
            self.take_over(slot, id, fx);
            if !claim.fresh {
                return Ok(self.resume_session(slot, claim, expiry, fx));
            }
            self.end_session(slot, fx);
        } else {
            self.check_session_limits(vhost, &user)?;
            self.counters.session_claims += 1;
        }
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
            holder: Some(id),
            detached_at: None,
            expires_at: None,
        });
        self.record_session(slot, fx);
        self.await_ending(vhost, &name);
        Ok(Reply::Session { name, is_resumed: false, expiry, state: Bytes::new() })
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
        if let Some(state) = claim.state {
            session.state = state;
        }
        let (vhost, name) = (session.vhost, Arc::clone(&session.name));
        self.record_session(slot, fx);
        self.await_ending(vhost, &name);
        Reply::Session { name, is_resumed: true, expiry, state }
    }

    /// Makes a channel the holder, and tells the one that was.
    fn take_over<F: Effects>(&mut self, slot: u32, id: ChannelId, fx: &mut F) {
        self.attach_session(slot);
        let before = self.sessions.set_holder(slot, Some(id));
        let Some(before) = before.filter(|before| *before != id) else { return };
        self.counters.session_takeovers += 1;
        let name = Arc::clone(&self.sessions[slot].name);
        self.tell_session_lost(before, &name, SessionLoss::TakenOver, fx);
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
            |reply: &Reply| matches!(reply, Reply::Session { name, .. } if **name == *session);
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

    /// The session that a channel names, if its user owns it; the broker itself may name every one.
    fn session_of(&self, id: ChannelId, name: &str) -> Result<u32, Refusal> {
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
