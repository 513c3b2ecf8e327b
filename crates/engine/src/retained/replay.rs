//! Replays: who has just subscribed is shown the retained messages of its subjects, some in each turn, as
//! fast as its connection, or the queue of its session, takes them.
//!
//! A replay goes through the subjects in their order and shows each as it is by then, so that nothing old
//! comes behind something newer. What was retained after its beginning its subscriber gets otherwise.

use super::replays::{Asked, ReplayLoad, Running};
use super::subject::{Key, Pattern, subject_of};
use super::values::Value;
use crate::access::Audible;
use crate::engine::Engine;
use crate::interface::refusal::refuse;
use crate::queue::blob::{Blob, ENTRY_COST};
use crate::queue::entry::NEVER;
use crate::queue::page_in::checked_message;
use crate::queue::page_out::{NO_QUEUE, Wanted};
use crate::queue::stored::Incoming;
use crate::routing::QueueKey;
use crate::storage::record;
use crate::{
    Annotations, ChannelId, Content, Delivery, Effects, Loaded, MessageView, Position, Refusal,
    Replay, StorageState, Time,
};
use std::sync::Arc;
use std::time::Duration;

/// Replays of one channel: each of them is looked at when the channel goes on.
const REPLAYS_MAX: usize = 20_000;
/// Messages that one replay shows before others get their turn, or has read in one load.
const SHOWN_AT_ONCE: usize = 64;
/// Subjects that it looks at for them.
const LOOKED_AT_ONCE: usize = 512;
/// Bytes in one load, beyond its first message.
const LOAD_BYTES_MAX: u64 = 256 << 10;
/// Replays that are served before others get their turn.
const SERVED_AT_ONCE: usize = 16;
/// Bytes that all of them show before others get their turn; the last message may exceed it.
const BYTES_AT_ONCE: u64 = 512 << 10;
/// Messages of a replay that wait in the queue of its session at once.
const WAITING_MAX: u64 = 64;

/// What comes next for a replay.
enum Next {
    /// One that is in memory.
    Message(Shown, Blob),
    Cold(Vec<Asked>, u64),
    /// It has looked at as much as it may.
    Later,
    Nothing,
}

/// What a replay shows.
#[derive(Clone, Copy)]
struct Shown {
    persistent: bool,
    expires: Time,
}

impl Shown {
    fn of(value: &Value) -> Shown {
        Shown { persistent: value.persistent, expires: value.expires }
    }

    fn ttl(self, now: Time) -> Option<Duration> {
        (self.expires != NEVER).then(|| self.expires.since(now))
    }
}

impl Engine {
    /// A channel wants to be shown what is retained.
    pub(crate) fn begin_replay(&mut self, channel: u32, replay: Replay) -> Result<(), Refusal> {
        let id = self.clients.channels[channel].id;
        let Some(pattern) = Pattern::of(&replay.key) else {
            refuse!(PreconditionFailed, "'{}' has '#' elsewhere than at its end", replay.key);
        };
        self.end_replay_named(id, &replay.name);
        if self.retained.replays.count_of(id) >= REPLAYS_MAX {
            refuse!(LimitExceeded, "more than {REPLAYS_MAX} replays of one channel");
        }
        self.check_may_hold_more(id.connection)?;
        let session = match replay.through_session {
            true => Some(self.held_session(id)?),
            false => None,
        };
        let running = Running::new(replay.key.into(), pattern, self.retained.next_number);
        self.retained.replays.add(Running {
            name: replay.name.into(),
            note: replay.note,
            vhost: self.clients.channels[channel].vhost,
            user: self.clients.user(id.connection).cloned(),
            client: self.clients.client_name(id.connection).map(Into::into),
            channel: Some(id),
            session: session.map(|slot| self.sessions[slot].number),
            ..running
        });
        Ok(())
    }

    /// Ends the replay of that name, if the channel has it.
    pub(crate) fn end_replay_named(&mut self, channel: ChannelId, name: &str) {
        for slot in self.retained.replays.of_channel(channel) {
            if self.retained.replays.get(slot).is_some_and(|it| *it.name == *name) {
                self.retained.replays.remove(slot);
            }
        }
    }

