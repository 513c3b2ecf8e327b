//! Which shard a new client goes to, by how many clients each shard has. Knows nothing else of shards.

use angarium_engine::ShardId;
use angarium_protocol::Protocol;

/// With fewer shards, AMQP clients stay with their queues.
const SHARDS_TO_SPREAD_AMQP: usize = 3;

/// The shard for a client of that protocol, where shards have so many clients, home first. One shard takes
/// so many `together` before they are spread: few do best where nothing they send to each other crosses.
pub(super) fn choose(protocol: Protocol, clients: &[usize], together: u64) -> ShardId {
    let has_room = |shard: usize| (clients[shard] as u64) < together;
    let shard = match protocol {
        // Who uses queues is best served where they are, unless other shards can take enough off home to
        // make up for what the way there costs.
        Protocol::Amqp091 if clients.len() < SHARDS_TO_SPREAD_AMQP || has_room(0) => 0,
        Protocol::Amqp091 => emptiest(clients, 1),
        Protocol::Nats if has_room(clients.len() - 1) => clients.len() - 1,
        Protocol::Nats => emptiest(clients, 0),
    };
    ShardId(u8::try_from(shard).unwrap_or(0))
}

/// The one with the fewest clients, but for so many at the beginning. Of equally empty ones the last: the
/// first has the queues to look after too.
fn emptiest(clients: &[usize], but: usize) -> usize {
    let emptiest = clients.iter().enumerate().skip(but).rev().min_by_key(|(_, count)| **count);
    emptiest.map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::{Protocol, choose};

    /// Places as many clients as shards are named in `expected`, where nobody is yet.
    #[track_caller]
    fn check(protocol: Protocol, together: u64, shards: usize, expected: &[u8]) {
        let mut clients = vec![0; shards];
        let placed = expected.iter().map(|_| {
            let shard = choose(protocol, &clients, together);
            clients[usize::from(shard.0)] += 1;
            shard.0
        });
        assert_eq!(placed.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn direct_clients_are_together_first_and_home_has_one_last() {
        check(Protocol::Nats, 4, 1, &[0, 0, 0, 0, 0]);
        check(Protocol::Nats, 2, 2, &[1, 1, 0, 0, 1, 0, 1]);
        check(Protocol::Nats, 4, 4, &[3, 3, 3, 3, 2, 1, 0, 2, 1, 0]);
        check(Protocol::Nats, 0, 4, &[3, 2, 1, 0, 3, 2]);
    }

    #[test]
    fn clients_of_queues_are_with_them_first_and_others_only_where_there_are_shards() {
        check(Protocol::Amqp091, 4, 1, &[0; 6]);
        check(Protocol::Amqp091, 0, 2, &[0; 6]);
        check(Protocol::Amqp091, 4, 3, &[0, 0, 0, 0, 2, 1, 2, 1]);
        check(Protocol::Amqp091, 0, 3, &[2, 1, 2, 1]);
    }

    #[test]
    fn a_place_that_is_left_is_taken_first() {
        for (protocol, clients, expected) in [
            (Protocol::Nats, [9, 9, 8, 9], 2),
            (Protocol::Nats, [9, 0, 9, 3], 3),
            (Protocol::Amqp091, [3, 0, 0, 0], 0),
            (Protocol::Amqp091, [4, 9, 7, 9], 2),
        ] {
            assert_eq!(choose(protocol, &clients, 4).0, expected, "{protocol:?}, {clients:?}");
        }
    }
}
