//! The thread that carries out a spill log's work with the disk, in the order in which it comes.

use crate::hints;
use crate::reactor::{Letter, Mailbox};
use angarium_journal::Disk;
use angarium_node::{SpillJob, clear_spill};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// The thread of one shard's spill log; it starts with its first work. When this is dropped, it has
/// ended.
pub(crate) struct SpillThread {
    disk: Arc<Disk>,
    mailbox: Mailbox,
    running: Option<(Sender<SpillJob>, JoinHandle<()>)>,
}

impl SpillThread {
    /// Takes a folder for the log, and throws away what an earlier process left there.
    pub(crate) fn open(folder: &Path, mailbox: Mailbox) -> Result<SpillThread, String> {
        let complain = |error| hints::in_data_folder(folder, &error);
        let disk = Disk::open(folder).map_err(complain)?;
        clear_spill(&disk).map_err(complain)?;
        Ok(SpillThread { disk: Arc::new(disk), mailbox, running: None })
    }

    /// Has a job carried out.
    pub(crate) fn start(&mut self, job: SpillJob) {
        let (jobs, _) = self.running.get_or_insert_with(|| {
            let (jobs, receiver) = channel::<SpillJob>();
            let disk = Arc::clone(&self.disk);
            let mailbox = self.mailbox.clone();
            let thread = std::thread::Builder::new()
                .name("spill".into())
                .spawn(move || {
                    while let Ok(job) = receiver.recv() {
                        if mailbox.send(Letter::SpillDone(job.run(&*disk))).is_err() {
                            return;
                        }
                    }
                })
                .expect("the machine has room for one more thread");
            (jobs, thread)
        });
        jobs.send(job).expect("the thread ends only after its sender");
    }
}

impl Drop for SpillThread {
    fn drop(&mut self) {
        if let Some((jobs, thread)) = self.running.take() {
            drop(jobs);
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}
