//! From records back to state: each record does what it did when it was first applied, less what the
//! world was told.

use crate::access::PermissionView;
use crate::delay::Held;
use crate::engine::Engine;
use crate::queue::Queue;
use crate::queue::entry::{Entry, Fetch, NOWHERE};
use crate::queue::page::{Page, PageEntry};
use crate::queue::stored::Stored;
use crate::record::{Place, Record};
use crate::timers::Timer;
use crate::{Effects, Position, Refusal, Time};

fn text(refusal: Refusal) -> String {
    refusal.text
}

impl Engine {
    pub(crate) fn replay_record<F: Effects>(
        &mut self,
        position: Position,
        record: &[u8],
        fx: &mut F,
    ) -> Result<(), String> {
        match Record::parse(record)? {
            Record::Nothing | Record::Spooled { .. } => Ok(()),
            Record::Published { places, message } => {
                self.replay_published(position, &places, message, fx)
            }
            Record::Moved { places, .. } => {
                self.replay_moved(position, &places, fx);
                Ok(())
            }
            Record::Settled { queue, ranges } => {
                for (first, last) in ranges {
                    self.replay_settled(queue, first, last, fx)?;
                }
                Ok(())
            }
            Record::Purged { queue, before, kept } => {
                self.replay_purged(queue, before, &kept, fx);
                Ok(())
            }
            Record::Page { queue, lane, durable, entries } => {
                self.replay_page(position, queue, lane, durable, &entries, fx)
            }
            Record::Delayed { number, vhost, due, message } => {
                Stored::parse(message)?;
                let vhost = self.vhost_slot(vhost).map_err(text)?;
                let stored_at = Some(position);
                let held = Held {
                    vhost,
                    due,
                    position: stored_at,
                    persistent: true,
                    message: None,
                    redelivered: false,
                };
                // It has been there before where its segment was given back.
                if let Some(Held { position: Some(before), .. }) = self.delays.remove(number) {
                    fx.release(before, 1);
                }
                self.delays.insert(number, held);
                fx.retain(position, 1);
                Ok(())
            }
            Record::DelayEnded { number } => {
                if let Some(Held { position: Some(position), .. }) = self.delays.remove(number) {
                    fx.release(position, 1);
                }
                Ok(())
            }
            record => self.replay_topology(record, fx),
        }
    }

    fn replay_topology<F: Effects>(
        &mut self,
        record: Record<'_>,
        fx: &mut F,
    ) -> Result<(), String> {
        match record {
            Record::QueueDeclared { number, vhost, name, options } => {
                let vhost = self.vhost_slot(vhost).map_err(text)?;
                self.restore_queue(Queue::new(number, vhost, name.to_owned(), options))?;
            }
            Record::QueueDeleted { number } => {
                if let Some(slot) = self.queue_slots.get(&number) {
                    self.forget_queue(*slot, fx);
                }
            }
            Record::ExchangeDeclared { vhost, name, options } => {
                self.replay_router(vhost)?.declare_exchange(name, &options).map_err(text)?;
            }
            Record::ExchangeDeleted { vhost, name } => {
                self.replay_router(vhost)?.delete_exchange(name, false).map_err(text)?;
            }
            Record::Bound(binding) => {
                let router = self.replay_router(binding.vhost)?;
                let arguments = binding.arguments;
                router
                    .bind(binding.source, &binding.target, binding.key, arguments)
                    .map_err(text)?;
            }
            Record::Unbound(binding) => {
                let router = self.replay_router(binding.vhost)?;
                router
                    .unbind(binding.source, &binding.target, binding.key, &binding.arguments)
                    .map_err(text)?;
            }
            record => self.replay_access(record, fx)?,
        }
        Ok(())
    }