    /// A channel ends: what is its session's goes on.
    pub(crate) fn end_replays_of(&mut self, channel: ChannelId) {
        for slot in self.retained.replays.of_channel(channel) {
            match self.retained.replays.get(slot).and_then(|it| it.session) {
                Some(_) => self.retained.replays.set_channel(slot, None),
                None => drop(self.retained.replays.remove(slot)),
            }
        }
    }

    /// A session has gone.
    pub(crate) fn end_replays_of_session(&mut self, session: u64) {
        for slot in self.retained.replays.of_session(session) {
            self.retained.replays.remove(slot);
        }
    }

    /// Another channel holds a session.
    pub(crate) fn move_replays(&mut self, session: u64, channel: ChannelId) {
        for slot in self.retained.replays.of_session(session) {
            self.retained.replays.set_channel(slot, Some(channel));
            self.retained.replays.wake(slot);
        }
    }

    /// A channel can be shown more.
    #[inline]
    pub(crate) fn wake_replays_of(&mut self, channel: ChannelId) {
        if !self.retained.replays.is_empty() {
            self.wake_shown_to(channel);
        }
    }

    #[cold]
    fn wake_shown_to(&mut self, channel: ChannelId) {
        for slot in self.retained.replays.of_channel(channel) {
            self.retained.replays.wake(slot);
        }
    }

    /// A queue may have room for more.
    #[inline]
    pub(crate) fn wake_replays_into(&mut self, queue: u32) {
        if !self.retained.replays.is_empty() {
            self.wake_those_into(queue);
        }
    }

    #[cold]
    fn wake_those_into(&mut self, queue: u32) {
        let own = self.queues.get(queue).and_then(|queue| queue.own.as_ref());
        let Some(session) = own.map(|own| own.session) else { return };
        for slot in self.retained.replays.of_session(session) {
            self.retained.replays.wake(slot);
        }
    }

    /// Messages can be stored again.
    pub(crate) fn wake_all_replays(&mut self) {
        self.retained.replays.wake_all();
    }

    /// Shows what is retained, a bounded part of it.
    #[cold]
    pub(crate) fn serve_replays<F: Effects>(&mut self, now: Time, fx: &mut F) {
        let mut bytes = 0;
        for slot in self.retained.replays.take_awake(SERVED_AT_ONCE) {
            if bytes < BYTES_AT_ONCE {
                bytes += self.serve_replay(now, slot, BYTES_AT_ONCE - bytes, fx);
            } else {
                self.retained.replays.wake(slot);
            }
        }
    }

    /// Serves one; returns the bytes that it was shown.
    fn serve_replay<F: Effects>(&mut self, now: Time, slot: u32, most: u64, fx: &mut F) -> u64 {
        let Some(running) = self.retained.replays.get(slot) else { return 0 };
        let audible = self.audible_to(running);
        let (mut bytes, mut looks) = (0, LOOKED_AT_ONCE);
        for _ in 0..SHOWN_AT_ONCE {
            let room = self.room_for_replay(slot, fx);
            if room == 0 {
                return bytes;
            }
            if bytes >= most {
                break;
            }
            match self.next_retained(now, slot, &audible, room, &mut looks) {
                Next::Message(shown, message) => {
                    bytes += message.cost();
                    self.show_retained(now, slot, shown, &message, fx);
                }
                Next::Cold(wanted, cost) => {
                    self.read_for_replay(slot, wanted, cost, fx);
                    return bytes;
                }
                Next::Later => break,
                Next::Nothing => {
                    self.retained.replays.remove(slot);
                    return bytes;
                }
            }
        }
        self.retained.replays.wake(slot);
        bytes
    }

    /// What the user of a replay may hear now.
    fn audible_to(&self, running: &Running) -> Audible {
        match (&running.user, self.topology.vhosts.get(running.vhost)) {
            (None, Some(_)) => Audible::Everything,
            (Some(user), Some(vhost)) => {
                self.access.audible(user, &vhost.name, running.client.as_deref())
            }
            _ => Audible::Nothing,
        }
    }

