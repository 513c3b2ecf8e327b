//! How long a new subscriber waits for its first message while others are published.

use super::topology::Names;
use crate::client::{Error, Link, Route, Source, Target};
use crate::interrupt;
use crate::measure::latency::{Latencies, Summary};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a first message may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// One subscriber after the other connects, subscribes and waits while `rate` messages a second are
/// published. With queues, each has one of its own, declared and bound within the time.
pub fn measure(
    target: &Target,
    size_bytes: usize,
    rate: u64,
    attempts: usize,
) -> Result<Option<Summary>, Error> {
    let mut owner = Link::open(target)?;
    let names = Names::new(target.protocol());
    let exchange = names.fan_out("first");
    owner.declare_fan_out(&exchange, &[])?;
    let stop = AtomicBool::new(false);
    let times = thread::scope(|scope| {
        let publishing = scope.spawn(|| publish(target, &exchange, size_bytes, rate, &stop));
        let mut times = Ok(Latencies::new());
        for attempt in 0..attempts {
            if interrupt::requested() {
                break;
            }
            let queue = names.queue(&format!("first-{attempt}"));
            let time = subscribe(target, &exchange, &queue);
            match (&mut times, time) {
                (Ok(times), Ok(time)) => times.record(time.as_nanos() as u64),
                (times, Err(error)) => {
                    *times = Err(error);
                    break;
                }
                (Err(_), Ok(_)) => break,
            }
        }
        stop.store(true, Ordering::Relaxed);
        let published = publishing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        published.and(times)
    });
    owner.delete_exchange(&exchange)?;
    owner.close()?;
    Ok(times?.summary())
}

fn subscribe(target: &Target, exchange: &str, queue: &str) -> Result<Duration, Error> {
    let start = Instant::now();
    let mut link = Link::open(target)?;
    let name = if target.protocol().has_exchanges() { queue } else { exchange };
    link.declare_queue(queue, false, &[])?;
    link.declare_fan_out(exchange, &[queue.to_owned()])?;
    link.subscribe(&Source::plain(name), 0)?;
    link.stream().set_read_timeout(Some(PATIENCE))?;
    link.expect_delivery()?;
    let time = start.elapsed();
    // What is on its way may come amid the answers: the queue goes by another connection.
    drop(link);
    let mut owner = Link::open(target)?;
    owner.delete_queue(queue)?;
    owner.close()?;
    Ok(time)
}

fn publish(
    target: &Target,
    exchange: &str,
    size_bytes: usize,
    rate: u64,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut link = Link::open(target)?;
    let key = if target.protocol().has_exchanges() { "" } else { exchange };
    let route = Route { exchange, key, persistent: false };
    let mut message = Vec::new();
    link.encode(&route, &vec![b'x'; size_bytes], &mut message);
    let (start, interval) = (Instant::now(), Duration::from_secs_f64(1.0 / rate.max(1) as f64));
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let due = interval * count;
        thread::sleep(due.saturating_sub(start.elapsed()));
        link.write(&message)?;
        count += 1;
    }
    // The end's answer means that all was taken; pings of the broker are answered on the way.
    link.send_end()?;
    link.expect_end(&mut ())?;
    link.close()
}
