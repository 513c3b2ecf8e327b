//! A shard's mailbox: a queue of letters from other threads, and an event that wakes it if it sleeps.

use super::Shard;
use super::listeners::Accepted;
use super::tls::MayEncrypt;
use angarium_engine::ShardId;
use angarium_journal::Done;
use angarium_node::{ReadDone, ShardBatch, SpillDone};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::sync::oneshot;

/// A message to a shard from another thread.
pub(crate) enum Letter {
    /// A disk job ended; with its duration if it was a flush.
    JobDone(Done, Option<Duration>),
    /// A read ended.
    ReadDone(ReadDone),
    /// A job of the spill log ended.
    SpillDone(SpillDone),
    /// A batch of another shard.
    ShardBatch(ShardId, ShardBatch),
    /// A client was accepted and is this shard's.
    Client(Accepted, MayEncrypt),
    /// A task for the shard's own thread.
    Task(Box<dyn FnOnce(&mut Shard) + Send>),
}

/// Sends letters to a shard.
#[derive(Clone, Debug)]
pub struct Mailbox {
    letters: Sender<Letter>,
    waker: Arc<Waker>,
}

/// Takes a shard's letters.
pub(crate) struct Inbox {
    letters: Receiver<Letter>,
    /// Found when the shard was about to sleep.
    first: Option<Letter>,
    waker: Arc<Waker>,
}

#[derive(Debug)]
struct Waker {
    event: OwnedFd,
    is_asleep: AtomicBool,
}

/// The shard has ended and does not read the letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// A shard's two ends of its mailbox.
pub(crate) fn mailbox() -> Result<(Mailbox, Inbox), String> {
    let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
        .map_err(|error| format!("cannot make an eventfd: {error}"))?;
    let waker = Arc::new(Waker { event, is_asleep: AtomicBool::new(false) });
    let (sender, receiver) = channel();
    let inbox = Inbox { letters: receiver, first: None, waker: Arc::clone(&waker) };
    Ok((Mailbox { letters: sender, waker }, inbox))
}

impl Mailbox {
    pub(crate) fn send(&self, letter: Letter) -> Result<(), Gone> {
        self.letters.send(letter).map_err(|_| Gone)?;
        // Pairs with the fence in `Inbox::fall_asleep`: either the shard sees the letter, or we see
        // that it sleeps.
        fence(Ordering::SeqCst);
        if self.waker.is_asleep.swap(false, Ordering::SeqCst) {
            // It can only fail when the counter is at its maximum: the shard is awake then.
            let _ = rustix::io::write(&self.waker.event, &1u64.to_ne_bytes());
        }
        Ok(())
    }

    /// Runs a task on the shard's own thread.
    pub fn tell(&self, task: impl FnOnce(&mut Shard) + Send + 'static) -> Result<(), Gone> {
        self.send(Letter::Task(Box::new(task)))
    }

    /// Runs a task on the shard's own thread, and waits for its result.
    pub async fn ask<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Shard) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        // The caller may have stopped waiting.
        self.ask_later(|shard, answer| drop(answer.send(task(shard)))).await
    }

    /// Runs a task on the shard's own thread, and waits for what is sent as its answer, then or later.
    pub async fn ask_later<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Shard, oneshot::Sender<T>) + Send + 'static,
    ) -> Result<T, Gone> {
        let (sender, receiver) = oneshot::channel();
        self.tell(move |shard| task(shard, sender))?;
        receiver.await.map_err(|_| Gone)
    }
}

impl Inbox {
    /// The next letter, if there is one.
    pub(crate) fn next(&mut self) -> Option<Letter> {
        self.first.take().or_else(|| self.letters.try_recv().ok())
    }

    /// Whether a letter is there.
    pub(crate) fn has_letter(&mut self) -> bool {
        self.first = self.next();
        self.first.is_some()
    }

    /// Says that the shard is about to sleep; `false`: a letter is there, so it must not.
    pub(crate) fn fall_asleep(&mut self) -> bool {
        self.waker.is_asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let must_not = self.has_letter();
        if must_not {
            self.wake_up();
        }
        !must_not
    }

    /// Says that it is awake.
    pub(crate) fn wake_up(&self) {
        self.waker.is_asleep.store(false, Ordering::SeqCst);
    }

    /// Clears the event that woke it.
    pub(crate) fn clear(&self) {
        let mut count = [0; 8];
        // Nothing to read means that it is clear already.
        let _ = rustix::io::read(&self.waker.event, &mut count);
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.event.as_fd()
    }
}