    /// How many messages a replay may be shown now. Where it is none, it is woken once there is room.
    fn room_for_replay<F: Effects>(&mut self, slot: u32, fx: &F) -> usize {
        let Some(running) = self.retained.replays.get(slot).filter(|it| !it.is_loading) else {
            return 0;
        };
        if let Some(id) = running.channel
            && let Some(channel) = self.clients.channel_slot(id)
        {
            let channel = &mut self.clients.channels[channel];
            if !channel.flow || !fx.has_room(id.connection) {
                channel.is_held_up = true;
                return 0;
            }
        }
        let Some(session) = running.session else { return SHOWN_AT_ONCE };
        let queue = self.queue_of_session(session).and_then(|queue| self.queues.get(queue));
        let Some(queue) = queue else { return SHOWN_AT_ONCE };
        if self.storage.state != StorageState::Ready {
            return 0;
        }
        let most = queue.options.length_max.unwrap_or(WAITING_MAX).clamp(1, WAITING_MAX);
        most.saturating_sub(queue.ready) as usize
    }

    /// The slot of the queue of the session of that number.
    fn queue_of_session(&self, session: u64) -> Option<u32> {
        let session = &self.sessions[self.sessions.numbered(session)?];
        self.queues.slot_of(session.queue)
    }

    /// Finds what a replay is shown next: one message, or several that have to be read.
    fn next_retained(
        &mut self,
        now: Time,
        slot: u32,
        audible: &Audible,
        room: usize,
        looks: &mut usize,
    ) -> Next {
        let Some(running) = self.retained.replays.get_mut(slot) else { return Next::Nothing };
        let most = if running.reads_singly { 1 } else { SHOWN_AT_ONCE.min(room) };
        let (mut wanted, mut cost) = (Vec::new(), 0);
        let values = &self.retained.values;
        let Running { pattern, next, vhost, before, .. } = running;
        loop {
            let begin = next.clone();
            let Some((key, value)) = values.find(*vhost, pattern, next, looks) else { break };
            let is_newer = value.number >= *before;
            if is_newer || value.expires <= now || !is_audible(audible, key) {
                continue;
            }
            match &value.message {
                Some(message) if wanted.is_empty() => {
                    return Next::Message(Shown::of(value), message.clone());
                }
                None if wanted.len() < most && (cost < LOAD_BYTES_MAX || wanted.is_empty()) => {
                    cost += u64::from(value.bytes) + ENTRY_COST;
                    let (number, position) = (value.number, value.position);
                    wanted.push(Asked { key: key.clone(), number, position });
                }
                _ => {
                    *next = begin;
                    break;
                }
            }
        }
        match *looks {
            _ if !wanted.is_empty() => Next::Cold(wanted, cost),
            0 => Next::Later,
            _ => Next::Nothing,
        }
    }

