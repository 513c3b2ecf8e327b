//! The three programs as threads with connections of their own, and what is seen of them.

use super::order_book::{Book, PRICE_MIN, PRICES};
use super::wire::{MESSAGE_BYTES, Message};
use crate::client::{Error, Head, Link, Receiver, Route, Source, Target};
use crate::interrupt;
use crate::load::{Names, Pace, Verdict};
use crate::measure::latency::{Latencies, Summary};
use crate::measure::network::{self, Segments};
use crate::measure::process::{self, Cost, Usage};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The most orders of a run: their times are kept.
const ORDERS_MAX: u64 = 100_000_000;
/// Orders that wait for their confirmation at most, where no rate is asked for.
const WINDOW: u64 = 5_000;
/// Orders written at once, where no rate is asked for.
const BATCH: u64 = 64;
/// Orders between two measurements for the reporter.
const REPORT_EVERY: u32 = 10_000;
/// How long a read waits before a program looks whether it is over.
const IDLE: Duration = Duration::from_millis(20);
/// How long missing confirmations are waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// The tool's own lag beyond which percentiles would describe the tool.
const LAG_US_MAX: f64 = 1_000.0;

/// What is run.
#[derive(Debug, Clone)]
pub struct ExchangePlan {
    /// The broker.
    pub target: Target,
    /// Orders per second; 0 is as fast as it goes, with a bound on what waits.
    pub rate: u64,
    /// How many.
    pub orders: u64,
    /// Let the sockets of the programs coalesce small writes (Nagle).
    pub coalesce: bool,
}

/// What it came to.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangeOutcome {
    /// Orders sent per second.
    pub orders_in: f64,
    /// Orders confirmed per second.
    pub orders_out: f64,
    /// Confirmations of orders and trades, and quotes, per second.
    pub quotes_out: f64,
    /// From when an order was due, or was sent if no rate was asked for, to its confirmation. None if
    /// the gateway fell behind its own schedule.
    pub completion: Option<Summary>,
    /// The gateway's own lag, where there is a schedule.
    pub lag: Option<Summary>,
    /// What became of confirmations, trades and quotes.
    pub verdict: Verdict,
    /// What the broker took for each order.
    pub broker: Option<Cost>,
    /// Cores' worth of the gateway's CPU.
    pub gateway_share: f64,
    /// Cores' worth of the engine's CPU.
    pub engine_share: f64,
    /// Measurements that the reporter got.
    pub reports: u64,
    /// Segments of all TCP sockets of the machine.
    pub segments: Segments,
}

struct Queues {
    orders: String,
    trades: String,
    reports: String,
}

/// What the programs share.
struct Floor {
    plan: ExchangePlan,
    queues: Queues,
    epoch: Instant,
    /// Per order, when it was due or sent.
    due_ns: Vec<AtomicU64>,
    completed: AtomicU64,
    sent: AtomicU64,
    /// Messages that the engine sent to the gateway.
    emitted: AtomicU64,
    gateway_done: AtomicBool,
    stop: AtomicBool,
}

impl Floor {
    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    fn open(&self) -> Result<Link, Error> {
        let link = Link::open(&self.plan.target)?;
        link.stream().set_nodelay(!self.plan.coalesce)?;
        Ok(link)
    }

    fn listen(&self, name: &str) -> Result<Link, Error> {
        let mut link = self.open()?;
        link.subscribe(&Source::plain(name), 0)?;
        link.stream().set_read_timeout(Some(IDLE))?;
        Ok(link)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || interrupt::requested()
    }
}

/// A message for one queue, encoded once; only its body changes.
struct Template {
    octets: Vec<u8>,
    body_at: usize,
}

impl Template {
    fn new(link: &Link, key: &str) -> Template {
        let mut octets = Vec::new();
        let route = Route { exchange: "", key, persistent: false };
        let body_at = link.encode(&route, &[0; MESSAGE_BYTES], &mut octets).body_at;
        Template { octets, body_at }
    }

