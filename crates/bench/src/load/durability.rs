//! What a confirm is worth: everything confirmed must survive a kill and restart of the broker; and with
//! one message in flight, the disks must have flushed for each confirm.

use super::backlog::{Drained, drain_queues};
use super::consumer::Consumed;
use super::control::{Control, join, rest};
use super::message::{self, Message};
use super::plan::Plan;
use super::topology::Topology;
use super::verdict::{Checked, Verdict};
use super::window::Window;
use crate::client::{Confirm, Error, Link, Receiver, Route};
use crate::interrupt;
use crate::measure::process;
use rustix::fs::fdatasync;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Confirms of the flush check.
const SINGLE_CONFIRMS: u64 = 100;
/// Flushes by this tool that show whether the disks' counters work.
const OWN_FLUSHES: u64 = 20;
/// A broker that flushes for each confirm has at least this many flushes per confirm.
const FLUSHED_MIN: f64 = 0.9;
/// How long a drained queue must stay silent after the last confirmed message.
const SILENCE: Duration = Duration::from_millis(500);

/// A broker that can be killed and restarted with the same data and port.
pub trait RestartableBroker {
    /// Kills its process by SIGKILL.
    fn kill(&mut self) -> Result<(), Error>;
    /// Starts it again and waits until it answers.
    fn restart(&mut self) -> Result<(), Error>;
    /// Its data folder.
    fn folder(&self) -> &Path;
}

/// The result.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Durability {
    /// Messages confirmed before the kill.
    pub confirmed: u64,
    /// Confirmed messages that were gone after the restart.
    pub confirmed_lost: u64,
    /// Unconfirmed messages that were there after the restart, which is allowed.
    pub unconfirmed_kept: u64,
    /// From the start of the restart until the broker answers.
    pub restart_ms: f64,
    /// Disk flushes of the machine per confirm with one message in flight, where counters show flushes.
    pub flushes_per_confirm: Option<f64>,
    /// The verdict on all confirmed messages, of the kill and of the flush check.
    #[serde(default)]
    pub verdict: Verdict,
}

impl Durability {
    /// How many confirmed messages the kill took, if it took any.
    pub fn loss(&self) -> Option<String> {
        let (lost, confirmed) = (self.confirmed_lost, self.confirmed);
        (lost > 0)
            .then(|| format!("{lost} of {confirmed} confirmed messages did not survive a kill"))
    }

    /// What the broker fails at, given whether its confirms mean that messages survive a kill, and whether
    /// they are documented to wait for the disk.
    pub fn faults(&self, survives_kills: bool, documented_to_flush: bool) -> Vec<String> {
        let mut faults: Vec<String> = self.loss().filter(|_| survives_kills).into_iter().collect();
        if let Some(flushes) = self.flushes_per_confirm
            && documented_to_flush
            && flushes < FLUSHED_MIN
        {
            faults.push(format!("it confirms before it flushes: {flushes:.2} flushes a confirm"));
        }
        faults
    }
}

/// Runs the producers of `plan`, each to its queue, kills the broker after `kill_after`, and drains.
pub fn measure(
    plan: &Plan,
    kill_after: Duration,
    broker: &mut dyn RestartableBroker,
) -> Result<Durability, Error> {
    let topology = Topology::of(plan);
    let mut link = Link::open(&plan.target)?;
    topology.declare(&mut link, plan)?;
    let mut verdict = Verdict::new(Checked::of(plan.size_bytes, plan.checksum));
    let flushes_per_confirm = flushes(plan, &topology, broker.folder(), &mut verdict)?;
    // Draining ended the subscriptions of the sessions, which store messages in MQTT.
    topology.declare(&mut link, plan)?;
    let before = publish_until_killed(plan, &topology, kill_after, broker)?;
    drop(link);
    let start = Instant::now();
    broker.restart()?;
    let restart_ms = start.elapsed().as_secs_f64() * 1e3;
    let confirmed = before.iter().flatten().filter(|yes| **yes).count() as u64;
    let (mut after, mut kept) = (Verdict::default(), 0);
    let consumed = drain(plan, &topology, confirmed)?;
    for (index, (consumed, confirmed)) in consumed.iter().zip(&before).enumerate() {
        kept += after.add_confirmed(&consumed.tally, index, confirmed);
    }
    verdict.add(&after);
    let mut link = Link::open(&plan.target)?;
    topology.delete(&mut link, plan)?;
    link.close()?;
    Ok(Durability {
        confirmed,
        confirmed_lost: after.lost,
        unconfirmed_kept: kept,
        restart_ms,
        flushes_per_confirm,
        verdict,
    })
}

struct Confirms {
    /// Has the index of each message in place of the time when it was sent.
    window: Window,
    /// By index. A refused message leaves the window but need not survive.
    confirmed: Vec<bool>,
}

impl Receiver for Confirms {
    fn confirm(&mut self, confirm: Confirm) -> Result<(), Error> {
        let confirmed = &mut self.confirmed;
        let each = |index| confirmed[index as usize] = !confirm.refused;
        self.window.confirm(confirm, each).map(drop)
    }
}

