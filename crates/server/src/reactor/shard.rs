//! A shard: its turn, and how it ends.

use super::certificates::{CertificateReview, Certificates};
use super::clients::Clients;
use super::clock::Clock;
use super::connection_rate::ConnectionRate;
use super::histogram::Histogram;
use super::listeners::Listener;
use super::logins::Refusals;
use super::mailbox::{Inbox, Letter, Mailbox};
use super::watchdog::{Step, Watchdog};
use crate::journal_threads::JournalThreads;
use crate::logs::OncePerSecond;
use crate::reactor::admin_replies::AdminReplies;
use crate::reactor::busy_poll::{BusyPoll, Party};
use crate::reactor::handed_out_file::HandedOutFile;
use crate::reactor::input_coalescing::InputCoalescing;
use crate::reactor::parallel_send;
use crate::reactor::read_budget::{READ_BYTES_MAX, ReadBudget};
use crate::reactor::shard_directory::ShardDirectory;
use crate::reactor::slow_consumer_log::SlowConsumers;
use crate::reactor::storage_alerts::StorageAlerts;
use crate::reactor::told_topics::ToldTopics;
use crate::settings::Settings;
use crate::spill_thread::SpillThread;
use angarium_engine::{ConnectionId, ShardId, Time};
use angarium_journal::Storage;
use angarium_node::{Node, SHARD_BATCH_BYTES};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Most events of one turn.
const EVENTS_MAX: usize = 1_024;
/// Most letters opened in a row.
const LETTERS_PER_TURN: usize = 256;
/// Clients sent to between two readings of the clock.
const SENDS_PER_STEP: usize = 8;
/// Bytes offered to clients between two readings of the clock.
const SENT_BYTES_PER_STEP: usize = 256 << 10;
/// A client with more unsent bytes is sent some of them after all clients with less.
const BULKY_BYTES: usize = 32 << 10;
/// Bytes that such clients together are sent in a turn, or somewhat more.
const BULKY_BYTES_PER_TURN: usize = 4 << 20;
/// A timeout with which epoll does not wait.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Where in the data folder the spill logs lie.
pub(super) const SPILL_FOLDER: &str = "spill";

/// What epoll reports an event for, in the upper half of its data.
pub(super) const CLIENT: u64 = 0;
pub(super) const LISTENER: u64 = 1 << 32;
const INBOX: u64 = 2 << 32;

/// The reactor's counters.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Turns of the loop.
    pub turns: u64,
    /// Connections refused because there were too many.
    pub refused: u64,
    /// TLS handshakes that failed.
    pub handshakes_failed: u64,
    /// Steps of turns that took more than a millisecond although they had a processor for less.
    pub held_up_steps: u64,
    /// Other steps of more than a millisecond.
    pub slow_steps: u64,
    /// Their total time, in microseconds.
    pub slow_step_micros: u64,
    /// How long flushes of the journal took.
    pub flush_times: Histogram,
}