    fn append(&self, message: Message, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.octets);
        let at = start + self.body_at;
        out[at..at + MESSAGE_BYTES].copy_from_slice(&message.encode());
    }
}

/// Collects whole messages.
#[derive(Default)]
struct Inbox {
    partial: Vec<u8>,
    messages: Vec<Option<Message>>,
}

impl Receiver for Inbox {
    fn begin(&mut self, _head: Head) {
        self.partial.clear();
    }

    fn body(&mut self, octets: &[u8]) {
        if self.partial.len() <= MESSAGE_BYTES {
            self.partial.extend_from_slice(&octets[..octets.len().min(MESSAGE_BYTES + 1)]);
        }
    }

    fn complete(&mut self) {
        self.messages.push(Message::decode(&self.partial));
    }
}

impl Inbox {
    /// Reads once; leaves `messages` empty if nothing came in time.
    fn take(&mut self, link: &mut Link) -> Result<(), Error> {
        self.messages.clear();
        link.parse(self)?;
        if !self.messages.is_empty() {
            return Ok(());
        }
        match link.fill_within()? {
            Some(_) => link.parse(self),
            None => Ok(()),
        }
    }
}

/// Runs the exchange.
pub fn measure(plan: &ExchangePlan, broker_pid: Option<u32>) -> Result<ExchangeOutcome, Error> {
    let orders = plan.orders.clamp(1, ORDERS_MAX);
    let names = Names::new(plan.target.protocol());
    let floor = Floor {
        plan: ExchangePlan { orders, ..plan.clone() },
        queues: Queues {
            orders: names.queue("orders"),
            trades: names.queue("trades"),
            reports: names.queue("reports"),
        },
        epoch: Instant::now(),
        due_ns: (0..orders).map(|_| AtomicU64::new(0)).collect(),
        completed: AtomicU64::new(0),
        sent: AtomicU64::new(0),
        emitted: AtomicU64::new(0),
        gateway_done: AtomicBool::new(false),
        stop: AtomicBool::new(false),
    };
    let mut owner = Link::open(&plan.target)?;
    let queues = [&floor.queues.orders, &floor.queues.trades, &floor.queues.reports];
    for queue in queues {
        owner.declare_queue(queue, false, &[])?;
    }
    let outcome = trade(&floor, broker_pid);
    for queue in queues {
        owner.delete_queue(queue)?;
    }
    owner.close()?;
    outcome
}

fn trade(floor: &Floor, broker_pid: Option<u32>) -> Result<ExchangeOutcome, Error> {
    let usage = || broker_pid.and_then(Usage::of_tree);
    // All listen before the first order is sent.
    let (engine, reports, trades) = (
        floor.listen(&floor.queues.orders)?,
        floor.listen(&floor.queues.reports)?,
        floor.listen(&floor.queues.trades)?,
    );
    let mut sender = floor.open()?;
    // It never reads.
    sender.disable_replies()?;
    thread::scope(|scope| {
        let matching = scope.spawn(|| stopping(floor, run_engine(floor, engine)));
        let reporting = scope.spawn(|| stopping(floor, run_reporter(floor, reports)));
        let (before, segments, start) = (usage(), network::segments(), Instant::now());
        let sending = scope.spawn(|| stopping(floor, run_sender(floor, sender)));
        let heard = stopping(floor, run_receiver(floor, trades));
        let span_s = start.elapsed().as_secs_f64();
        let (after, segments_after) = (usage(), network::segments());
        floor.stop.store(true, Ordering::Relaxed);
        let join = "the programs do not panic";
        let (sent, engine) = (sending.join().expect(join)?, matching.join().expect(join)?);
        let (reports, heard) = (reporting.join().expect(join)?, heard?);
        let count = heard.verdict.delivered;
        let kept = sent.lag.as_ref().is_none_or(|lag| lag.p99_us <= LAG_US_MAX);
        let broker =
            before.zip(after).map(|(before, after)| Cost::between(&before, &after, span_s, count));
        let mut verdict = heard.verdict;
        verdict.lost += engine.emitted.saturating_sub(heard.received);
        Ok(ExchangeOutcome {
            orders_in: floor.plan.orders as f64 / sent.span_s.max(1e-9),
            orders_out: heard.confirmed as f64 / heard.span_s.max(1e-9),
            quotes_out: heard.received as f64 / heard.span_s.max(1e-9),
            completion: heard.completion.summary().filter(|_| kept),
            lag: sent.lag,
            verdict,
            broker,
            gateway_share: (sent.cpu_ns + heard.cpu_ns) as f64 / 1e9 / span_s,
            engine_share: engine.cpu_ns as f64 / 1e9 / span_s,
            reports,
            segments: segments_after.since(&segments),
        })
    })
}

