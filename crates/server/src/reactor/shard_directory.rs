//! All shards of a broker, for one of them: their mailboxes, and how many clients each has.

use super::Shard;
use super::mailbox::{Letter, Mailbox};
use super::placement;
use crate::authenticate::Logins;
use crate::settings::Placement;
use angarium_engine::ShardId;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// All shards of the broker.
#[derive(Clone, Debug)]
pub(super) struct ShardDirectory {
    pub(super) here: ShardId,
    /// By shard, the own one too.
    pub(super) mailboxes: Arc<[Mailbox]>,
    /// How many clients each shard has or is about to have.
    clients: Arc<[AtomicUsize]>,
    /// How many clients the limit of open files allows.
    clients_max: u64,
    /// What all shards remember of logins.
    pub(super) logins: Logins,
}

impl ShardDirectory {
    /// The directory of the first shard.
    pub(super) fn new(
        mailboxes: Arc<[Mailbox]>,
        clients_max: u64,
        logins: Logins,
    ) -> ShardDirectory {
        let clients = mailboxes.iter().map(|_| AtomicUsize::new(0)).collect();
        ShardDirectory { here: ShardId::HOME, mailboxes, clients, clients_max, logins }
    }

    /// The directory of another shard.
    pub(super) fn seen_by(&self, shard: ShardId) -> ShardDirectory {
        ShardDirectory { here: shard, ..self.clone() }
    }

    /// How many shards there are.
    pub(super) fn count(&self) -> usize {
        self.mailboxes.len()
    }

    /// The own mailbox.
    pub(super) fn own(&self) -> &Mailbox {
        &self.mailboxes[usize::from(self.here.0)]
    }

    /// Runs a task on every other shard.
    pub(super) fn tell_others(&self, task: impl FnOnce(&mut Shard) + Clone + Send + 'static) {
        for (at, mailbox) in self.mailboxes.iter().enumerate() {
            if at != usize::from(self.here.0) {
                // One that has ended has nothing left to do.
                let _ = mailbox.tell(task.clone());
            }
        }
    }

    /// Sends a letter to a shard; it is dropped if the shard has ended.
    pub(super) fn send(&self, to: ShardId, letter: Letter) {
        let _ = self.mailboxes[usize::from(to.0)].send(letter);
    }

    /// Whether one more client may connect; `most` is the limit of the settings. The error says why not.
    pub(super) fn has_room(&self, most: u64) -> Result<(), String> {
        let counts = self.clients.iter().map(|count| count.load(Ordering::Relaxed) as u64);
        let count = counts.sum::<u64>();
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

    /// The shard for a new client, which is counted there from now on. The first `together` clients share a
    /// shard.
    pub(super) fn place(&self, placement: Placement, together: u64) -> ShardId {
        let counts = self.clients.iter().map(|count| count.load(Ordering::Relaxed));
        let shard = placement::choose(placement, &counts.collect::<Vec<_>>(), together);
        self.clients[usize::from(shard.0)].fetch_add(1, Ordering::Relaxed);
        shard
    }

    /// Counts a client of this shard that was not placed.
    pub(super) fn came(&self) {
        self.clients[usize::from(self.here.0)].fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a client of this shard has gone.
    pub(super) fn left(&self) {
        self.clients[usize::from(self.here.0)].fetch_sub(1, Ordering::Relaxed);
    }
}