    fn replay_access<F: Effects>(&mut self, record: Record<'_>, fx: &mut F) -> Result<(), String> {
        match record {
            Record::VhostCreated { name } => {
                if !self.vhost_slots.contains_key(name) {
                    self.add_vhost(name);
                }
            }
            Record::VhostDeleted { name } => {
                let slot = self.vhost_slot(name).map_err(text)?;
                let queues: Vec<u32> = self
                    .queues
                    .iter()
                    .filter(|(_, queue)| queue.vhost == slot)
                    .map(|(slot, _)| slot)
                    .collect();
                for queue in queues {
                    self.forget_queue(queue, fx);
                }
                self.drop_delays_of(slot, fx);
                let vhost = self.vhosts.remove(slot).expect("it was found just now");
                self.vhost_slots.remove(&vhost.name);
                self.access.vhost_deleted(&vhost.name);
            }
            Record::UserPut { name, password_hash, administrator } => {
                self.access.put_user(name, password_hash, administrator);
            }
            Record::UserDeleted { name } => {
                self.access.delete_user(name);
            }
            Record::PermissionsSet { user, vhost, configure, write, read } => {
                let set = PermissionView { user, vhost, configure, write, read };
                self.access.set_permissions(set).map_err(text)?;
            }
            Record::PermissionsCleared { user, vhost } => {
                self.access.clear_permissions(user, vhost);
            }
            _ => unreachable!("all other records were dealt with before"),
        }
        Ok(())
    }

    /// A virtual host's router, which decides nothing by itself while records are replayed.
    fn replay_router(&mut self, vhost: &str) -> Result<&mut crate::routing::Router, String> {
        let slot = self.vhost_slot(vhost).map_err(text)?;
        let router = &mut self.vhosts.get_mut(slot).expect("it was found just now").router;
        router.hold_auto_delete(true);
        Ok(router)
    }

    /// Takes a queue in that a record or a snapshot names.
    pub(crate) fn restore_queue(&mut self, queue: Queue) -> Result<u32, String> {
        let vhost = self.vhosts.get(queue.vhost).ok_or("a queue in no virtual host")?;
        if vhost.router.queue(&queue.name).is_some() {
            return Err(format!("queue '{}' is declared twice", queue.name));
        }
        if self.queue_slots.contains_key(&queue.number) {
            return Err(format!("queue number {} is used twice", queue.number));
        }
        Ok(self.add_queue(queue))
    }