/// One shard.
pub struct Shard {
    pub(crate) node: Node,
    /// The time of this turn.
    pub(crate) now: Time,
    pub(crate) settings: Settings,
    pub(super) clients: Clients,
    pub(crate) counters: Counters,
    pub(super) epoll: OwnedFd,
    pub(super) block: Vec<u8>,
    pub(super) read_budget: ReadBudget,
    pub(super) plain: Vec<u8>,
    /// Home's, where all clients are accepted.
    pub(super) certificates: Option<Certificates>,
    /// When it last looked at their files without a client's coming.
    pub(super) looked_for_certificates: Time,
    /// Clients whose certificates are being judged anew.
    pub(super) certificate_review: CertificateReview,
    pub(super) complaints: OncePerSecond,
    /// When a queue with too few copies was last logged.
    lacking_copies: OncePerSecond,
    pub(super) clock: Clock,
    pub(super) listeners: Vec<Listener>,
    pub(super) accept_again_at: Option<Time>,
    /// Home's, where all clients are accepted.
    pub(super) connection_rate: ConnectionRate,
    inbox: Inbox,
    pub(super) mailbox: Mailbox,
    pub(super) directory: ShardDirectory,
    /// Other shards that may still have clients; home's.
    serving_shards: usize,
    /// Home's.
    journal: Option<JournalThreads>,
    handed_out: Option<HandedOutFile>,
    spill: SpillThread,
    pub(super) admin_replies: AdminReplies,
    pub(super) refusals: Refusals,
    /// Clients that are sent to, each once; empty between turns.
    flushing: Vec<ConnectionId>,
    /// Clients with much unsent output, in the order in which they are sent some of it.
    bulky: VecDeque<ConnectionId>,
    pub(super) coalescing: InputCoalescing,
    /// How long input is to gather before sockets are served again.
    gather_for: Option<Duration>,
    pub(super) busy_poll: BusyPoll,
    /// Threads that may help to send in parallel.
    pub(super) helpers: usize,
    storage_alerts: StorageAlerts,
    /// When it gives memory back next, where the system refuses it.
    pub(super) gives_back_at: Time,
    slow_consumers: SlowConsumers,
    pub(super) watchdog: Watchdog,
    pub(super) broker_topics: ToldTopics,
    pub(super) stage: Stage,
}

/// How far a shard's life has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Serving,
    /// Clients have been asked to go; those still there at this time are cut off.
    Draining(Time),
    /// Its clients are gone. Clients of other shards may still wait for its answers.
    Drained,
    /// The last checkpoint is being written.
    Closing,
    Closed,
}