/// One program that fails ends the others.
fn stopping<T>(floor: &Floor, result: Result<T, Error>) -> Result<T, Error> {
    if result.is_err() {
        floor.stop.store(true, Ordering::Relaxed);
    }
    result
}

struct Sent {
    span_s: f64,
    cpu_ns: u64,
    lag: Option<Summary>,
}

/// The gateway's one half: orders at their times.
fn run_sender(floor: &Floor, mut link: Link) -> Result<Sent, Error> {
    let template = Template::new(&link, &floor.queues.orders);
    let start_ns = floor.now_ns();
    let pace = Pace::of(floor.plan.rate, 0, 1, start_ns);
    let (mut next, mut out, mut lags) = (0, Vec::new(), Latencies::new());
    let (mut state, mut free_ns) = (0x9E37_79B9_7F4A_7C15u64, start_ns);
    while next < floor.plan.orders && !floor.is_over() {
        let now_ns = floor.now_ns();
        let ready = match &pace {
            Some(pace) => pace.due_by(now_ns).saturating_sub(next),
            None => {
                WINDOW.saturating_sub(next - floor.completed.load(Ordering::Relaxed)).min(BATCH)
            }
        };
        let count = ready.min(floor.plan.orders - next);
        if count == 0 {
            let wait_ns = pace
                .as_ref()
                .map_or(50_000, |pace| pace.due_ns(next) - now_ns.min(pace.due_ns(next)));
            thread::sleep(Duration::from_nanos(wait_ns.min(50_000_000)));
            continue;
        }
        out.clear();
        for number in next..next + count {
            let due_ns = pace.as_ref().map_or(now_ns, |pace| pace.due_ns(number));
            floor.due_ns[number as usize].store(due_ns, Ordering::Relaxed);
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let price = PRICE_MIN + ((state >> 33) % u64::from(PRICES)) as u16;
            let order = match state >> 63 {
                0 => Message::Buy(number as u32, price),
                _ => Message::Sell(number as u32, price),
            };
            template.append(order, &mut out);
        }
        if let Some(pace) = &pace {
            lags.record(now_ns.saturating_sub(pace.due_ns(next).max(free_ns)));
        }
        link.write(&out)?;
        free_ns = floor.now_ns();
        next += count;
        floor.sent.store(next, Ordering::Relaxed);
    }
    let span_s = (floor.now_ns() - start_ns) as f64 / 1e9;
    floor.gateway_done.store(true, Ordering::Relaxed);
    // The connection stays until what is on its way has gone through.
    while !floor.is_over() {
        thread::sleep(IDLE);
    }
    Ok(Sent { span_s, cpu_ns: process::thread_cpu_ns(), lag: lags.summary() })
}

struct Heard {
    completion: Latencies,
    verdict: Verdict,
    confirmed: u64,
    received: u64,
    span_s: f64,
    cpu_ns: u64,
}