struct Publisher {
    link: Link,
    message: Message,
    confirms: Confirms,
}

impl Publisher {
    fn open(plan: &Plan, route: &Route<'_>, producer: usize) -> Result<Publisher, Error> {
        let mut link = Link::open(&plan.target)?;
        link.select_confirms()?;
        let body = message::body(plan.size_bytes);
        let message = Message::new(&mut link, route, &body, producer as u32)?;
        let confirms = Confirms { window: Window::new(plan.window), confirmed: Vec::new() };
        Ok(Publisher { link, message, confirms })
    }

    fn append(&mut self, out: &mut Vec<u8>) {
        self.confirms.window.sent(1, self.message.sent);
        self.confirms.confirmed.push(false);
        out.extend_from_slice(self.message.next());
    }
}

/// Publishes until the link breaks. Returns whether each message was confirmed.
fn publish(
    plan: &Plan,
    route: &Route<'_>,
    producer: usize,
    stop: &AtomicBool,
) -> Result<Vec<bool>, Error> {
    let mut publisher = Publisher::open(plan, route, producer)?;
    while !stop.load(Ordering::Relaxed) {
        let mut out = Vec::new();
        while publisher.confirms.window.room() > 0 {
            publisher.append(&mut out);
        }
        // The kill breaks the link: earlier confirms count.
        if publisher.link.write(&out).is_err() || publisher.link.fill_some().is_err() {
            break;
        }
        publisher.link.parse(&mut publisher.confirms)?;
    }
    // Confirms that arrived with the end of the link count, too.
    while publisher.link.fill_some().is_ok() {
        publisher.link.parse(&mut publisher.confirms)?;
    }
    Ok(publisher.confirms.confirmed)
}

fn publish_until_killed(
    plan: &Plan,
    topology: &Topology,
    kill_after: Duration,
    broker: &mut dyn RestartableBroker,
) -> Result<Vec<Vec<bool>>, Error> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        let threads: Vec<_> = (0..plan.producers)
            .map(|index| {
                scope.spawn(move || publish(plan, &topology.route(plan, index), index, stop))
            })
            .collect();
        rest(kill_after, &|| interrupt::requested() || threads.iter().any(|it| it.is_finished()));
        let killed = broker.kill();
        stop.store(true, Ordering::Relaxed);
        killed.and(join(threads))
    })
}

/// Receives at least `expected` messages, or until nothing arrives for the plan's drain time.
fn drain(plan: &Plan, topology: &Topology, expected: u64) -> Result<Vec<Consumed>, Error> {
    let control = Control::new(plan.producers, plan.consumers, 0, 1);
    drain_queues(plan, topology, &control, Drained { expected, silence: SILENCE })
}

/// Publishes messages one by one into the first queue, each after the confirm of the last, drains and
/// judges them. Returns the flushes of all disks per confirm.
fn flushes(
    plan: &Plan,
    topology: &Topology,
    folder: &Path,
    verdict: &mut Verdict,
) -> Result<Option<f64>, Error> {
    if !flushes_are_counted(folder)? {
        return Ok(None);
    }
    // With an additional producer, whose messages are distinct from those of the run.
    let plan = Plan { producers: plan.producers + 1, consumers: plan.queues, ..plan.clone() };
    let own = plan.producers - 1;
    let mut publisher = Publisher::open(&plan, &topology.route(&plan, 0), own)?;
    let before = process::disk_flushes();
    for _ in 0..SINGLE_CONFIRMS {
        let mut out = Vec::new();
        publisher.append(&mut out);
        publisher.link.write(&out)?;
        while !publisher.confirms.window.is_empty() {
            publisher.link.fill_some()?;
            publisher.link.parse(&mut publisher.confirms)?;
        }
    }
    let flushes = flushes_since(before);
    publisher.link.close()?;
    for (index, Consumed { tally, .. }) in
        drain(&plan, topology, SINGLE_CONFIRMS)?.iter().enumerate()
    {
        let confirmed = if index == 0 { &publisher.confirms.confirmed[..] } else { &[] };
        verdict.add_confirmed(tally, own, confirmed);
    }
    Ok(flushes.map(|count| count as f64 / SINGLE_CONFIRMS as f64))
}

/// Whether this tool's own flushes in that folder show in the disks' counters.
fn flushes_are_counted(folder: &Path) -> io::Result<bool> {
    let path = folder.join("angarium-bench-flush");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
    let before = process::disk_flushes();
    for _ in 0..OWN_FLUSHES {
        file.write_all(&[b'f'; 4_096])?;
        fdatasync(&file)?;
    }
    let seen = flushes_since(before);
    fs::remove_file(&path)?;
    Ok(seen.is_some_and(|count| count >= OWN_FLUSHES))
}

fn flushes_since(before: Option<u64>) -> Option<u64> {
    before.zip(process::disk_flushes()).map(|(before, after)| after.saturating_sub(before))
}
