//! Threads that hash passwords, started with the first check; the number of threads and of waiting checks is
//! limited.

use super::password;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

/// Checks that wait for a thread; beyond it clients are refused at once.
const WAITING_MAX: usize = 4_096;

/// A password to be checked.
#[derive(Clone, Debug)]
pub struct Check {
    /// The user it is said to belong to.
    pub user: String,
    /// The password.
    pub password: String,
    /// The user's hash, if there is such a user.
    pub stored: Option<String>,
}

/// A check that ended.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What was checked.
    pub check: Check,
    /// Whether it was right.
    pub right: bool,
}

type Work = (Check, Box<dyn FnOnce(Checked) + Send>);

/// The threads.
#[derive(Debug)]
pub struct Threads {
    count: u64,
    queue: Option<SyncSender<Work>>,
}

impl Threads {
    /// At most `count` of them, started with the first check.
    #[must_use]
    pub fn new(count: u64) -> Threads {
        Threads { count, queue: None }
    }

    /// Has a password checked; `then` runs on one of the threads. `false`: too many wait already.
    pub fn check(&mut self, check: Check, then: impl FnOnce(Checked) + Send + 'static) -> bool {
        let count = self.count;
        let queue = self.queue.get_or_insert_with(|| start(count));
        queue.try_send((check, Box::new(then))).is_ok()
    }
}

fn start(count: u64) -> SyncSender<Work> {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    for number in 0..count {
        let receiver = Arc::clone(&receiver);
        let spawned = std::thread::Builder::new()
            .name(format!("password-{number}"))
            .spawn(move || work(&receiver));
        if let Err(error) = spawned {
            tracing::error!(%error, "cannot start a thread for password checks");
        }
    }
    sender
}

fn work(receiver: &Mutex<Receiver<Work>>) {
    loop {
        let next = receiver.lock().expect("no holder panics").recv();
        let Ok((check, then)) = next else { return };
        let right = password::is_right(&check.password, check.stored.as_deref());
        then(Checked { check, right });
    }
}