/// The gateway's other half: confirmations, trades and quotes.
fn run_receiver(floor: &Floor, mut link: Link) -> Result<Heard, Error> {
    let (mut inbox, mut completion) = (Inbox::default(), Latencies::new());
    let mut seen = vec![false; floor.due_ns.len()];
    let (mut verdict, mut received, mut next) = (Verdict::default(), 0u64, 0u64);
    let (start, mut last) = (Instant::now(), Instant::now());
    let cpu_ns = process::thread_cpu_ns();
    loop {
        let sent_all = floor.gateway_done.load(Ordering::Relaxed);
        let all = floor.completed.load(Ordering::Relaxed) >= floor.plan.orders
            && received >= floor.emitted.load(Ordering::SeqCst);
        if all || floor.is_over() || sent_all && last.elapsed() > PATIENCE {
            break;
        }
        inbox.take(&mut link)?;
        if inbox.messages.is_empty() {
            continue;
        }
        last = Instant::now();
        let now_ns = floor.now_ns();
        for message in inbox.messages.drain(..) {
            received += 1;
            let number = match message {
                Some(Message::Confirmed(number, _)) => u64::from(number),
                Some(_) => continue,
                None => {
                    verdict.corrupt += 1;
                    continue;
                }
            };
            match seen.get_mut(number as usize) {
                None => verdict.invented += 1,
                Some(seen) if *seen => verdict.duplicated += 1,
                Some(seen) => {
                    *seen = true;
                    verdict.delivered += 1;
                    verdict.reordered += u64::from(number < next);
                    next = next.max(number + 1);
                    let due_ns = floor.due_ns[number as usize].load(Ordering::Relaxed);
                    completion.record(now_ns.saturating_sub(due_ns));
                }
            }
        }
        floor.completed.store(verdict.delivered, Ordering::Relaxed);
    }
    verdict.expected = floor.sent.load(Ordering::Relaxed);
    verdict.lost = verdict.expected.saturating_sub(verdict.delivered);
    verdict.checked = crate::load::Checked::Checksums;
    let (confirmed, span_s) = (verdict.delivered, (last - start).as_secs_f64());
    let cpu_ns = process::thread_cpu_ns() - cpu_ns;
    Ok(Heard { completion, verdict, confirmed, received, span_s, cpu_ns })
}

struct Matched {
    emitted: u64,
    cpu_ns: u64,
}

/// The matching engine.
fn run_engine(floor: &Floor, mut link: Link) -> Result<Matched, Error> {
    let trades = Template::new(&link, &floor.queues.trades);
    let reports = Template::new(&link, &floor.queues.reports);
    let (mut inbox, mut book, mut out) = (Inbox::default(), Book::new(), Vec::new());
    let (mut taken, mut emitted) = (0u32, 0);
    while !floor.is_over() {
        inbox.take(&mut link)?;
        out.clear();
        for message in inbox.messages.drain(..) {
            let (number, price, buys) = match message {
                Some(Message::Buy(number, price)) => (number, price, true),
                Some(Message::Sell(number, price)) => (number, price, false),
                // What was harmed on its way here is missing at the gateway.
                _ => continue,
            };
            let Some(result) = book.take(number, price, buys) else { continue };
            let mut emit = |message| {
                trades.append(message, &mut out);
                emitted += 1;
            };
            emit(Message::Confirmed(number, price));
            if let Some(other) = result.matched {
                emit(Message::Traded(number, price));
                emit(Message::Traded(other, price));
            }
            if let Some((bid, ask)) = result.quote {
                emit(Message::Quote(bid, ask));
            }
            taken += 1;
            if taken.is_multiple_of(REPORT_EVERY) {
                reports.append(Message::Measured(taken), &mut out);
            }
        }
        if !out.is_empty() {
            floor.emitted.store(emitted, Ordering::SeqCst);
            link.write(&out)?;
        }
    }
    Ok(Matched { emitted, cpu_ns: process::thread_cpu_ns() })
}

/// The statistics reporter: counts the measurements.
fn run_reporter(floor: &Floor, mut link: Link) -> Result<u64, Error> {
    let (mut inbox, mut count) = (Inbox::default(), 0);
    while !floor.is_over() {
        inbox.take(&mut link)?;
        let measured = |it: &&Option<Message>| matches!(it, Some(Message::Measured(_)));
        count += inbox.messages.iter().filter(measured).count() as u64;
    }
    Ok(count)
}
