//! Which shard a new client goes to, by how many clients each shard has. Does not know shards otherwise.

use crate::settings::Placement;
use angarium_engine::ShardId;

/// With fewer shards, clients of queues stay at home.
const SHARDS_TO_SPREAD: usize = 3;

/// The shard for a client of that placement; `clients` is the number of clients of each shard, home first.
/// The first `together` clients share one shard: few clients are fastest if no message crosses shards.
pub(super) fn choose(placement: Placement, clients: &[usize], together: u64) -> ShardId {
    let has_room = |shard: usize| (clients[shard] as u64) < together;
    let shard = match placement {
        // Clients of queues are served best at home, unless there are enough other shards to make up for
        // the cost of crossing.
        Placement::WithQueues if clients.len() < SHARDS_TO_SPREAD || has_room(0) => 0,
        Placement::WithQueues => emptiest(clients, 1),
        Placement::Anywhere if has_room(clients.len() - 1) => clients.len() - 1,
        Placement::Anywhere => emptiest(clients, 0),
    };
    ShardId(u8::try_from(shard).unwrap_or(0))
}

/// The shard with the fewest clients, without the first `skipped`. Of equal ones the last: the first has the
/// queues to serve too.
fn emptiest(clients: &[usize], skipped: usize) -> usize {
    let emptiest = clients.iter().enumerate().skip(skipped).rev().min_by_key(|(_, count)| **count);
    emptiest.map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::{Placement, choose};

    /// Places as many clients as shards are named in `expected`, one after the other.
    #[track_caller]
    fn check(placement: Placement, together: u64, shards: usize, expected: &[u8]) {
        let mut clients = vec![0; shards];
        let placed = expected.iter().map(|_| {
            let shard = choose(placement, &clients, together);
            clients[usize::from(shard.0)] += 1;
            shard.0
        });
        assert_eq!(placed.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn direct_clients_are_together_first_and_home_has_one_last() {
        check(Placement::Anywhere, 4, 1, &[0, 0, 0, 0, 0]);
        check(Placement::Anywhere, 2, 2, &[1, 1, 0, 0, 1, 0, 1]);
        check(Placement::Anywhere, 4, 4, &[3, 3, 3, 3, 2, 1, 0, 2, 1, 0]);
        check(Placement::Anywhere, 0, 4, &[3, 2, 1, 0, 3, 2]);
    }

    #[test]
    fn clients_of_queues_are_with_them_first_and_others_only_where_there_are_shards() {
        check(Placement::WithQueues, 4, 1, &[0; 6]);
        check(Placement::WithQueues, 0, 2, &[0; 6]);
        check(Placement::WithQueues, 4, 3, &[0, 0, 0, 0, 2, 1, 2, 1]);
        check(Placement::WithQueues, 0, 3, &[2, 1, 2, 1]);
    }

    #[test]
    fn a_place_that_is_left_is_taken_first() {
        for (placement, clients, expected) in [
            (Placement::Anywhere, [9, 9, 8, 9], 2),
            (Placement::Anywhere, [9, 0, 9, 3], 3),
            (Placement::WithQueues, [3, 0, 0, 0], 0),
            (Placement::WithQueues, [4, 9, 7, 9], 2),
        ] {
            assert_eq!(choose(placement, &clients, 4).0, expected, "{placement:?}, {clients:?}");
        }
    }
}