    /// Deletes a queue because a record says so.
    fn forget_queue<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        self.drop_messages(slot, fx);
        let queue = self.queues.remove(slot).expect("the caller looked it up");
        self.queue_slots.remove(&queue.number);
        let vhost = self.vhosts.get_mut(queue.vhost).expect("queues end first");
        vhost.queues -= 1;
        vhost.router.hold_auto_delete(true);
        vhost.router.queue_removed(crate::routing::QueueKey(slot));
    }

    fn replay_published<F: Effects>(
        &mut self,
        position: Position,
        places: &[Place],
        message: &[u8],
        fx: &mut F,
    ) -> Result<(), String> {
        let stored = Stored::parse(message)?;
        let bytes = stored.content.body.len() as u32;
        let priority = stored.content.priority;
        for place in places {
            let Some(slot) = self.queue_slots.get(&place.queue) else { continue };
            let queue = self.queues.get_mut(*slot).expect("numbers name living queues");
            if place.seq < queue.next_seq {
                return Err(format!("message {} of queue '{}' again", place.seq, queue.name));
            }
            queue.next_seq = place.seq + 1;
            let lane = queue.lane_of(priority);
            queue.push(Entry {
                seq: place.seq,
                position,
                expires: place.expires,
                message: None,
                bytes,
                requeues: 0,
                durable: true,
                redelivered: false,
                fetch: Fetch::Idle,
                lane,
            });
            fx.retain(position, 1);
        }
        Ok(())
    }

    fn replay_moved<F: Effects>(&mut self, position: Position, places: &[Place], fx: &mut F) {
        for place in places {
            let Some(slot) = self.queue_slots.get(&place.queue) else { continue };
            let queue = self.queues.get_mut(*slot).expect("numbers name living queues");
            let found = queue.lanes.iter_mut().find_map(|lane| lane.find(place.seq));
            if let Some(entry) = found {
                let before = std::mem::replace(&mut entry.position, position);
                fx.retain(position, 1);
                fx.release(before, 1);
            }
        }
    }

    fn replay_settled<F: Effects>(
        &mut self,
        number: u64,
        first: u64,
        last: u64,
        fx: &mut F,
    ) -> Result<(), String> {
        let Some(slot) = self.queue_slots.get(&number).copied() else { return Ok(()) };
        let queue = self.queues.get_mut(slot).expect("numbers name living queues");
        if last >= queue.next_seq {
            let next = queue.next_seq;
            return Err(format!("message {last} of queue '{}' settled before {next}", queue.name));
        }
        for seq in first..=last {
            let queue = self.queues.get_mut(slot).expect("numbers name living queues");
            if let Some(entry) = queue.remove(seq) {
                self.drop_entry(entry, fx);
            } else {
                self.settle_in_page(slot, seq, fx);
            }
        }
        Ok(())
    }

    /// A message in a page is gone. Which record it was in is only known once the page is read: its
    /// reference stays until then, or until all in the page are gone.
    fn settle_in_page<F: Effects>(&mut self, slot: u32, seq: u64, fx: &mut F) {
        let queue = self.queues.get_mut(slot).expect("the caller looked it up");
        let Some((lane, page)) = queue.page_of(seq) else { return };
        if queue.settled_in_pages.contains(seq) {
            return;
        }
        queue.settled_in_pages.insert(seq);
        if queue.lanes.len() > 1 {
            // Pages of several priorities overlap: which of them it is in is not known either.
            return;
        }
        queue.ready -= 1;
        let page = &mut queue.lanes[lane].pages_mut()[page];
        page.count -= 1;
        page.durable_count -= 1;
        if page.count == 0 {
            let position = page.position;
            self.drop_page_at(slot, lane, position, fx);
        }
    }

    /// Gives a page back wherever in its lane it is.
    pub(crate) fn drop_page_at<F: Effects>(
        &mut self,
        slot: u32,
        lane: usize,
        at: Position,
        fx: &mut F,
    ) {
        let queue = self.queues.get_mut(slot).expect("the caller looked it up");
        let Some(page) = queue.lanes[lane].remove_page(at) else { return };
        queue.ready -= u64::from(page.count);
        queue.ready_bytes -= page.bytes;
        queue.forget_settled_in(&page);
        self.drop_page(slot, &page, fx);
    }

    fn replay_purged<F: Effects>(&mut self, number: u64, before: u64, kept: &[u64], fx: &mut F) {
        let Some(slot) = self.queue_slots.get(&number).copied() else { return };
        let queue = self.queues.get_mut(slot).expect("numbers name living queues");
        let mut gone = Vec::new();
        for lane in &queue.lanes {
            let of_lane = lane.entries().map(|entry| entry.seq);
            gone.extend(of_lane.filter(|seq| *seq < before && kept.binary_search(seq).is_err()));
        }
        for seq in gone {
            let queue = self.queues.get_mut(slot).expect("numbers name living queues");
            if let Some(entry) = queue.remove(seq) {
                self.drop_entry(entry, fx);
            }
        }
        let queue = self.queues.get(slot).expect("numbers name living queues");
        let mut pages = Vec::new();
        for (index, lane) in queue.lanes.iter().enumerate() {
            let purged = lane.pages().filter(|page| page.first < before);
            pages.extend(purged.map(|page| (index, page.position)));
        }
        for (lane, position) in pages {
            self.purge_page(slot, lane, position, kept, fx);
        }
    }

    /// Leaves only those messages in a page that were out when the queue was purged.
    fn purge_page<F: Effects>(
        &mut self,
        slot: u32,
        lane: usize,
        position: Position,
        kept: &[u64],
        fx: &mut F,
    ) {
        let queue = self.queues.get_mut(slot).expect("the caller looked it up");
        let is_only_lane = queue.lanes.len() == 1;
        let pages = queue.lanes[lane].pages_mut();
        let Some(page) = pages.iter_mut().find(|page| page.position == position) else { return };
        let from = kept.partition_point(|seq| *seq < page.first);
        let to = kept.partition_point(|seq| *seq <= page.last);
        if from == to {
            self.drop_page_at(slot, lane, position, fx);
            return;
        }
        let mut next = page.first;
        for seq in kept[from..to].iter().copied().chain([page.last + 1]) {
            if seq > next {
                queue.settled_in_pages.insert_range(next, seq - 1);
            }
            next = seq + 1;
        }
        if is_only_lane {
            let count = page.count.min((to - from) as u32);
            queue.ready -= u64::from(page.count - count);
            page.count = count;
            page.durable_count = count;
        }
    }

    /// A run of entries left memory: it leaves it again.
    fn replay_page<F: Effects>(
        &mut self,
        position: Position,
        number: u64,
        lane: u8,
        durable: bool,
        entries: &[PageEntry],
        fx: &mut F,
    ) -> Result<(), String> {
        let Some(slot) = self.queue_slots.get(&number).copied() else { return Ok(()) };
        if !durable {
            return Ok(());
        }
        let queue = self.queues.get_mut(slot).expect("numbers name living queues");
        let Some(target) = queue.lanes.get_mut(usize::from(lane)) else {
            return Err(format!("queue '{}' has no priority {lane}", queue.name));
        };
        let entries: Vec<PageEntry> =
            entries.iter().filter(|entry| entry.durable).cloned().collect();
        let mut page = Page::of(position, &entries);
        page.recovered = true;
        if let Some(index) = target.find_page(page.first) {
            return self.replay_moved_page(slot, lane.into(), index, page, &entries, fx);
        }
        for entry in &entries {
            if target.remove(entry.seq).is_none() {
                // Settled already. The page counts on a reference to it until it is read.
                queue.settled_in_pages.insert(entry.seq);
                fx.retain(entry.position, 1);
                page.count -= 1;
                page.durable_count -= 1;
                queue.ready_bytes += u64::from(entry.bytes);
            }
        }
        fx.retain(position, 1);
        target.restore_page(page);
        if queue.lanes[usize::from(lane)].pages().last().is_some_and(|page| page.count == 0) {
            self.drop_page_at(slot, lane.into(), position, fx);
        }
        Ok(())
    }

    /// A page was written anew, with those of its messages that were in it still; they may lie
    /// elsewhere.
    fn replay_moved_page<F: Effects>(
        &mut self,
        slot: u32,
        lane: usize,
        index: usize,
        page: Page,
        entries: &[PageEntry],
        fx: &mut F,
    ) -> Result<(), String> {
        for entry in entries {
            fx.retain(entry.position, 1);
        }
        fx.retain(page.position, 1);
        let queue = self.queues.get_mut(slot).expect("the caller looked it up");
        let known = &mut queue.lanes[lane].pages_mut()[index];
        if known.last < page.last {
            return Err(format!("a page of queue '{}' overlaps another", queue.name));
        }
        let old = std::mem::replace(known, page);
        let new = &*known;
        queue.ready = queue.ready + u64::from(new.count) - u64::from(old.count);
        queue.ready_bytes = queue.ready_bytes + new.bytes - old.bytes;
        queue.forget_settled_in(&old);
        self.drop_page(slot, &old, fx);
        Ok(())
    }

    pub(crate) fn end_recovery<F: Effects>(&mut self, now: Time, clean: bool, fx: &mut F) {
        for (segment, count) in std::mem::take(&mut self.transient_references) {
            let position = Position(u64::from(segment) << 32);
            fx.release(position, u32::try_from(count).unwrap_or(u32::MAX));
        }
        for (_, vhost) in self.vhosts.iter_mut() {
            vhost.router.hold_auto_delete(false);
        }
        let slots: Vec<u32> = self.queues.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            let queue = self.queues.get_mut(slot).expect("it was listed just now");
            if !clean {
                queue.mark_redelivered();
            }
            self.queue_used(now, slot);
            self.watch_head(slot);
            self.refill(slot, fx);
        }
        for held in self.delays.held.values_mut() {
            held.redelivered = !clean && held.due <= now;
        }
        if let Some(((due, _), ())) = self.delays.due.first_key_value() {
            self.timers.set(*due, Timer::Delay);
        }
        debug_assert!(self.queues.iter().all(|(_, queue)| {
            queue
                .lanes
                .iter()
                .flat_map(|lane| lane.entries())
                .all(|entry| entry.position != NOWHERE)
        }));
    }
}
