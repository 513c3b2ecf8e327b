//! The load: producers with confirms, consumers that acknowledge or put back, transactions over two
//! queues, and a mover that takes from one queue and gives to another in one step.

use crate::history::{History, Id, Session, Settled, body, identify};
use crate::random::Random;
use crate::wire::{Client, Event, PATIENCE};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The queues, all durable.
pub(crate) const QUEUES: &[&str] =
    &["plain", "backlog", "fan0", "fan1", "tx0", "tx1", "work", "done"];
/// The exchange that copies to `fan0` and `fan1`.
const FAN: &str = "fan";
/// Producers with confirms: number, exchange, routing key, queues.
const PRODUCERS: &[(u32, &str, &str, &[&str])] = &[
    (0, "", "plain", &["plain"]),
    (1, "", "plain", &["plain"]),
    (2, "", "backlog", &["backlog"]),
    (3, FAN, "", &["fan0", "fan1"]),
    (4, "", "work", &["work"]),
];
/// The producer whose messages come in transactions.
const TRANSACTOR: u32 = 5;
/// How many of its messages form one.
const TRANSACTION: u64 = 3;

/// What all threads share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// Where the broker is.
    pub(crate) address: SocketAddr,
    /// What happened.
    pub(crate) history: Arc<Mutex<History>>,
    /// The broker may vanish from now on.
    pub(crate) ending: Arc<AtomicBool>,
}

/// Why a thread stopped.
enum Stop {
    /// The connection ended.
    Lost(io::Error),
    /// A promise is broken.
    Broken(String),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Lost(error)
    }
}

impl From<String> for Stop {
    fn from(text: String) -> Stop {
        Stop::Broken(text)
    }
}

impl Shared {
    /// The history, for a moment.
    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().expect("no thread panics while it holds the history")
    }

    /// Runs a part of the load until the broker goes; the error is a broken promise.
    fn judge(&self, name: &str, result: Result<(), Stop>) -> Result<(), String> {
        match result {
            Ok(()) => Ok(()),
            Err(Stop::Lost(_)) if self.ending.load(Ordering::SeqCst) => Ok(()),
            Err(Stop::Lost(error)) => Err(format!("{name}: lost its connection: {error}")),
            Err(Stop::Broken(text)) => Err(format!("{name}: {text}")),
        }
    }
}

/// Declares everything and enters the producers into the history.
pub(crate) fn prepare(shared: &Shared) -> io::Result<()> {
    let mut client = Client::connect(shared.address)?;
    for queue in QUEUES {
        client.declare_queue(queue)?;
    }
    client.declare_fanout(FAN)?;
    client.bind("fan0", FAN)?;
    client.bind("fan1", FAN)?;
    let mut history = shared.history();
    for (number, _, _, queues) in PRODUCERS {
        history.producers.entry(*number).or_default().queues = queues.to_vec();
    }
    let transactor = history.producers.entry(TRANSACTOR).or_default();
    transactor.queues = vec!["tx0", "tx1"];
    transactor.transaction = TRANSACTION;
    Ok(())
}

/// A part of the load, to be run on a thread of its own.
pub(crate) type Part = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// All parts of the load.
pub(crate) fn parts(shared: &Shared, random: &mut Random) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (number, exchange, key, _) in PRODUCERS {
        let (shared, random) = (shared.clone(), random.fork());
        parts.push(Box::new(move || {
            let result = produce(&shared, *number, exchange, key, random);
            shared.judge(&format!("producer {number}"), result)
        }));
    }
    for queue in ["plain", "plain", "fan0"] {
        let (shared, random) = (shared.clone(), random.fork());
        parts.push(Box::new(move || {
            let result = consume(&shared, queue, random);
            shared.judge(&format!("consumer of {queue}"), result)
        }));
    }
    let this = shared.clone();
    parts.push(Box::new(move || this.judge("transactor", transact(&this))));
    let this = shared.clone();
    parts.push(Box::new(move || this.judge("mover", move_work(&this))));
    parts
}