    /// Shows one message: it goes into the queue of the session, or straight to the channel.
    fn show_retained<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        shown: Shown,
        message: &Blob,
        fx: &mut F,
    ) {
        let Some(running) = self.retained.replays.get(slot) else { return };
        let stored = message.stored();
        let annotations = Annotations { changed: running.note.clone(), ..stored.annotations(0) };
        let ttl = shown.ttl(now);
        self.counters.replayed += 1;
        let queue = running.session.filter(|_| shown.persistent);
        if let Some(queue) = queue.and_then(|session| self.queue_of_session(session)) {
            let content = Content { ttl, ..stored.content };
            let incoming = Incoming { content, ..stored.incoming(&[], false, &annotations) };
            fx.reserve(record::bytes_max(message.len() + running.note.len(), 1), 3);
            self.storage.in_group = true;
            self.place(now, &incoming, &[QueueKey(queue)], false, fx);
            self.storage.in_group = false;
            return self.run_overdue(now, fx);
        }
        let Some(channel) = running.channel else { return };
        let Some(channel_slot) = self.clients.channel_slot(channel) else { return };
        let tag = self.clients.channels[channel_slot].take_tag();
        let message = &MessageView { ttl, ..stored.view(&annotations) };
        let (consumer, place, redelivered) = (&*running.name, 0, false);
        fx.deliver(&Delivery { channel, consumer, tag, place, redelivered, group: None, message });
    }

    fn read_for_replay<F: Effects>(
        &mut self,
        slot: u32,
        wanted: Vec<Asked>,
        cost: u64,
        fx: &mut F,
    ) {
        let Some(running) = self.retained.replays.get_mut(slot) else { return };
        running.is_loading = true;
        let positions = wanted.iter().map(|asked| asked.position).collect();
        let load = ReplayLoad { slot, number: running.number, wanted };
        self.load(NO_QUEUE, cost, Wanted::Replayed(Box::new(load)), positions, fx);
    }

    /// What a replay has asked for was read.
    pub(crate) fn replayed_loaded<F: Effects>(
        &mut self,
        now: Time,
        load: ReplayLoad,
        records: Loaded,
        fx: &mut F,
    ) {
        let ReplayLoad { slot, number, wanted } = load;
        let running = self.retained.replays.get_mut(slot).filter(|it| it.number == number);
        let Some(running) = running else { return };
        running.is_loading = false;
        running.reads_singly &= records.is_err();
        let audible = self.retained.replays.get(slot).map(|it| self.audible_to(it));
        let audible = audible.unwrap_or(Audible::Nothing);
        let (records, is_whole) = (records.as_deref().unwrap_or_default(), records.is_ok());
        for (at, asked) in wanted.iter().enumerate() {
            let Asked { key, position, .. } = asked;
            let goes_on = match records.get(at) {
                Some(record) => self.show_read(now, slot, asked, record, &audible, fx),
                // Which of them cannot be read shows when they are read singly.
                None => wanted.len() == 1 && self.is_unreadable(slot, key, *position),
            };
            if !goes_on {
                self.go_back(slot, key, !is_whole);
                break;
            }
        }
        self.retained.replays.wake(slot);
    }

    /// Shows a message that was read, if it is the retained one of its subject still; false where there is
    /// no room for it.
    fn show_read<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        asked: &Asked,
        record: &Arc<[u8]>,
        audible: &Audible,
        fx: &mut F,
    ) -> bool {
        let Asked { key, number, .. } = asked;
        let Some(vhost) = self.retained.replays.get(slot).map(|it| it.vhost) else { return false };
        let value = self.retained.values.get(vhost, key);
        let Some(value) = value.filter(|it| it.number == *number) else { return true };
        if value.expires <= now || !is_audible(audible, key) {
            return true;
        }
        let shown = Shown::of(value);
        if let Some(message) = checked_message(record, &self.options.limits) {
            if self.room_for_replay(slot, fx) == 0 {
                return false;
            }
            self.show_retained(now, slot, shown, &message, fx);
        } else if record.is_empty() {
            // A repair of the journal had to give it up.
            self.counters.given_up += 1;
            self.remove_retained(vhost, key, false, fx);
        } else {
            self.counters.unreadable += 1;
        }
        true
    }

    /// Whether a message that was not read is where it was looked for.
    fn is_unreadable(&mut self, slot: u32, key: &Key, position: Position) -> bool {
        let vhost = self.retained.replays.get(slot).map(|it| it.vhost);
        let value = vhost.and_then(|vhost| self.retained.values.get(vhost, key));
        let is_there = value.is_some_and(|value| value.position == position);
        self.counters.unreadable += u64::from(is_there);
        is_there || value.is_none()
    }

    /// Has a replay look at a subject again.
    fn go_back(&mut self, slot: u32, key: &Key, reads_singly: bool) {
        if let Some(running) = self.retained.replays.get_mut(slot) {
            running.next = key.to_vec();
            running.reads_singly |= reads_singly;
        }
    }
}

/// Whether a message of a subject may be heard.
fn is_audible(audible: &Audible, key: &Key) -> bool {
    match audible {
        Audible::Everything => true,
        Audible::Nothing => false,
        Audible::Some(_) => audible.includes(std::iter::once(subject_of(key).as_str())),
    }
}
