//! Retained messages come, replace each other, expire and go, each with its record.

use super::subject;
use super::subject::Key;
use super::values::Value;
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::queue::blob::{ENTRY_COST, Encoded};
use crate::queue::entry::NEVER;
use crate::queue::stored::Incoming;
use crate::storage::record;
use crate::storage::record::{Kind, Record};
use crate::{Effects, Position, Refusal, RefusalKind, StorageState, Time};

/// Messages that expire before others get their turn.
const EXPIRIES_MAX: usize = 256;

impl Engine {
    /// How many messages are retained, and their bytes.
    #[must_use]
    pub fn retained(&self) -> (usize, u64) {
        (self.retained.values.len(), self.retained.values.bytes())
    }

    /// Makes a message the retained one of its subject, or takes that away where it has no payload.
    /// Returns the record to be flushed before that is safe. Refused: too many, or too many bytes, or it
    /// cannot be stored.
    pub(crate) fn retain_message<F: Effects>(
        &mut self,
        now: Time,
        vhost: u32,
        incoming: &Incoming<'_>,
        wants_flush: bool,
        fx: &mut F,
    ) -> Result<Option<Position>, Refusal> {
        if incoming.exchange != self.names().subject_exchange {
            return Ok(None);
        }
        let Some(key) = subject::key_of(incoming.routing_key) else { return Ok(None) };
        if incoming.content.body.is_empty() {
            self.check_removal()?;
            if !self.remove_retained(vhost, &key, wants_flush, fx) && wants_flush {
                // It may have been taken away just now.
                let changed_at = self.retained.changed_at;
                return Ok(Some(changed_at).filter(|at| *at >= self.storage.flushed));
            }
            return Ok(wants_flush.then_some(self.retained.changed_at));
        }
        let mut room = std::mem::take(&mut self.scratch.blob);
        room.clear();
        let encoded = incoming.encode(&mut room);
        let position = self.check_room_for_retained(vhost, &key, encoded.len()).map(|()| {
            let expires = incoming.expires(now).unwrap_or(NEVER);
            let value = Value::new(expires, encoded.len(), incoming.content.persistent);
            self.set_retained(vhost, key, encoded, value, wants_flush, fx)
        });
        self.scratch.keep_blob(room);
        position.map(|position| wants_flush.then_some(position))
    }

    fn check_removal(&self) -> Result<(), Refusal> {
        match self.storage.state {
            StorageState::Exhausted | StorageState::Failed => Err(not_stored()),
            _ => Ok(()),
        }
    }

    /// Refuses one more message of that many bytes.
    fn check_room_for_retained(&self, vhost: u32, key: &[u8], bytes: usize) -> Result<(), Refusal> {
        if self.storage.state != StorageState::Ready {
            return Err(not_stored());
        }
        let (values, limits) = (&self.retained.values, &self.options.limits);
        let before = values.get(vhost, key);
        if before.is_none() && values.len() >= limits.retained_max {
            let text = format!("{} messages are retained, as many as may be", limits.retained_max);
            return Err(Refusal::new(RefusalKind::LimitExceeded, text));
        }
        let others = values.bytes() - before.map_or(0, |before| u64::from(before.bytes));
        if others + bytes as u64 > limits.retained_bytes_max {
            let most = limits.retained_bytes_max;
            let text = format!("retained messages take {others} bytes, and may take {most}");
            return Err(Refusal::new(RefusalKind::LimitExceeded, text));
        }
        Ok(())
    }