/// Publishes with a window of unconfirmed messages.
fn produce(
    shared: &Shared,
    number: u32,
    exchange: &str,
    key: &str,
    mut random: Random,
) -> Result<(), Stop> {
    let mut client = Client::connect(shared.address)?;
    client.select_confirms()?;
    let window = 1 + random.below(300) as usize;
    // Messages of this connection that are not confirmed, with the number of the first one's confirm.
    let mut unconfirmed: VecDeque<Option<u64>> = VecDeque::new();
    let mut first_tag = 1;
    loop {
        for _ in 0..=random.below(20) {
            let message = {
                let mut history = shared.history();
                let producer = history.producers.get_mut(&number).ok_or("unknown".to_string())?;
                producer.attempted += 1;
                producer.attempted - 1
            };
            client.publish(exchange, key, &body((number, message)));
            unconfirmed.push_back(Some(message));
        }
        while unconfirmed.len() >= window {
            let event = client.next()?;
            confirm(shared, number, event, &mut unconfirmed, &mut first_tag)?;
        }
        if let Some(event) = client.next_within(Duration::from_micros(1))? {
            confirm(shared, number, event, &mut unconfirmed, &mut first_tag)?;
        }
    }
}

/// Enters what a confirm says.
fn confirm(
    shared: &Shared,
    number: u32,
    event: Event,
    unconfirmed: &mut VecDeque<Option<u64>>,
    first_tag: &mut u64,
) -> Result<(), Stop> {
    let (tag, multiple) = match event {
        Event::Confirm { tag, multiple, positive: true } => (tag, multiple),
        Event::Closed { code, text } => {
            return Err(io::Error::other(format!("{code} {text}")).into());
        }
        other => return Err(format!("unexpected: {other:?}").into()),
    };
    if tag < *first_tag || tag - *first_tag >= unconfirmed.len() as u64 {
        return Err(format!("a confirm of {tag}, which is not unconfirmed").into());
    }
    let last = (tag - *first_tag) as usize;
    let first = if multiple { 0 } else { last };
    let mut history = shared.history();
    let producer = history.producers.get_mut(&number).ok_or("unknown".to_string())?;
    for message in unconfirmed.range_mut(first..=last) {
        match message.take() {
            Some(message) => drop(producer.confirmed.insert(message)),
            None if multiple => {}
            None => return Err(format!("a second confirm of {tag}").into()),
        }
    }
    while let Some(None) = unconfirmed.front() {
        unconfirmed.pop_front();
        *first_tag += 1;
    }
    Ok(())
}

/// Consumes; acknowledges singly or many at once, and now and then puts one back.
fn consume(shared: &Shared, queue: &'static str, mut random: Random) -> Result<(), Stop> {
    let mut client = Client::connect(shared.address)?;
    client.prefetch(1 + random.below(100) as u16)?;
    client.consume(queue)?;
    let mut session = Session::default();
    let mut unsettled: Vec<(u64, Id)> = Vec::new();
    loop {
        let silence = client.next_within(Duration::from_millis(20))?;
        if let Some(event) = silence {
            let (tag, id) = note(shared, &mut session, queue, event)?;
            if random.below(50) == 0 {
                client.requeue(tag);
                continue;
            }
            unsettled.push((tag, id));
        } else if shared.ending.load(Ordering::SeqCst) {
            return Ok(());
        }
        if unsettled.is_empty() || random.below(3) > 0 {
            continue;
        }
        let mut history = shared.history();
        if random.below(2) == 0 {
            let (tag, id) = unsettled.swap_remove(random.below(unsettled.len() as u64) as usize);
            history.settled(queue, id, Settled::Maybe);
            client.ack(tag, false);
        } else {
            let last = unsettled.iter().map(|(tag, _)| *tag).max().unwrap_or(0);
            unsettled.drain(..).for_each(|(_, id)| history.settled(queue, id, Settled::Maybe));
            client.ack(last, true);
        }
    }
}

