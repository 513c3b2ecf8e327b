//! Room for connections. Where there is none left, a new connection takes the place of one that keeps it
//! without need, so that clients that stall keep nobody out.
//!
//! That is, of the address with most connections, the one that was answered, or accepted, the longest ago.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// Room for a number of connections.
#[derive(Clone, Debug)]
pub(super) struct Slots(Arc<Mutex<Room>>);

#[derive(Debug)]
struct Room {
    connections_max: usize,
    taken: HashMap<u64, Taken>,
    /// Counts accepts and answers, so that each has its place in time.
    now: u64,
}

#[derive(Debug)]
struct Taken {
    /// None: by the Unix socket.
    address: Option<IpAddr>,
    /// When it was answered last, else accepted.
    answered: u64,
    /// Its task, once it runs.
    task: Option<AbortHandle>,
}

/// A connection's room, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Slots,
    number: u64,
}

impl Slots {
    pub(super) fn new(connections_max: usize) -> Slots {
        Slots(Arc::new(Mutex::new(Room { connections_max, taken: HashMap::new(), now: 0 })))
    }

    /// Takes room for a connection of that address, another one's if need be.
    pub(super) fn take(&self, address: Option<IpAddr>) -> Slot {
        let mut room = self.room();
        while room.taken.len() >= room.connections_max {
            room.give_way();
        }
        room.now += 1;
        let number = room.now;
        let taken = Taken { address, answered: number, task: None };
        room.taken.insert(number, taken);
        drop(room);
        Slot { slots: self.clone(), number }
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Room {
    /// Ends the connection that keeps its room with the least need.
    fn give_way(&mut self) {
        let mut by_address: HashMap<Option<IpAddr>, (usize, u64, u64)> = HashMap::new();
        for (number, taken) in &self.taken {
            let oldest = (taken.answered, *number);
            let entry = by_address.entry(taken.address).or_insert((0, oldest.0, oldest.1));
            entry.0 += 1;
            if oldest < (entry.1, entry.2) {
                (entry.1, entry.2) = oldest;
            }
        }
        let most = by_address
            .into_values()
            .max_by_key(|(count, answered, _)| (*count, u64::MAX - answered));
        let taken = most.and_then(|(_, _, number)| self.taken.remove(&number));
        if let Some(task) = taken.and_then(|taken| taken.task) {
            tracing::debug!("an HTTP connection made room for another one");
            task.abort();
        }
    }
}

impl Slot {
    /// A request of this connection was answered.
    pub(super) fn answered(&self) {
        let mut room = self.slots.room();
        room.now += 1;
        let now = room.now;
        if let Some(taken) = room.taken.get_mut(&self.number) {
            taken.answered = now;
        }
    }

    /// The task that is ended where the room is needed.
    pub(super) fn runs(&self, task: AbortHandle) {
        if let Some(taken) = self.slots.room().taken.get_mut(&self.number) {
            taken.task = Some(task);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.room().taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    fn has_room(slot: &Slot) -> bool {
        slot.slots.room().taken.contains_key(&slot.number)
    }

    #[test]
    fn who_waits_longest_of_the_address_with_most_gives_way() {
        let slots = Slots::new(4);
        let other = slots.take(address(1));
        let stalled: Vec<Slot> = (0..3).map(|_| slots.take(address(2))).collect();
        stalled[0].answered();
        let third = slots.take(address(3));
        assert!(has_room(&other) && has_room(&third), "alone at their addresses");
        assert_eq!([0, 1, 2].map(|at| has_room(&stalled[at])), [true, false, true]);
        let again = slots.take(address(2));
        assert_eq!([0, 1, 2].map(|at| has_room(&stalled[at])), [true, false, false]);
        assert!(has_room(&again));
    }

    #[test]
    fn room_is_given_back() {
        let slots = Slots::new(2);
        let first = slots.take(None);
        drop(slots.take(None));
        let second = slots.take(None);
        assert!(has_room(&first) && has_room(&second));
    }
}
