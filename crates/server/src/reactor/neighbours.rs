//! The shards of a broker as one of them sees them: their mailboxes, and how many clients each has.

use super::Shard;
use super::mailbox::{Letter, Mailbox};
use angarium_engine::ShardId;
use angarium_protocol::Protocol;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// With fewer shards, AMQP clients stay with their queues.
const SHARDS_TO_SPREAD_AMQP: usize = 3;

/// All shards of the broker.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    pub(super) here: ShardId,
    /// By shard, the own one too.
    mailboxes: Arc<[Mailbox]>,
    /// How many clients each shard has, or has been given.
    clients: Arc<[AtomicUsize]>,
    /// How many the system lets there be.
    clients_max: u64,
}

impl Neighbours {
    /// All shards as the first one sees them.
    pub(super) fn new(mailboxes: Vec<Mailbox>, clients_max: u64) -> Neighbours {
        let clients = mailboxes.iter().map(|_| AtomicUsize::new(0)).collect();
        Neighbours { here: ShardId::HOME, mailboxes: mailboxes.into(), clients, clients_max }
    }

    /// The same as another one of them sees them.
    pub(super) fn seen_by(&self, shard: ShardId) -> Neighbours {
        Neighbours { here: shard, ..self.clone() }
    }

    /// How many shards there are.
    pub(super) fn count(&self) -> usize {
        self.mailboxes.len()
    }

    /// The own mailbox.
    pub(super) fn own(&self) -> &Mailbox {
        &self.mailboxes[usize::from(self.here.0)]
    }

    /// Has the same done on every other shard.
    pub(super) fn tell_others(&self, task: impl FnOnce(&mut Shard) + Clone + Send + 'static) {
        for (at, mailbox) in self.mailboxes.iter().enumerate() {
            if at != usize::from(self.here.0) {
                // One that has ended has nothing left to do.
                let _ = mailbox.tell(task.clone());
            }
        }
    }

    /// Sends a letter to a shard; without it, nobody needs it.
    pub(super) fn send(&self, to: ShardId, letter: Letter) {
        let _ = self.mailboxes[usize::from(to.0)].send(letter);
    }

    // ---- clients ----

    /// Whether there may be one more, of so many that the settings allow; if not, why.
    pub(super) fn has_room(&self, most: u64) -> Result<(), String> {
        let count = self.clients() as u64;
        if count >= most {
            return Err(format!("connections-max ({most}) is reached"));
        }
        if count >= self.clients_max {
            return Err(format!(
                "{count} clients are as many as the system has files for: raise the limit of open \
                 files (ulimit -n, LimitNOFILE= of the service)"
            ));
        }
        Ok(())
    }

    /// The shard for a new client, which is counted there from now on.
    pub(super) fn place(&self, protocol: Protocol) -> ShardId {
        let shard = match protocol {
            // Who uses queues is best served where they are, unless other shards can take enough off
            // home to make up for what the way there costs.
            Protocol::Amqp091 if self.count() < SHARDS_TO_SPREAD_AMQP => ShardId::HOME,
            Protocol::Amqp091 => self.emptiest(1),
            Protocol::Nats => self.emptiest(0),
        };
        self.clients[usize::from(shard.0)].fetch_add(1, Ordering::Relaxed);
        shard
    }

    /// The one with the fewest clients, but for so many at the beginning.
    fn emptiest(&self, but: usize) -> ShardId {
        let counts = self.clients.iter().map(|count| count.load(Ordering::Relaxed));
        // Of equally empty ones the last: the first has the queues to look after too.
        let placed = counts.enumerate().skip(but);
        let emptiest = placed.min_by_key(|(at, count)| (*count, usize::MAX - at));
        ShardId(emptiest.map_or(0, |(at, _)| u8::try_from(at).unwrap_or(0)))
    }

    /// A client that had been placed here has gone.
    pub(super) fn left(&self) {
        self.clients[usize::from(self.here.0)].fetch_sub(1, Ordering::Relaxed);
    }

    /// How many clients all shards have.
    pub(super) fn clients(&self) -> usize {
        self.clients.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}
