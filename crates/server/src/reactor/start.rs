//! Starts a broker's shards, and waits for their end.

use super::clock::Clock;
use super::descriptors;
use super::handed_out_file::HandedOutFile;
use super::listeners;
use super::mailbox::{Inbox, Mailbox, mailbox};
use super::shard::{SPILL_FOLDER, Shard};
use crate::authenticate::Logins;
use crate::reactor::shard_directory::ShardDirectory;
use crate::settings::Settings;
use crate::spill_thread::SpillThread;
use crate::threads;
use angarium_engine::{ShardId, Time};
use angarium_journal::Storage;
use angarium_node::Node;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Makes home's node from what is stored.
pub type Recover = Box<dyn FnOnce(&dyn Storage, Time) -> Result<Node, String> + Send>;
/// Makes another shard's node from home's introduction.
pub type Join = Arc<dyn Fn(ShardId, &[Vec<u8>]) -> Result<Node, String> + Send + Sync>;

/// How shards are started.
pub struct Start {
    /// The settings.
    pub settings: Settings,
    /// How many shards.
    pub shards: usize,
    /// The broker's time.
    pub clock: Clock,
    /// What says after a kill which messages may have been handed out.
    pub handed_out: Option<HandedOutFile>,
    /// Where the journal lies.
    pub storage: Arc<dyn Storage>,
    /// Makes home's node; runs on its thread.
    pub recover: Recover,
    /// Makes the others; runs on their threads.
    pub join: Join,
}

/// A broker's running shards.
#[derive(Debug)]
pub struct Running {
    /// Their mailboxes; home's is the first.
    pub mailboxes: Arc<[Mailbox]>,
    /// Where clients connect, for people.
    pub shown: Vec<String>,
    threads: Vec<JoinHandle<()>>,
    /// It ends after all shards have.
    spill: JoinHandle<()>,
    /// For each shard that has ended, whether in order.
    endings: Receiver<bool>,
}

/// Starts shards, each on a thread of its own, and returns when clients can connect.
pub fn start(start: Start) -> Result<Running, String> {
    let (settings, shards, join) = (start.settings.clone(), start.shards, Arc::clone(&start.join));
    let (mailboxes, inboxes): (Vec<Mailbox>, Vec<Inbox>) =
        (0..shards).map(|_| mailbox()).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let mut inboxes = inboxes.into_iter();
    let clients_max = descriptors::clients_max(shards);
    if clients_max < settings.connections_max {
        let wanted = settings.connections_max;
        tracing::warn!(
            "the system has files for {clients_max} clients, not for the {wanted} of connections-max: \
             raise the limit of open files (ulimit -n, LimitNOFILE= of the service), or lower \
             connections-max"
        );
    }
    let logins = Logins::new(settings.password_checks_max);
    logins.start(1);
    let directory = ShardDirectory::new(mailboxes.into(), clients_max, logins);
    let (ended, endings) = channel();
    let (ready, is_ready) = channel();
    let clock = start.clock;

    let inbox = inboxes.next().ok_or("a broker needs a shard")?;
    let home = directory.clone();
    let run = move || match open_home(start, inbox, home, clock) {
        Ok((mut shard, opened)) => {
            if ready.send(Ok(opened)).is_ok() {
                shard.run();
            }
        }
        // The receiver waits for exactly this.
        Err(error) => drop(ready.send(Err(error))),
    };
    let mut threads = vec![spawn(ShardId::HOME, &ended, run)?];
    let opened = is_ready.recv().map_err(|_| "the shard's thread ended")??;
    let introduction = Arc::clone(&opened.introduction);
    for (at, inbox) in (1..).zip(inboxes) {
        let shard = ShardId(at);
        let (settings, directory) = (settings.clone(), directory.seen_by(shard));
        let (introduction, join) = (Arc::clone(&introduction), Arc::clone(&join));
        let spill = opened.spill.clone();
        threads.push(spawn(shard, &ended, move || {
            let node = join(shard, &introduction).expect("home introduces itself well");
            match Shard::new(node, settings, inbox, directory, clock, spill) {
                Ok(mut shard) => shard.run(),
                Err(error) => panic!("shard {at} cannot start: {error}"),
            }
        })?);
    }
    let Opened { shown, spill_thread: spill, .. } = opened;
    Ok(Running { mailboxes: directory.mailboxes, shown, threads, spill, endings })
}

impl Running {
    /// Waits for the end of all shards. An error where one of them has failed: the broker cannot go on
    /// without it.
    pub fn wait(self) -> Result<(), String> {
        for _ in &self.threads {
            if self.endings.recv() != Ok(true) {
                return Err("a shard's thread panicked".to_owned());
            }
        }
        for thread in self.threads {
            thread.join().map_err(|_| "a shard's thread panicked".to_owned())?;
        }
        self.spill.join().map_err(|_| "the spill log's thread panicked".to_owned())
    }
}

/// Starts a shard's thread, which says when it ends whether it does so in order.
fn spawn(
    shard: ShardId,
    ended: &Sender<bool>,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, String> {
    let ended = ended.clone();
    threads::spawn(format!("shard-{}", shard.0), move || {
        let is_in_order = catch_unwind(AssertUnwindSafe(run)).is_ok();
        // The receiver may be gone.
        let _ = ended.send(is_in_order);
    })
}

/// What home returns once it is open.
struct Opened {
    shown: Vec<String>,
    introduction: Arc<Vec<Vec<u8>>>,
    spill: SpillThread,
    spill_thread: JoinHandle<()>,
}

fn open_home(
    start: Start,
    inbox: Inbox,
    directory: ShardDirectory,
    clock: Clock,
) -> Result<(Shard, Opened), String> {
    let Start { settings, storage, recover, handed_out, .. } = start;
    // Ports are taken before the store is read, so that one in use is reported immediately, and opened
    // after it, so that no client is cut off by a store that cannot be read.
    let bound = listeners::bind_all(&settings)?;
    let mut node = recover(&*storage, clock.now())?;
    let folder = settings.data.join(SPILL_FOLDER);
    let mailboxes = Arc::clone(&directory.mailboxes);
    let (spill, spill_thread) = SpillThread::start(&folder, node.spill_store(), mailboxes)?;
    let introduction = Arc::new(node.introduction());
    let mut shard = Shard::new(node, settings.clone(), inbox, directory, clock, spill.clone())?;
    let listeners = listeners::listen_all(bound, &settings)?;
    let shown = listeners.iter().map(|listener| listener.shown.clone()).collect();
    shard.open(storage, listeners, handed_out)?;
    Ok((shard, Opened { shown, introduction, spill, spill_thread }))
}