impl Shard {
    /// A shard that does not accept clients yet.
    pub(super) fn new(
        node: Node,
        settings: Settings,
        inbox: Inbox,
        directory: ShardDirectory,
        clock: Clock,
        spill: SpillThread,
    ) -> Result<Shard, String> {
        // Home accepts all clients and so reads the certificates; it logs their changes once.
        let has_certificates = node.is_home() && settings.has_certificate();
        let certificates =
            if has_certificates { Some(Certificates::load(&settings)?) } else { None };
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| format!("cannot make an epoll: {error}"))?;
        epoll::add(&epoll, &inbox, epoll::EventData::new_u64(INBOX), epoll::EventFlags::IN)
            .map_err(|error| format!("cannot watch the mailbox: {error}"))?;
        Ok(Shard {
            node,
            now: clock.now(),
            settings,
            clients: Clients::default(),
            counters: Counters::default(),
            epoll,
            block: vec![0; READ_BYTES_MAX],
            read_budget: ReadBudget::default(),
            plain: Vec::new(),
            certificates,
            looked_for_certificates: clock.now(),
            certificate_review: CertificateReview::default(),
            complaints: OncePerSecond::default(),
            lacking_copies: OncePerSecond::default(),
            clock,
            listeners: Vec::new(),
            accept_again_at: None,
            connection_rate: ConnectionRate::default(),
            inbox,
            journal: None,
            handed_out: None,
            spill,
            mailbox: directory.own().clone(),
            serving_shards: directory.count() - 1,
            helpers: parallel_send::helpers(directory.count()),
            directory,
            admin_replies: AdminReplies::default(),
            refusals: Refusals::default(),
            flushing: Vec::new(),
            bulky: VecDeque::new(),
            coalescing: InputCoalescing::default(),
            gather_for: None,
            busy_poll: BusyPoll::default(),
            storage_alerts: StorageAlerts::default(),
            gives_back_at: Time(0),
            slow_consumers: SlowConsumers::default(),
            watchdog: Watchdog::default(),
            broker_topics: ToldTopics::default(),
            stage: Stage::Serving,
        })
    }

    /// Opens the journal's storage and the listeners for clients of all shards.
    pub(super) fn open(
        &mut self,
        storage: Arc<dyn Storage>,
        listeners: Vec<Listener>,
        handed_out: Option<HandedOutFile>,
    ) -> Result<(), String> {
        self.handed_out = handed_out;
        let marks = self.node.take_handed_out();
        if let Some(file) = &mut self.handed_out {
            file.begin(marks);
        }
        self.journal = Some(JournalThreads::new(storage, self.mailbox.clone())?);
        self.listeners = listeners;
        self.watch_listeners(true);
        self.begin_broker_topics();
        Ok(())
    }

    /// Whether it takes clients.
    pub fn is_serving(&self) -> bool {
        self.stage == Stage::Serving
    }

    /// Begins to end: accepts no more clients and tells the present ones why; then the last checkpoint.
    pub fn drain(&mut self) {
        if self.stage != Stage::Serving {
            return;
        }
        if self.node.is_home() {
            self.directory.tell_others(|shard| shard.drain());
        }
        self.watch_listeners(false);
        self.listeners.clear();
        self.stage = Stage::Draining(self.now.plus(self.settings.drain_timeout.0));
        self.node.shutdown(self.now, "the broker is shutting down");
    }

    /// Takes changed settings over that can change while it runs; at home, for all shards.
    pub fn reload(&mut self, settings: Settings) {
        if self.node.is_home() {
            let same = settings.clone();
            self.directory.tell_others(move |shard| shard.reload(same));
        }
        if let Some(certificates) = &mut self.certificates {
            certificates.reload(&settings);
        }
        self.settings = settings;
    }

    /// Turns until the end.
    pub(super) fn run(&mut self) {
        let (mut events, mut handled) = (Vec::with_capacity(EVENTS_MAX), 0);
        while self.stage != Stage::Closed {
            if handled == events.len() {
                self.wait(&mut events);
                handled = 0;
            }
            handled += self.turn(&events[handled..]);
            // The rest may be for a client that is gone by then, with another one in its slot: epoll
            // reports the end of a client again.
            for event in &mut events[handled..] {
                let flags = event.flags;
                event.flags = flags & (epoll::EventFlags::IN | epoll::EventFlags::OUT);
            }
        }
    }

    /// Sleeps until something happens or is due.
    fn wait(&mut self, events: &mut Vec<epoll::Event>) {
        events.clear();
        let is_busy = self.node.has_work()
            || self.node.has_dirty()
            || !self.bulky.is_empty()
            || self.certificate_review.is_under_way();
        if let (Some(pause), false) = (self.gather_for.take(), is_busy) {
            self.let_input_gather(pause);
        }
        if !is_busy && self.poll(events) {
            return;
        }
        let timeout = match (is_busy || !self.inbox.fall_asleep(), self.deadline()) {
            (true, _) => Some(Duration::ZERO),
            (false, None) => None,
            (false, Some(due)) => Some(due.since(self.clock.now())),
        };
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("epoll_wait on an own descriptor: {error}"),
        }
        self.inbox.wake_up();
    }

    /// Polls for events and letters for a moment if an answer is likely to come; says whether there were
    /// any. Other shards take it to be awake and need not wake it.
    fn poll(&mut self, events: &mut Vec<epoll::Event>) -> bool {
        let Some(span) = self.busy_poll.span() else { return false };
        if self.deadline().is_some_and(|due| due <= self.clock.now()) {
            return false;
        }
        let Shard { epoll, clock, inbox, busy_poll, .. } = self;
        let look = || {
            // The client that is to answer may be scheduled on the same processor.
            std::thread::yield_now();
            let found = epoll::wait(&*epoll, spare_capacity(events), Some(&NOW));
            inbox.has_letter() || found.is_ok_and(|count| count > 0)
        };
        busy_poll.poll(span, look, || clock.now())
    }

    /// Waits for letters alone, at most as long as input may gather: sockets wait, other threads do not.
    fn let_input_gather(&mut self, pause: Duration) {
        if self.inbox.fall_asleep() {
            let mut letters = [PollFd::new(&self.inbox, PollFlags::IN)];
            let pause = Timespec::try_from(pause).unwrap_or(NOW);
            // An interrupted wait only ends earlier.
            let _ = rustix::event::poll(&mut letters, Some(&pause));
            self.inbox.wake_up();
        }
    }

    /// Handles events, as many as there is time for, and what follows from them. Returns how many.
    fn turn(&mut self, events: &[epoll::Event]) -> usize {
        let mut handled = 0;
        self.now = self.clock.now();
        self.counters.turns += 1;
        self.watchdog.begin(self.now);
        if self.watchdog.deadline().is_some() {
            self.name_slow_step();
        }
        // A shard that slept may not know that there is memory again.
        self.watch_memory();
        if self.open_letters() {
            self.watch_step(Step::Letters);
        }
        self.watchdog.begin_sockets();
        while handled < events.len() && !self.watchdog.is_time_up() {
            let event = events[handled];
            handled += 1;
            let data = event.data.u64();
            let index = (data & u64::from(u32::MAX)) as usize;
            match data - index as u64 {
                CLIENT => {
                    self.client_ready(index, event.flags);
                    self.watch_step(Step::Client(index));
                    // A disk that has ended a flush gets the next one now, not after the other clients.
                    if self.open_letters() {
                        self.hand_out();
                        self.watch_step(Step::Letters);
                    }
                }
                LISTENER => {
                    self.accept(index);
                    self.watch_step(Step::Accept);
                }
                _ => self.inbox.clear(),
            }
        }
        if self.do_what_is_due() {
            self.watch_step(Step::Due);
        }
        self.review_certificates();
        let gone = self.take_last_input();
        self.watch_memory();
        self.node.end_turn(self.now);
        self.watch_step(Step::EndTurn);
        if self.node.is_home() {
            self.storage_alerts.look(&mut self.node);
            self.question_clients();
        }
        self.slow_consumers.look(&mut self.node);
        self.hand_out();
        self.send_batches();
        self.flush();
        self.drop_clients(gone);
        // Clients that were sent all they had in memory need more from the disk.
        self.hand_out_spill();
        self.resume_paused();
        self.go_on_ending();
        self.send_batches();
        self.watch_step(Step::Rest);
        self.busy_poll.end_turn(self.now);
        let messages = || self.node.engine().taken();
        self.gather_for = self.coalescing.end_turn(self.now, messages);
        handled
    }

    /// Opens letters that have come; says whether there were any.
    fn open_letters(&mut self) -> bool {
        let mut weight = 0;
        // Further letters are for the next turn, as are those after a full batch of another shard, which
        // may go to as many subscribers as input of a client, or after a task: a long listing sends one
        // task after the other.
        for at in 0..LETTERS_PER_TURN {
            let Some(letter) = self.inbox.next() else { return at > 0 };
            weight += match &letter {
                Letter::ShardBatch(_, batch) => batch.weight(),
                Letter::Task(_) => SHARD_BATCH_BYTES,
                _ => 0,
            };
            self.open_letter(letter);
            if weight >= SHARD_BATCH_BYTES {
                break;
            }
        }
        true
    }

    fn open_letter(&mut self, letter: Letter) {
        match letter {
            Letter::JobDone(done, flush_took) => {
                self.came_back();
                if let Some(took) = flush_took {
                    self.counters.flush_times.count(took);
                }
                self.node.job_done(self.now, done);
            }
            Letter::ReadDone(done) => {
                self.came_back();
                self.node.read_done(self.now, done);
            }
            Letter::SpillDone(done) => self.node.spill_mut().done(done),
            Letter::ShardBatch(from, batch) => {
                self.busy_poll.received(Party::Shard(from));
                self.node.arrived(self.now, from, batch);
            }
            Letter::Client(accepted, tls) => self.take_client(accepted, tls),
            Letter::Task(task) => task(self),
        }
    }

    fn came_back(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.came_back();
        }
    }

    /// Sends other shards their batches.
    fn send_batches(&mut self) {
        self.keep_handed_out();
        while let Some((to, batch)) = self.node.next_batch() {
            self.busy_poll.sent(Party::Shard(to));
            self.directory.send(to, Letter::ShardBatch(self.directory.here, batch));
        }
    }

    /// Hands the spill's jobs to its thread.
    fn hand_out_spill(&mut self) {
        while let Some(job) = self.node.spill_mut().next_job() {
            self.spill.carry_out(self.directory.here, job);
        }
    }

    /// Hands work to the threads that may block, and answers to administration requests.
    fn hand_out(&mut self) {
        self.answer_admin_requests();
        while let Some(verification) = self.node.next_verification() {
            self.verify(verification);
        }
        while let Some(why) = self.node.next_refused_login() {
            self.complain(&why);
        }
        while let Some((vhost, queue)) = self.node.next_lacking_copies() {
            if let Some(held_back) = self.lacking_copies.pass(std::time::Instant::now()) {
                tracing::warn!(
                    queue,
                    vhost,
                    held_back,
                    "a quorum queue was declared: this broker is one node, so it has one copy"
                );
            }
        }
        self.hand_out_spill();
        let Some(journal) = &mut self.journal else { return };
        while let Some(job) = self.node.next_job() {
            journal.start(job);
        }
        while let Some(read) = self.node.next_read() {
            journal.read(read);
        }
    }

    /// Notes what is about to be handed out where a kill does not reach it; nothing is sent before.
    #[inline]
    pub(super) fn keep_handed_out(&mut self) {
        if self.node.engine().has_handed_out() {
            let marks = self.node.take_handed_out();
            if let Some(file) = &mut self.handed_out {
                file.keep(&marks);
            }
        }
    }

    /// Sends clients their output, each once: all with little, and some of those with much.
    fn flush(&mut self) {
        self.keep_handed_out();
        let mut flushing = std::mem::take(&mut self.flushing);
        self.node.take_dirty(&mut flushing);
        self.read_budget.end_turn(flushing.len(), self.node.engine().taken());
        let Shard { node, clients, bulky, .. } = self;
        flushing.retain(|id| {
            let is_bulky = node.unsent(*id) > BULKY_BYTES;
            if is_bulky && clients.begins_to_wait(*id) {
                bulky.push_back(*id);
            }
            !is_bulky
        });
        self.send_in_parallel(&flushing);
        let mut sent = 0;
        for (at, id) in (1..).zip(flushing.drain(..)) {
            sent += self.clients.index_of(id).map_or(0, |index| self.send(index));
            if at % SENDS_PER_STEP == 0 || sent >= SENT_BYTES_PER_STEP {
                self.watch_step(Step::Send(id));
                sent = 0;
            }
        }
        // Output that became ready meanwhile goes in the next turn, which follows immediately.
        self.flushing = flushing;
        self.flush_bulky();
    }

    /// Sends to some of the clients with much output, longest waiting first: input, and clients with little
    /// output, do not wait for all of them.
    fn flush_bulky(&mut self) {
        let mut sent = 0;
        for _ in 0..self.bulky.len() {
            if sent >= BULKY_BYTES_PER_TURN {
                break;
            }
            let Some(id) = self.bulky.pop_front() else { break };
            self.clients.has_waited(id);
            sent += self.clients.index_of(id).map_or(0, |index| self.send(index));
            self.watch_step(Step::Send(id));
        }
    }

    /// Continues to end. All shards stay until the clients of all are gone: their last input may be for
    /// queues, or be answered when all shards know of it.
    fn go_on_ending(&mut self) {
        if let Stage::Draining(until) = self.stage
            && (self.node.is_drained() || self.now >= until)
        {
            self.close_all();
            self.stage = Stage::Drained;
            if !self.node.is_home() {
                self.send_batches();
                let task = |home: &mut Shard| home.serving_shards -= 1;
                self.directory.send(ShardId::HOME, Letter::Task(Box::new(task)));
            }
        }
        if self.stage == Stage::Drained && self.node.is_home() && self.serving_shards == 0 {
            self.directory.tell_others(Shard::close);
            self.close();
        }
        if self.stage == Stage::Closing {
            self.hand_out();
            if self.journal.as_ref().is_none_or(JournalThreads::are_idle) {
                self.stage = Stage::Closed;
            }
        }
    }

    /// Closes the node, when all clients of all shards are gone.
    fn close(&mut self) {
        self.node.close(self.now);
        self.stage = Stage::Closing;
    }
}