/// Enters a delivery.
fn note(
    shared: &Shared,
    session: &mut Session,
    queue: &'static str,
    event: Event,
) -> Result<(u64, Id), Stop> {
    match event {
        Event::Delivery { tag, redelivered, body } => {
            let id = identify(&body).map_err(|text| format!("{queue}: {text}"))?;
            shared.history().delivered(session, queue, id, redelivered)?;
            Ok((tag, id))
        }
        Event::Closed { code, text } => Err(io::Error::other(format!("{code} {text}")).into()),
        other => Err(format!("{queue}: unexpected: {other:?}").into()),
    }
}

/// Publishes the same messages to two queues in one transaction after the other.
fn transact(shared: &Shared) -> Result<(), Stop> {
    let mut client = Client::connect(shared.address)?;
    client.select_transactions()?;
    loop {
        let first = {
            let mut history = shared.history();
            let producer = history.producers.entry(TRANSACTOR).or_default();
            producer.attempted += TRANSACTION;
            producer.attempted - TRANSACTION
        };
        for number in first..first + TRANSACTION {
            client.publish("", "tx0", &body((TRANSACTOR, number)));
            client.publish("", "tx1", &body((TRANSACTOR, number)));
        }
        client.commit()?;
        let mut history = shared.history();
        let producer = history.producers.entry(TRANSACTOR).or_default();
        producer.confirmed.extend(first..first + TRANSACTION);
    }
}

/// Takes from `work` and gives to `done`, in one transaction per few messages.
fn move_work(shared: &Shared) -> Result<(), Stop> {
    let mut client = Client::connect(shared.address)?;
    client.select_transactions()?;
    client.prefetch(20)?;
    client.consume("work")?;
    let mut session = Session::strict();
    loop {
        let Some(event) = client.next_within(Duration::from_millis(20))? else {
            if shared.ending.load(Ordering::SeqCst) {
                return Ok(());
            }
            continue;
        };
        let mut moving = vec![note(shared, &mut session, "work", event)?];
        while moving.len() < 5 {
            match client.next_within(Duration::from_micros(1))? {
                Some(event) => moving.push(note(shared, &mut session, "work", event)?),
                None => break,
            }
        }
        for (tag, id) in &moving {
            shared.history().settled("work", *id, Settled::Maybe);
            client.publish("", "done", &body(*id));
            client.ack(*tag, false);
        }
        client.commit()?;
        let mut history = shared.history();
        for (_, id) in moving {
            history.settled("work", id, Settled::Surely);
            history.moved.insert(id);
        }
    }
}

/// Empties a queue, with every acknowledgement in a committed transaction; returns what was in it.
pub(crate) fn drain(shared: &Shared, queue: &'static str) -> Result<BTreeSet<Id>, String> {
    take_all(shared, queue).map_err(|stop| match stop {
        Stop::Lost(error) => format!("emptying {queue}: {error}"),
        Stop::Broken(text) => text,
    })
}

fn take_all(shared: &Shared, queue: &'static str) -> Result<BTreeSet<Id>, Stop> {
    let mut client = Client::connect(shared.address)?;
    client.select_transactions()?;
    let ready = client.declare_queue(queue)?;
    client.prefetch(1000)?;
    client.consume(queue)?;
    let mut session = Session::strict();
    let mut found = Vec::new();
    let mut committed = 0;
    for count in 1..=ready {
        let Some(event) = client.next_within(PATIENCE)? else {
            let came = found.len();
            return Err(format!("{queue}: {ready} messages were announced, {came} came").into());
        };
        let (tag, id) = note(shared, &mut session, queue, event)?;
        found.push(id);
        if count % 500 == 0 || count == ready {
            client.ack(tag, true);
            client.commit()?;
            let mut history = shared.history();
            for id in &found[committed..] {
                history.settled(queue, *id, Settled::Surely);
            }
            committed = found.len();
        }
    }
    match client.declare_queue(queue)? {
        0 => Ok(found.into_iter().collect()),
        more => Err(format!("{queue}: {more} messages more than it announced").into()),
    }
}
