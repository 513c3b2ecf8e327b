//! Giving a sparsely used segment back: what is still live in it is appended anew.

use crate::engine::Engine;
use crate::queue::paging::{Loading, Wanted};
use crate::record::{Place, Record, message_of};
use crate::{Effects, Loaded, Position, Time};
use std::collections::BTreeSet;

/// Messages moved by one load.
const MOVE_MESSAGES_MAX: usize = 256;

impl Engine {
    /// Asks for the durable messages in `segment` that entries in memory refer to; they are appended
    /// anew once they are here.
    pub(crate) fn relocate_segment<F: Effects>(&mut self, now: Time, segment: u32, fx: &mut F) {
        let _ = now;
        let mut positions = BTreeSet::new();
        for (_, queue) in self.queues.iter() {
            let entries = queue.lanes.iter().flat_map(|lane| lane.entries());
            positions.extend(
                entries
                    .filter(|entry| entry.durable && entry.position.segment() == segment)
                    .map(|entry| entry.position),
            );
        }
        let positions: Vec<Position> = positions.into_iter().take(MOVE_MESSAGES_MAX).collect();
        if positions.is_empty() {
            return;
        }
        let wanted = Wanted::Relocation { segment, positions: positions.clone() };
        let loading = Loading { queue: u32::MAX, number: 0, bytes: 0, wanted };
        self.load(u32::MAX, loading, positions, fx);
    }

    /// Appends what was read anew.
    pub(crate) fn relocation_loaded<F: Effects>(
        &mut self,
        segment: u32,
        positions: &[Position],
        records: Loaded,
        fx: &mut F,
    ) {
        let Ok(records) = records else { return };
        let mut moves: Vec<Vec<Place>> = vec![Vec::new(); positions.len()];
        for (_, queue) in self.queues.iter() {
            for entry in queue.lanes.iter().flat_map(|lane| lane.entries()) {
                if entry.durable
                    && entry.position.segment() == segment
                    && let Ok(index) = positions.binary_search(&entry.position)
                {
                    let place =
                        Place { queue: queue.number, seq: entry.seq, expires: entry.expires };
                    moves[index].push(place);
                }
            }
        }
        for ((position, places), record) in positions.iter().zip(moves).zip(&records) {
            let Ok(message) = message_of(record) else { continue };
            if places.is_empty() {
                continue;
            }
            let moved = Record::Moved { places, message };
            moved.write(&mut self.record);
            let new = fx.append(&[&self.record], false);
            let Record::Moved { places, .. } = moved else { unreachable!("it was made a move") };
            let count = u32::try_from(places.len()).expect("queues are counted in 32 bits");
            fx.retain(new, count);
            fx.release(*position, count);
            for place in places {
                let slot = self.queue_slots[&place.queue];
                let queue = self.queues.get_mut(slot).expect("numbers name living queues");
                let found = queue.lanes.iter_mut().find_map(|lane| lane.find(place.seq));
                if let Some(entry) = found {
                    entry.position = new;
                }
            }
        }
    }
}
