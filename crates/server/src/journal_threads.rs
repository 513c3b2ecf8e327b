//! Threads that carry out a journal's work: one lane for each kind, so that neither a checkpoint nor
//! a cold read delays a flush that a producer waits for.

use crate::reactor::{Letter, Mailbox};
use crate::threads;
use angarium_journal::{Job, JobKind, ReadBuffer, Storage};
use angarium_node::ReadJob;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

enum Work {
    Job(Job),
    Read(ReadJob),
}

/// One thread and its work.
struct Lane {
    work: Sender<Work>,
    thread: JoinHandle<()>,
}

/// The lanes of one journal; the thread for flushes is there from the beginning, each other one starts with
/// its first work. Where the system refuses one, flushes share their thread with its work until it does
/// not. Dropping this waits for their end, so that another broker can take the storage.
pub(crate) struct JournalThreads {
    storage: Arc<dyn Storage>,
    mailbox: Mailbox,
    lanes: [Option<Lane>; 4],
    /// A thread was refused, and that was said.
    is_short: bool,
    /// Jobs and reads whose results are not back.
    outstanding: usize,
}

/// The lane for flushes.
const FLUSHES: usize = 0;
const LANES: [&str; 4] = ["journal-flush", "journal-space", "checkpoint", "journal-read"];

impl JournalThreads {
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        mailbox: Mailbox,
    ) -> Result<JournalThreads, String> {
        let mut lanes = [const { None }; 4];
        lanes[FLUSHES] = Some(Lane::start(FLUSHES, &storage, &mailbox)?);
        Ok(JournalThreads { storage, mailbox, lanes, is_short: false, outstanding: 0 })
    }

    /// Has a job carried out.
    pub(crate) fn start(&mut self, job: Job) {
        let lane = match job.kind() {
            JobKind::Flush => FLUSHES,
            JobKind::Space => 1,
            JobKind::Checkpoint => 2,
        };
        self.hand_over(lane, Work::Job(job));
    }

    /// Has records read.
    pub(crate) fn read(&mut self, read: ReadJob) {
        self.hand_over(3, Work::Read(read));
    }

    /// A result came back.
    pub(crate) fn came_back(&mut self) {
        self.outstanding -= 1;
    }

    /// Whether nothing is under way.
    pub(crate) fn are_idle(&self) -> bool {
        self.outstanding == 0
    }

    fn hand_over(&mut self, lane: usize, work: Work) {
        self.outstanding += 1;
        if self.lanes[lane].is_none() {
            match Lane::start(lane, &self.storage, &self.mailbox) {
                Ok(started) => self.lanes[lane] = Some(started),
                Err(error) if !self.is_short => {
                    self.is_short = true;
                    let thread = LANES[lane];
                    tracing::warn!(thread, error, "its work is done by the thread for flushes");
                }
                Err(_) => {}
            }
        }
        let lane = self.lanes[lane].as_ref().or(self.lanes[FLUSHES].as_ref());
        let lane = lane.expect("the one for flushes is there");
        lane.work.send(work).expect("a lane ends only after its sender");
    }
}

impl Lane {
    fn start(lane: usize, storage: &Arc<dyn Storage>, mailbox: &Mailbox) -> Result<Lane, String> {
        let (work, receiver) = channel();
        let (storage, mailbox) = (Arc::clone(storage), mailbox.clone());
        let run = move || work_off(&receiver, &*storage, &mailbox);
        Ok(Lane { work, thread: threads::spawn(LANES[lane], run)? })
    }
}

impl Drop for JournalThreads {
    fn drop(&mut self) {
        for lane in self.lanes.iter_mut().filter_map(Option::take) {
            drop(lane.work);
            // One that panicked has said so.
            let _ = lane.thread.join();
        }
    }
}

fn work_off(receiver: &Receiver<Work>, storage: &dyn Storage, mailbox: &Mailbox) {
    let mut buffer = ReadBuffer::default();
    while let Ok(work) = receiver.recv() {
        let letter = match work {
            Work::Job(job) => {
                let is_flush = job.kind() == JobKind::Flush;
                let started = Instant::now();
                let done = job.run(storage);
                Letter::JobDone(done, is_flush.then(|| started.elapsed()))
            }
            Work::Read(read) => Letter::ReadDone(read.run(storage, &mut buffer)),
        };
        if mailbox.send(letter).is_err() {
            return;
        }
    }
}
