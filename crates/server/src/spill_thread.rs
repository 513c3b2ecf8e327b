//! The thread that owns the store of all shards' spill logs, and carries out their work with the disk in the
//! order in which it comes.

use crate::hints;
use crate::reactor::{Letter, Mailbox};
use angarium_engine::ShardId;
use angarium_journal::Disk;
use angarium_node::{SpillJob, SpillStore, clear_spill};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Hands work to the thread, which ends when nobody can any more.
#[derive(Clone)]
pub(crate) struct SpillThread(Sender<(ShardId, SpillJob)>);

impl SpillThread {
    /// Takes a folder for the store, throws away what an earlier process left there, and starts the
    /// thread. The shards' mailboxes are in their order.
    pub(crate) fn start(
        folder: &Path,
        store: SpillStore,
        mailboxes: Vec<Mailbox>,
    ) -> Result<(SpillThread, JoinHandle<()>), String> {
        let complain = |error| hints::in_data_folder(folder, &error);
        let disk = Disk::open(folder).map_err(complain)?;
        clear_spill(&disk).map_err(complain)?;
        let (jobs, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("spill".into())
            .spawn(move || carry_out(&receiver, store, &disk, &mailboxes))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok((SpillThread(jobs), thread))
    }

    /// Has a shard's job carried out.
    pub(crate) fn carry_out(&self, shard: ShardId, job: SpillJob) {
        self.0.send((shard, job)).expect("the thread ends only after its senders");
    }
}

fn carry_out(
    jobs: &Receiver<(ShardId, SpillJob)>,
    mut store: SpillStore,
    disk: &Disk,
    mailboxes: &[Mailbox],
) {
    while let Ok((shard, job)) = jobs.recv() {
        let done = store.run(job, disk);
        // Nobody waits for it where the shard has ended.
        let _ = mailboxes[usize::from(shard.0)].send(Letter::SpillDone(done));
    }
}
