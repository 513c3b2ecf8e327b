//! What a confirm is worth: the broker is killed while it confirms and restarted, and everything
//! confirmed must be there; and with one message in flight, the disks must have flushed for each
//! confirm.

use super::control::Control;
use super::drain::{Drained, drain_queues};
use super::message::{self, Message};
use super::plan::Plan;
use super::topology::Topology;
use super::verdict::{Checked, Tally, Verdict};
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
    /// Disk flushes of the machine per confirm, with one message in flight. `None` if the disks'
    /// counters do not show flushes.
    pub flushes_per_confirm: Option<f64>,
    /// The verdict on all confirmed messages, of the kill and of the flush check.
    #[serde(default)]
    pub verdict: Verdict,
}

impl Durability {
    /// What the broker fails at, given whether its confirms are documented to wait for the disk.
    pub fn faults(&self, documented_to_flush: bool) -> Vec<String> {
        let mut faults = Vec::new();
        if self.confirmed_lost > 0 {
            let (lost, confirmed) = (self.confirmed_lost, self.confirmed);
            faults.push(format!("{lost} of {confirmed} confirmed messages did not survive a kill"));
        }
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
    let tallies = drain(plan, &topology, confirmed)?;
    for (index, (tally, confirmed)) in tallies.iter().zip(&before).enumerate() {
        kept += after.add_confirmed(tally, index, confirmed);
    }
    verdict.add(&after);
    let mut link = Link::open(&plan.target)?;
    topology.delete(&mut link)?;
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

/// Records which messages are confirmed.
struct Confirmed {
    tags: Vec<bool>,
    count: u64,
    /// All tags up to this index are confirmed.
    below: usize,
}

impl Receiver for Confirmed {
    fn confirm(&mut self, confirm: Confirm) -> Result<(), Error> {
        let last = confirm.tag as usize;
        if last > self.tags.len() {
            return Err(Error::Invalid(format!("a confirm of {last}, which was never sent")));
        }
        // Tag 0 with `multiple` covers everything so far.
        let last = if last == 0 { self.tags.len() } else { last };
        let first = if confirm.multiple { self.below.min(last) } else { last.saturating_sub(1) };
        for tag in &mut self.tags[first..last] {
            // A refused message leaves the window but need not survive.
            self.count += u64::from(!*tag);
            *tag = !confirm.refused;
        }
        if confirm.multiple {
            self.below = self.below.max(last);
        }
        Ok(())
    }
}

/// A link with confirms, and its message.
struct Publisher {
    link: Link,
    message: Message,
}

impl Publisher {
    fn open(plan: &Plan, route: &Route<'_>, producer: usize) -> Result<Publisher, Error> {
        let mut link = Link::open(&plan.target)?;
        link.select_confirms()?;
        let message = Message::new(&link, route, &message::body(plan.size_bytes), producer as u32);
        Ok(Publisher { link, message })
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
    let mut confirmed = Confirmed { tags: Vec::new(), count: 0, below: 0 };
    let window = plan.window.max(1) as u64;
    while !stop.load(Ordering::Relaxed) {
        let mut out = Vec::new();
        while (confirmed.tags.len() as u64) < confirmed.count + window {
            out.extend_from_slice(publisher.message.stamped(confirmed.tags.len() as u64));
            confirmed.tags.push(false);
        }
        // The kill breaks the link: earlier confirms count.
        if publisher.link.write(&out).is_err()
            || !matches!(publisher.link.fill(), Ok(count) if count > 0)
        {
            break;
        }
        publisher.link.parse(&mut confirmed)?;
    }
    // Confirms that arrived with the end of the link count, too.
    while matches!(publisher.link.fill(), Ok(count) if count > 0) {
        publisher.link.parse(&mut confirmed)?;
    }
    Ok(confirmed.tags)
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
        let start = Instant::now();
        while start.elapsed() < kill_after
            && !interrupt::requested()
            && !threads.iter().any(|it| it.is_finished())
        {
            thread::sleep(Duration::from_millis(2));
        }
        let killed = broker.kill();
        stop.store(true, Ordering::Relaxed);
        let join = "publishers do not panic";
        let all: Result<Vec<_>, _> = threads.into_iter().map(|it| it.join().expect(join)).collect();
        killed.and(all)
    })
}

/// Receives at least `expected` messages, or until nothing arrives for the plan's drain time. Returns a
/// tally per queue.
fn drain(plan: &Plan, topology: &Topology, expected: u64) -> Result<Vec<Tally>, Error> {
    let control = Control::new(plan.producers, plan.consumers, 0, 1);
    let consumed = drain_queues(plan, topology, &control, Drained { expected, silence: SILENCE })?;
    Ok(consumed.into_iter().map(|it| it.tally).collect())
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
    let mut confirmed = Confirmed { tags: Vec::new(), count: 0, below: 0 };
    let before = process::disk_flushes();
    for sequence in 0..SINGLE_CONFIRMS {
        publisher.link.write(publisher.message.stamped(sequence))?;
        confirmed.tags.push(false);
        while confirmed.count <= sequence {
            publisher.link.fill_some()?;
            publisher.link.parse(&mut confirmed)?;
        }
    }
    let after = process::disk_flushes();
    publisher.link.close()?;
    let tallies = drain(&plan, topology, SINGLE_CONFIRMS)?;
    for (index, tally) in tallies.iter().enumerate() {
        verdict.add_confirmed(tally, own, if index == 0 { &confirmed.tags } else { &[] });
    }
    let flushes = before.zip(after).map(|(before, after)| after.saturating_sub(before));
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
    let after = process::disk_flushes();
    fs::remove_file(&path)?;
    let seen = before.zip(after).map_or(0, |(before, after)| after.saturating_sub(before));
    Ok(seen >= OWN_FLUSHES)
}
