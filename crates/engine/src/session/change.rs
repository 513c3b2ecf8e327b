//! Changes of sessions that are held: their attributes, their expiry, what their queues hand out.

use super::records::SessionChange;
use crate::engine::Engine;
use crate::{ChangeSession, ChannelId, Effects, Refusal};

impl Engine {
    pub(super) fn change_session<F: Effects>(
        &mut self,
        id: ChannelId,
        change: ChangeSession,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let slot = self.session_held(id, &change.name)?;
        let expiry = change.expiry.map(|asked| self.bounded_expiry(asked));
        if !change.put.is_empty() {
            self.check_may_hold_more(id.connection)?;
            self.sessions[slot].attributes.check(&change.put)?;
        }
        self.check_kept(self.sessions[slot].is_stored)?;
        let session = &mut self.sessions[slot];
        for key in &change.remove {
            session.attributes.remove(key);
        }
        for (key, value) in &change.put {
            session.attributes.put(key, value);
        }
        let changes_expiry = expiry.is_some_and(|expiry| expiry != session.expiry);
        session.expiry = expiry.unwrap_or(session.expiry);
        let ChangeSession { put, remove, waits_for_flush, .. } = &change;
        if changes_expiry || !put.is_empty() || !remove.is_empty() || *waits_for_flush == Some(true)
        {
            self.record_session(
                slot,
                &SessionChange { put, remove, ..SessionChange::default() },
                fx,
            );
        }
        if let Some(waits) = waits_for_flush {
            self.set_flush_gate(slot, *waits);
        }
        self.account_session(slot);
        Ok(())
    }
}
