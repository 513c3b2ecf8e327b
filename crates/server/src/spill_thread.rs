//! The thread that owns the store of all shards' spill logs, and carries out their work with the disk in the
//! order in which it comes.

use crate::hints;
use crate::reactor::{Letter, Mailbox};
use crate::threads;
use angarium_engine::ShardId;
use angarium_journal::Disk;
use angarium_node::{SpillJob, SpillStore, clear_spill};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// Hands work to the thread, which ends with the last of these.
#[derive(Clone)]
pub(crate) struct SpillThread(Sender<(ShardId, SpillJob)>);

impl SpillThread {
    /// Takes a folder for the store, throws away what an earlier process left there, and starts the
    /// thread. The shards' mailboxes are in their order.
    pub(crate) fn start(
        folder: &Path,
        mut store: SpillStore,
        mailboxes: Arc<[Mailbox]>,
    ) -> Result<(SpillThread, JoinHandle<()>), String> {
        let complain = |error| hints::in_data_folder(folder, &error);
        let disk = Disk::open(folder).map_err(complain)?;
        clear_spill(&disk).map_err(complain)?;
        let (jobs, receiver) = channel::<(ShardId, SpillJob)>();
        let run = move || {
            for (shard, job) in receiver {
                let done = store.run(job, &disk);
                // A shard that has ended needs no answer.
                let _ = mailboxes[usize::from(shard.0)].send(Letter::SpillDone(done));
            }
        };
        Ok((SpillThread(jobs), threads::spawn("spill", run)?))
    }

    /// Has a shard's job carried out.
    pub(crate) fn carry_out(&self, shard: ShardId, job: SpillJob) {
        self.0.send((shard, job)).expect("the thread ends only after its senders");
    }
}
