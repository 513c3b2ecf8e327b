//! Messages held back until they are due, then published as if they had just come.

use crate::engine::Engine;
use crate::publish::Taken;
use crate::queue::paging::{Loading, Wanted, checked_message};
use crate::queue::stored::{Incoming, NO_ANNOTATIONS, Stored};
use crate::record::{self, Kind, Record};
use crate::routing::Keys;
use crate::timers::Timer;
use crate::{Effects, Loaded, Position, Publish, StorageState, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes by which the records of a publish may exceed its message.
const RECORD_EXTRA_BYTES: usize = 4096;

/// A message that is held back.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) vhost: u32,
    pub(crate) due: Time,
    /// Where its record is; only what is persistent has one, or what memory has no room for.
    pub(crate) position: Option<Position>,
    pub(crate) persistent: bool,
    pub(crate) message: Option<Arc<[u8]>>,
    /// It was due before the broker went down: it may have been published, and delivered, already.
    pub(crate) redelivered: bool,
}

/// All of them, by number and by time.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    pub(crate) held: BTreeMap<u64, Held>,
    pub(crate) due: BTreeMap<(Time, u64), ()>,
    pub(crate) next_number: u64,
}

impl Delays {
    pub(crate) fn insert(&mut self, number: u64, held: Held) {
        self.next_number = self.next_number.max(number + 1);
        self.due.insert((held.due, number), ());
        self.held.insert(number, held);
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Held> {
        let held = self.held.remove(&number)?;
        self.due.remove(&(held.due, number));
        Some(held)
    }
}

impl Engine {
    /// Holds a message back until `due`.
    pub(crate) fn delay<F: Effects>(
        &mut self,
        vhost: u32,
        due: Time,
        publish: &Publish<'_>,
        wants_flush: bool,
        fx: &mut F,
    ) -> Taken {
        let persistent = publish.content.persistent;
        if persistent && self.storage != StorageState::Ready {
            self.counters.not_stored += 1;
            return Taken { position: None, refused: true };
        }
        let incoming = Incoming {
            exchange: publish.exchange,
            routing_key: publish.routing_key,
            also_to: publish.also_to,
            content: publish.content,
            redelivered: false,
            annotations: &NO_ANNOTATIONS,
        };
        let mut blob = Vec::new();
        incoming.encode(&mut blob);
        let number = self.delays.next_number;
        let fits = self.resident + blob.len() as u64 <= self.options.limits.resident_bytes_max;
        let mut position = None;
        if persistent {
            let vhost = &self.vhosts.get(vhost).expect("sessions end first").name;
            let mut writer = record::start(&mut self.record, Kind::Delayed);
            writer.u64(number);
            writer.text(vhost);
            writer.u64(due.0);
            let stored_at = fx.append(&[&self.record, &blob], wants_flush);
            fx.retain(stored_at, 1);
            position = Some(stored_at);
        } else if !fits && self.storage == StorageState::Ready {
            record::start(&mut self.record, Kind::Spooled);
            let stored_at = fx.append(&[&self.record, &blob], false);
            self.counters.spooled += 1;
            self.retain_transient(stored_at, fx);
            position = Some(stored_at);
        } else if !fits {
            self.counters.not_stored += 1;
            return Taken { position: None, refused: true };
        }
        let message = fits.then(|| Arc::from(blob));
        self.resident += message.as_ref().map_or(0, |blob: &Arc<[u8]>| blob.len() as u64);
        let waits_for = position.filter(|_| persistent);
        self.delays
            .insert(number, Held { vhost, due, position, persistent, message, redelivered: false });
        self.timers.set(due, Timer::Delay);
        Taken { position: waits_for, refused: false }
    }

