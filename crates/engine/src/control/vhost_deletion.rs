//! Deletion of a virtual host: its queues, delayed and retained messages, and sessions go over several
//! turns, each with its own record, and then the virtual host itself. Nobody enters it meanwhile. A crash in
//! between leaves the virtual host with what was not deleted by then; it can be deleted again.

use super::underway::{NextDeleted as Next, VhostDeletion};
use crate::engine::Engine;
use crate::interface::refusal::refuse;
use crate::publish::held::DelayKey;
use crate::storage::record::Record;
use crate::{Effects, Refusal, Reply, SessionLoss};

/// Queues that are deleted before others get their turn.
const QUEUES_AT_ONCE: usize = 256;

impl Engine {
    /// Deletes a virtual host that no connection uses, and all in it. `None`: the answer comes once that is
    /// done.
    pub(super) fn delete_vhost<F: Effects>(
        &mut self,
        channel: u32,
        name: &str,
        fx: &mut F,
    ) -> Result<Option<Reply>, Refusal> {
        self.check_kept(true)?;
        let vhost = self.vhost_slot(name)?;
        let connections = self.clients.connections.iter().flatten();
        let used_by = connections.filter(|connection| connection.vhost == vhost).count();
        if used_by > 0 {
            refuse!(
                PreconditionFailed,
                "virtual host '{name}' is in use; open connections: {used_by}"
            );
        }
        self.topology.vhosts[vhost].is_leaving = true;
        let mut next = Next::Queues { slot: 0 };
        if self.delete_some_of(vhost, &mut next, fx) {
            return Ok(Some(Reply::Done));
        }
        let work = self.answer_once_done(channel, Ok(Reply::Done));
        let answers = (self.clients.channels[channel].place(channel), work);
        self.agenda.vhost_deletions.push_back(VhostDeletion { vhost, next, answers });
        Ok(None)
    }

    /// Goes on with the first deletion of a virtual host.
    #[cold]
    pub(crate) fn delete_some_vhosts<F: Effects>(&mut self, fx: &mut F) {
        let Some(mut deletion) = self.agenda.vhost_deletions.pop_front() else { return };
        if !self.delete_some_of(deletion.vhost, &mut deletion.next, fx) {
            return self.agenda.vhost_deletions.push_front(deletion);
        }
        let position = self.storage.changed_at.take();
        let (place, work) = deletion.answers;
        self.work_is_done(place, work, position, fx);
    }

    /// Deletes as much of a virtual host as there is time for; says whether that was the last of it.
    fn delete_some_of<F: Effects>(&mut self, vhost: u32, next: &mut Next, fx: &mut F) -> bool {
        let mut steps = self.options.limits.given_back_at_once;
        loop {
            *next = match *next {
                Next::Queues { slot } => match self.delete_some_queues(vhost, slot, &mut steps, fx)
                {
                    Some(slot) => Next::Queues { slot },
                    None => Next::Delays { unreadable: false, behind: None },
                },
                Next::Delays { unreadable, behind } => {
                    match self.drop_some_delays(vhost, unreadable, behind, &mut steps, fx) {
                        Some(behind) => Next::Delays { unreadable, behind: Some(behind) },
                        None if !unreadable => Next::Delays { unreadable: true, behind: None },
                        None => Next::Retained,
                    }
                }
                Next::Retained => match self.drop_some_retained(vhost, &mut steps, fx) {
                    true => Next::Sessions { slot: 0 },
                    false => Next::Retained,
                },
                Next::Sessions { slot } => self.drop_some_sessions(vhost, slot, &mut steps, fx),
                Next::Vhost => {
                    let name = self.topology.vhosts[vhost].name.clone();
                    self.remove_vhost(vhost);
                    self.append_access(&Record::VhostDeleted { name: &name }, fx);
                    return true;
                }
            };
            if steps == 0 || self.has_much_unasked() {
                return false;
            }
        }
    }

    /// Deletes queues from a slot on; says where the turn ended, if it did.
    fn delete_some_queues<F: Effects>(
        &mut self,
        vhost: u32,
        from: u32,
        steps: &mut usize,
        fx: &mut F,
    ) -> Option<u32> {
        let mut deleted = 0;
        for slot in from..self.queues.slots() as u32 {
            if *steps == 0 || deleted == QUEUES_AT_ONCE || self.has_much_unasked() {
                *steps = 0;
                return Some(slot);
            }
            *steps -= 1;
            if self.queues.get(slot).is_some_and(|queue| queue.vhost == vhost) {
                self.delete_queue(slot, fx);
                deleted += 1;
            }
        }
        None
    }

    /// Drops delayed messages behind a key; returns the last that was looked at, if the turn ended there.
    fn drop_some_delays<F: Effects>(
        &mut self,
        vhost: u32,
        unreadable: bool,
        behind: Option<DelayKey>,
        steps: &mut usize,
        fx: &mut F,
    ) -> Option<DelayKey> {
        let some = self.delays.behind(unreadable, behind).take(*steps);
        let some: Vec<(DelayKey, bool)> = some.map(|(key, it)| (key, it.vhost == vhost)).collect();
        *steps -= some.len();
        for (key, _) in some.iter().filter(|(_, goes)| *goes) {
            self.end_delay(*key, fx);
        }
        some.last().filter(|_| *steps == 0).map(|(key, _)| *key)
    }

    /// Ends sessions from a slot on.
    fn drop_some_sessions<F: Effects>(
        &mut self,
        vhost: u32,
        from: usize,
        steps: &mut usize,
        fx: &mut F,
    ) -> Next {
        let some = self.sessions.iter_in(from..usize::MAX).take(*steps);
        let some: Vec<(u32, bool)> = some.map(|(slot, it)| (slot, it.vhost == vhost)).collect();
        *steps -= some.len();
        for (slot, _) in some.iter().filter(|(_, goes)| *goes) {
            let mut session = self.remove_session(*slot);
            self.drop_handed(&mut session, fx);
            if let Some(holder) = session.holder {
                self.tell_session_lost(holder, &session.name, SessionLoss::Ended, fx);
            }
            if let Some(cursor) = &session.cursor {
                self.leave_logs(session.number, cursor, fx);
            }
        }
        match some.last().filter(|_| *steps == 0) {
            Some((slot, _)) => Next::Sessions { slot: *slot as usize + 1 },
            None => Next::Vhost,
        }
    }

    /// Refused: there is such a virtual host, and it is being deleted.
    pub(crate) fn check_not_leaving(&self, name: &str) -> Result<(), Refusal> {
        let slot = self.topology.vhost_slots.get(name);
        if slot.is_some_and(|slot| self.topology.vhosts[*slot].is_leaving) {
            refuse!(
                PreconditionFailed,
                "virtual host '{name}' is being deleted: try again once that is done"
            );
        }
        Ok(())
    }
}