    fn set_retained<F: Effects>(
        &mut self,
        vhost: u32,
        key: Key,
        message: Encoded<'_>,
        value: Value,
        wants_flush: bool,
        fx: &mut F,
    ) -> Position {
        let number = self.retained.next_number;
        self.retained.next_number += 1;
        let mut writer = record::start(&mut self.scratch.record, Kind::Retained);
        writer.text(&self.topology.vhosts[vhost].name);
        writer.u64(number);
        writer.u64(value.expires.0);
        let position = message.append(&self.scratch.record, wants_flush, fx);
        fx.write_soon();
        fx.retain(position, 1);
        self.retained.changed_at = position;
        self.forget_retained(vhost, &key, fx);
        let cost = message.len() as u64 + ENTRY_COST;
        let most = self.options.limits.queue_resident_bytes_max;
        let fits = self.retained.values.resident() + cost <= most && cost <= self.memory_left();
        let message = fits.then(|| message.to_blob());
        let value = Value { position, number, mark: self.storage.mark, message, ..value };
        self.storage.resident += value.resident_cost();
        self.retained.values.insert(vhost, key, value);
        self.watch_retained();
        position
    }

    /// Takes the retained message of a subject away, with a record of that; false where there is none.
    pub(crate) fn remove_retained<F: Effects>(
        &mut self,
        vhost: u32,
        key: &[u8],
        wants_flush: bool,
        fx: &mut F,
    ) -> bool {
        if self.retained.values.get(vhost, key).is_none() {
            return false;
        }
        let number = self.retained.next_number;
        self.retained.next_number += 1;
        let (subject, vhost_name) = (subject::subject_of(key), &self.topology.vhosts[vhost].name);
        Record::RetainedGone { vhost: vhost_name, subject: &subject, number }
            .write(&mut self.scratch.record);
        self.retained.changed_at = fx.append(&[&self.scratch.record], wants_flush);
        fx.write_soon();
        self.forget_retained(vhost, key, fx);
        true
    }

    /// Takes the retained message of a subject out, if there is one.
    fn forget_retained<F: Effects>(&mut self, vhost: u32, key: &[u8], fx: &mut F) {
        let Some(before) = self.retained.values.remove(vhost, key) else { return };
        self.storage.resident -= before.resident_cost();
        self.snapshot_retained_first(vhost, key, &before);
        fx.release(before.position, 1);
    }

    /// Forgets what is retained in a virtual host; its own record says that all in it is gone.
    pub(crate) fn forget_retained_of<F: Effects>(&mut self, vhost: u32, fx: &mut F) {
        while let Some(key) = self.retained.values.first_of(vhost).cloned() {
            self.forget_retained(vhost, &key, fx);
        }
    }

    /// Takes away what is retained in a virtual host, as far as there are steps; says whether all is gone.
    pub(crate) fn drop_some_retained<F: Effects>(
        &mut self,
        vhost: u32,
        steps: &mut usize,
        fx: &mut F,
    ) -> bool {
        loop {
            let first = self.retained.values.first_of(vhost).cloned();
            let Some(key) = first else { return true };
            if *steps == 0 {
                return false;
            }
            *steps -= 1;
            self.remove_retained(vhost, &key, false, fx);
        }
    }

    /// Makes sure that the next expiry is noticed.
    pub(crate) fn watch_retained(&mut self) {
        if let Some((at, _, _)) = self.retained.values.first_to_expire() {
            self.timers.bring_forward(&mut self.retained.timer, at, Timer::Retained);
        }
    }

    /// The time to live of some is over.
    pub(crate) fn expire_retained<F: Effects>(&mut self, now: Time, fx: &mut F) {
        self.retained.timer = None;
        for _ in 0..EXPIRIES_MAX {
            let first = self.retained.values.first_to_expire().filter(|(at, ..)| *at <= now);
            let Some((_, vhost, key)) = first.filter(|_| !self.has_much_unasked()) else { break };
            let key = key.clone();
            self.remove_retained(vhost, &key, false, fx);
            self.unasked_steps += 1;
        }
        self.watch_retained();
    }
}

/// The refusal of what the journal cannot take.
fn not_stored() -> Refusal {
    let text = "the message cannot be retained: the disk is full or has failed";
    Refusal::new(RefusalKind::StorageUnavailable, text)
}
