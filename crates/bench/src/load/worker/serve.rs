//! The worker: runs its part of a plan for one coordinator after the other.

use super::wire::{Answer, Part, Progress, Request, SIGN_EVERY, SILENCE_MAX, VERSION, Wire};
use crate::client::Error;
use crate::interrupt;
use crate::load::consumer::{Consuming, start_consumers};
use crate::load::control::{Control, StopOnDrop, join, joined};
use crate::load::plan::End;
use crate::load::producer::{Producer, connect_producers, start_producers};
use crate::measure::process;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Interval between looks at awaited threads.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// While nothing is prepared, a coordinator may be silent this many times longer, busy with others.
const SILENCES_UNPREPARED: u32 = 6;

/// Serves coordinators, one at a time, until interrupted, or `sessions` of them.
pub fn serve(listener: &TcpListener, sessions: Option<usize>) -> Result<(), Error> {
    serve_within(listener, sessions, SILENCE_MAX)
}

/// Serves coordinators, with another limit on a coordinator's silence.
pub fn serve_within(
    listener: &TcpListener,
    sessions: Option<usize>,
    silence: Duration,
) -> Result<(), Error> {
    // So that interrupts are noticed.
    listener.set_nonblocking(true)?;
    let mut served = 0;
    while !interrupt::requested() && sessions.is_none_or(|sessions| served < sessions) {
        match listener.accept() {
            Ok((stream, peer)) => {
                stream.set_nonblocking(false)?;
                served += 1;
                if let Err(error) = session(stream, silence) {
                    eprintln!("worker: the coordinator at {peer}: {error}");
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn session(stream: TcpStream, silence: Duration) -> Result<(), Error> {
    let mut wire = Wire::new(stream, silence)?;
    let clock = Instant::now();
    loop {
        wire.set_silence(silence * SILENCES_UNPREPARED)?;
        match wire.receive()? {
            None => return Ok(()),
            Some(Request::Hello { .. }) => wire.send(&Answer::Hello { version: VERSION })?,
            Some(Request::Clock) => {
                wire.send(&Answer::Clock { now_ns: clock.elapsed().as_nanos() as u64 })?;
            }
            Some(Request::Prepare(part)) => {
                wire.set_silence(silence)?;
                if let Err(error) = run_part(&mut wire, &part, clock) {
                    if wire.is_lost {
                        return Err(error);
                    }
                    wire.send(&Answer::Failed(error.to_string()))?;
                }
            }
            // Left over from a failed part.
            Some(
                Request::Wait | Request::Go { .. } | Request::StopPublishing | Request::Finish,
            ) => {
                wire.send(&Answer::Failed("nothing is prepared".to_owned()))?;
            }
        }
    }
}

fn check(part: &Part) -> Result<(), String> {
    let plan = &part.plan;
    plan.check()?;
    let ranges = [(&part.producers, plan.producers), (&part.consumers, plan.consumers)];
    if ranges.iter().any(|(range, count)| range.start > range.end || range.end > *count) {
        return Err("a part beyond its plan".to_owned());
    }
    if !part.topology.fits(plan) {
        return Err("a part with names that are not those of its plan".to_owned());
    }
    Ok(())
}

/// Runs a part from its connections to its outcome.
fn run_part(wire: &mut Wire, part: &Part, clock: Instant) -> Result<(), Error> {
    let plan = &part.plan;
    check(part).map_err(io::Error::other)?;
    // Producers and consumers that bound each other are on one worker (the coordinator ensures it),
    // which has its share of the bound.
    let ahead = plan.ahead.saturating_mul(part.producers.len() as u64);
    let ahead = ahead.div_ceil(plan.producers as u64);
    let mut control = Control::new(plan.producers, plan.consumers, ahead, plan.copies());
    (control.epoch, control.offset_ns) = (clock, part.offset_ns);
    // Runs that end by count measure all messages, including the first ones.
    control.measuring.store(matches!(plan.end, End::Count(_)), Ordering::Relaxed);
    thread::scope(|scope| {
        let _stop = StopOnDrop(&control);
        let connecting = scope.spawn(|| {
            let Part { topology, producers, consumers, .. } = part;
            // Consumers start immediately.
            let consumers = start_consumers(scope, plan, topology, &control, consumers.clone())?;
            Ok((connect_producers(plan, topology, &control, producers.clone())?, consumers))
        });
        let (ready, consumers) = join_with_signs(wire, connecting)?;
        wire.send(&Answer::Prepared)?;
        follow(wire, scope, &control, ready, consumers)
    })
}

/// Waits for a thread, and sends `Working` meanwhile: its duration depends on the broker.
fn join_with_signs<T>(
    wire: &mut Wire,
    working: ScopedJoinHandle<'_, Result<T, Error>>,
) -> Result<T, Error> {
    let mut signed = Instant::now();
    while !working.is_finished() {
        if signed.elapsed() >= SIGN_EVERY {
            wire.send(&Answer::Working)?;
            signed = Instant::now();
        }
        thread::sleep(LOOK_EVERY);
    }
    joined(working)
}

/// Follows the coordinator's requests until it asks for the outcome.
fn follow<'scope>(
    wire: &mut Wire,
    scope: &'scope Scope<'scope, '_>,
    control: &Control,
    ready: Vec<Producer<'scope>>,
    consumers: Consuming<'scope>,
) -> Result<(), Error> {
    let mut ready = Some(ready);
    let (mut producers, mut produced) = (Vec::new(), Vec::new());
    loop {
        // A coordinator that is gone or silent ends the load.
        match wire.receive()?.ok_or_else(|| io::Error::other("it hung up"))? {
            Request::Wait => {}
            Request::Go { measuring } => {
                control.measuring.store(measuring, Ordering::Relaxed);
                if let Some(ready) = ready.take() {
                    producers = start_producers(scope, control, ready);
                }
            }
            Request::StopPublishing => {
                control.measuring.store(false, Ordering::Relaxed);
                control.stop_publishing.store(true, Ordering::Relaxed);
                let ending = std::mem::take(&mut producers);
                produced.extend(join_with_signs(wire, scope.spawn(move || join(ending)))?);
            }
            Request::Finish => {
                control.stop_consuming.store(true, Ordering::Relaxed);
                let consumed = join_with_signs(wire, scope.spawn(move || join(consumers)))?;
                return wire.send(&Answer::Outcome { produced, consumed });
            }
            Request::Hello { .. } | Request::Clock | Request::Prepare(_) => {
                return Err(io::Error::other("it sent an unexpected request").into());
            }
        }
        wire.send(&Answer::Progress(Progress {
            counts: control.counts(),
            producers_done: producers.iter().all(|it| it.is_finished()),
            broken: consumers.iter().any(|it| it.is_finished()),
            cpu_ns: process::own_cpu_ns(),
        }))?;
    }
}
