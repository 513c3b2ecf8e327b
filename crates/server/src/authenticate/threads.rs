//! Threads that hash passwords, started with the first check; the number of threads and of waiting checks is
//! limited.

use super::password;
use crate::threads;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};

/// Checks that wait for a thread; clients beyond it are refused.
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

/// Gets a check, and whether the password was right; nothing if too many wait already.
type Then = Box<dyn FnOnce(Check, Option<bool>) + Send>;

/// The threads.
#[derive(Debug)]
pub struct Threads {
    count: u64,
    queue: Option<SyncSender<(Check, Then)>>,
}

impl Threads {
    /// At most `count` of them, started with the first check.
    pub fn new(count: u64) -> Threads {
        Threads { count, queue: None }
    }

    /// Has a password checked. `then` gets whether it was right, on one of the threads; it gets nothing, on
    /// this one, if too many wait already.
    pub fn check(&mut self, check: Check, then: impl FnOnce(Check, Option<bool>) + Send + 'static) {
        let queue = self.queue.get_or_insert_with(|| start(self.count));
        if let Err(refused) = queue.try_send((check, Box::new(then))) {
            let (TrySendError::Full((check, then)) | TrySendError::Disconnected((check, then))) =
                refused;
            then(check, None);
        }
    }
}

fn start(count: u64) -> SyncSender<(Check, Then)> {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    for number in 0..count {
        let receiver = Arc::clone(&receiver);
        if let Err(error) = threads::spawn(format!("password-{number}"), move || work(&receiver)) {
            tracing::error!(%error, "no thread for password checks");
        }
    }
    sender
}

fn work(receiver: &Mutex<Receiver<(Check, Then)>>) {
    loop {
        let next = receiver.lock().expect("no holder panics").recv();
        let Ok((check, then)) = next else { return };
        let right = password::is_right(&check.password, check.stored.as_deref());
        then(check, Some(right));
    }
}