    /// Publishes what is due.
    pub(crate) fn release_delayed<F: Effects>(&mut self, now: Time, fx: &mut F) {
        while let Some(((due, number), ())) = self.delays.due.first_key_value() {
            let (due, number) = (*due, *number);
            if due > now {
                self.timers.set(due, Timer::Delay);
                return;
            }
            self.delays.due.remove(&(due, number));
            let Some(held) = self.delays.held.get(&number) else { continue };
            match (&held.message, held.position) {
                (Some(blob), _) => {
                    let blob = blob.clone();
                    self.publish_delayed(now, number, &blob, fx);
                }
                (None, Some(position)) => {
                    let wanted = Wanted::Delayed { number };
                    let loading = Loading { queue: u32::MAX, number: 0, bytes: 0, wanted };
                    self.load(u32::MAX, loading, vec![position], fx);
                }
                (None, None) => unreachable!("a message is in memory or in the journal"),
            }
        }
    }

    /// A message that is due was read back.
    pub(crate) fn delayed_loaded<F: Effects>(
        &mut self,
        now: Time,
        number: u64,
        records: Loaded,
        fx: &mut F,
    ) {
        match records.ok().and_then(|records| checked_message(records.first()?)) {
            Some(blob) => self.publish_delayed(now, number, &blob, fx),
            // It stays, due no more; another start of the broker asks for it again.
            None => self.counters.unreadable += 1,
        }
        self.run_overdue(now, fx);
    }

    /// Publishes a message whose delay is over. Its record and that which ends the delay are one
    /// group.
    fn publish_delayed<F: Effects>(&mut self, now: Time, number: u64, blob: &[u8], fx: &mut F) {
        let Some(held) = self.delays.held.get(&number) else { return };
        let vhost = held.vhost;
        let stored = Stored::parse(blob).expect("messages in memory were checked");
        let also_to = stored.also_to().expect("messages in memory were checked");
        let content = stored.content;
        let keys = Keys { routing_key: stored.routing_key, also_to: &also_to };
        let read = self.options.read_headers;
        let mut headers = |visit: &mut dyn FnMut(&str, crate::Value)| {
            read(content.format, content.properties, visit);
        };
        let mut targets = Vec::new();
        let router = &mut self.vhosts.get_mut(vhost).expect("delays end first").router;
        // Where the exchange was deleted meanwhile, the message has nowhere to go.
        let routed = router.route(stored.exchange, keys, &mut headers, &mut targets);
        let incoming = Incoming {
            exchange: stored.exchange,
            routing_key: stored.routing_key,
            also_to: &also_to,
            content,
            redelivered: held.redelivered,
            annotations: &NO_ANNOTATIONS,
        };
        if held.persistent {
            fx.reserve((blob.len() + RECORD_EXTRA_BYTES) * 2, 3);
        }
        self.in_group = true;
        self.place(now, &incoming, &targets, false, fx);
        if let Some(routed) = routed {
            self.publish_to_listeners(vhost, routed.has_subjects, &incoming, fx);
        }
        self.end_delay(number, fx);
        self.in_group = false;
        self.run_overdue(now, fx);
    }

    /// Forgets a message that was held back.
    fn end_delay<F: Effects>(&mut self, number: u64, fx: &mut F) {
        let Some(held) = self.delays.remove(number) else { return };
        self.resident -= held.message.map_or(0, |blob| blob.len() as u64);
        let Some(position) = held.position else { return };
        if held.persistent {
            Record::DelayEnded { number }.write(&mut self.record);
            fx.append(&[&self.record], false);
            fx.release(position, 1);
        } else {
            self.release_transient(position, 1, fx);
        }
    }

    /// Forgets what a virtual host holds back; its own record says that all in it is gone.
    pub(crate) fn drop_delays_of<F: Effects>(&mut self, vhost: u32, fx: &mut F) {
        let numbers: Vec<u64> = self
            .delays
            .held
            .iter()
            .filter(|(_, held)| held.vhost == vhost)
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            let held = self.delays.remove(number).expect("it was found just now");
            self.resident -= held.message.map_or(0, |blob| blob.len() as u64);
            match held.position {
                Some(position) if held.persistent => fx.release(position, 1),
                Some(position) => self.release_transient(position, 1, fx),
                None => {}
            }
        }
    }
}
