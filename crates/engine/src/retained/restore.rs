//! Retained messages in records and snapshots: on the way there and back.

use super::subject::{Key, key_of, subject_of};
use super::values::Value;
use crate::engine::{Engine, Topology};
use crate::queue::stored::Stored;
use crate::storage::codec::{Malformed, Writer};
use crate::storage::incremental_snapshot::RETAINED;
use crate::storage::record::{Record, RetainedRecord};
use crate::{Effects, Position, Time};
use std::collections::BTreeMap;

impl Value {
    /// It as snapshots have it.
    pub(crate) fn record<'a>(
        &self,
        vhost: u32,
        subject: &'a str,
        topology: &'a Topology,
    ) -> RetainedRecord<'a> {
        let Value { number, expires, position, bytes, persistent, .. } = *self;
        let vhost = &topology.vhosts[vhost].name;
        RetainedRecord { vhost, subject, number, expires, position, bytes, persistent }
    }
}

impl Engine {
    /// Writes all into a snapshot of one turn.
    pub(crate) fn write_retained(&self, writer: &mut Writer<'_>) {
        for (vhost, key, value) in self.retained.values.iter() {
            writer.u8(RETAINED);
            writer.put(&value.record(vhost, &subject_of(key), &self.topology));
        }
    }

    /// Takes one in that a snapshot names.
    pub(crate) fn restore_retained(
        &mut self,
        record: &RetainedRecord<'_>,
    ) -> Result<(), Malformed> {
        let RetainedRecord { number, expires, position, bytes, persistent, .. } = *record;
        let vhost = self.vhost_slot(record.vhost)?;
        let key = key_of(record.subject).ok_or("a retained message's subject is none")?;
        if self.retained.values.get(vhost, &key).is_some() {
            return Err(format!("two messages are retained for '{}'", record.subject));
        }
        let value = Value::new(expires, bytes as usize, persistent);
        let mark = self.storage.mark;
        self.put_restored(vhost, key, Value { position, number, mark, ..value });
        Ok(())
    }

    fn put_restored(&mut self, vhost: u32, key: Key, value: Value) {
        self.retained.next_number = self.retained.next_number.max(value.number.saturating_add(1));
        self.retained.values.insert(vhost, key, value);
    }

    /// Takes in what a record says of a retained message.
    pub(crate) fn replay_retained<F: Effects>(
        &mut self,
        position: Position,
        record: &Record<'_>,
        fx: &mut F,
    ) -> Result<(), Malformed> {
        match *record {
            Record::Retained { vhost, number, expires, message } => {
                let found = FoundRetained::of(position, number, expires, message)?;
                let vhost = self.vhost_slot(vhost)?;
                self.put_found(vhost, found, fx)
            }
            Record::RetainedGone { vhost, subject, number } => {
                let vhost = self.vhost_slot(vhost)?;
                let key = key_of(subject).ok_or("a retained message's subject is none")?;
                self.retained.next_number = self.retained.next_number.max(number.saturating_add(1));
                self.take_restored(vhost, &key, fx);
                Ok(())
            }
            _ => unreachable!("only records about retained messages come here"),
        }
    }

    fn put_found<F: Effects>(
        &mut self,
        vhost: u32,
        found: FoundRetained,
        fx: &mut F,
    ) -> Result<(), Malformed> {
        let key = key_of(&found.subject).ok_or("a retained message's subject is none")?;
        // It has been there before where its segment was given back.
        self.take_restored(vhost, &key, fx);
        fx.retain(found.value.position, 1);
        let mark = self.storage.mark;
        self.put_restored(vhost, key, Value { mark, ..found.value });
        Ok(())
    }

    fn take_restored<F: Effects>(&mut self, vhost: u32, key: &[u8], fx: &mut F) {
        if let Some(before) = self.retained.values.remove(vhost, key) {
            fx.release(before.position, 1);
        }
    }
}

/// A retained message that a record has.
#[derive(Debug)]
struct FoundRetained {
    subject: String,
    value: Value,
}

impl FoundRetained {
    fn of(
        position: Position,
        number: u64,
        expires: Time,
        message: &[u8],
    ) -> Result<FoundRetained, Malformed> {
        let stored = Stored::parse(message)?;
        let value = Value::new(expires, message.len(), stored.content.persistent);
        let value = Value { position, number, ..value };
        Ok(FoundRetained { subject: stored.routing_key.to_owned(), value })
    }
}

/// What the whole records of a log say of retained messages, by virtual host and subject: of each subject,
/// the record with the highest number holds.
#[derive(Debug, Default)]
pub(crate) struct RetainedRemains(BTreeMap<(String, String), (u64, Option<FoundRetained>)>);

impl RetainedRemains {
    /// Takes a record in.
    pub(crate) fn look(
        &mut self,
        position: Position,
        record: &Record<'_>,
    ) -> Result<(), Malformed> {
        let (vhost, subject, number, found) = match *record {
            Record::Retained { vhost, number, expires, message } => {
                let found = FoundRetained::of(position, number, expires, message)?;
                (vhost, found.subject.clone(), number, Some(found))
            }
            Record::RetainedGone { vhost, subject, number } => {
                (vhost, subject.to_owned(), number, None)
            }
            _ => return Ok(()),
        };
        let known = self.0.entry((vhost.to_owned(), subject)).or_default();
        // The last of several with one number is where it was moved to.
        if number >= known.0 {
            *known = (number, found);
        }
        Ok(())
    }

    /// Puts what is there into an engine; returns how many.
    pub(crate) fn restore<F: Effects>(self, engine: &mut Engine, fx: &mut F) -> usize {
        let mut count = 0;
        for ((vhost, _), (number, found)) in self.0 {
            engine.retained.next_number = engine.retained.next_number.max(number.saturating_add(1));
            let (Ok(vhost), Some(found)) = (engine.vhost_slot(&vhost), found) else { continue };
            count += usize::from(engine.put_found(vhost, found, fx).is_ok());
        }
        count
    }
}
