//! Runs the three programs as threads with their own connections, and measures them.

use super::order_book::{Book, PRICE_MIN, PRICES, Quote};
use super::wire::{Kind, MESSAGE_BYTES, Message};
use crate::client::{Encoded, Error, Head, Link, Receiver, Route, Source, Target};
use crate::interrupt;
use crate::load::{Checked, Names, Pace, Stamp, Tally, Verdict};
use crate::measure::latency::{Latencies, Summary};
use crate::measure::network::{self, Segments};
use crate::measure::process::{self, Cost, Usage};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The most orders of a run, which are limited by the memory for their times.
const ORDERS_MAX: u64 = 100_000_000;
/// Limit on unconfirmed orders without a rate.
const WINDOW: u64 = 5_000;
/// Orders per write without a rate.
const BATCH: u64 = 64;
/// Orders between two reports.
const REPORT_EVERY: u32 = 10_000;
/// Read timeout, after which a program checks whether the run is over.
const IDLE: Duration = Duration::from_millis(20);
/// How long missing confirmations are waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// Percentiles are dropped if the p99 of the tool's own lag exceeds this.
const LAG_US_MAX: f64 = 1_000.0;

/// What to run.
#[derive(Debug, Clone)]
pub struct ExchangePlan {
    /// The broker.
    pub target: Target,
    /// Orders per second; 0 is as fast as possible, with a limit on unconfirmed ones.
    pub rate: u64,
    /// Number of orders.
    pub orders: u64,
    /// Whether the programs' sockets coalesce small writes (Nagle).
    pub coalesce: bool,
}

/// The result.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangeOutcome {
    /// Orders sent per second.
    pub orders_in: f64,
    /// Orders confirmed per second.
    pub orders_out: f64,
    /// Confirmations of orders and trades, and quotes, per second.
    pub quotes_out: f64,
    /// From when an order was due or sent to its confirmation; `None` if the gateway fell behind.
    pub completion: Option<Summary>,
    /// The gateway's own lag, if there is a schedule.
    pub lag: Option<Summary>,
    /// The verdict on confirmations, trades and quotes.
    pub verdict: Verdict,
    /// What the broker used per order.
    pub broker: Option<Cost>,
    /// Cores of the gateway's CPU.
    pub gateway_share: f64,
    /// Cores of the engine's CPU.
    pub engine_share: f64,
    /// Reports that the reporter received.
    pub reports: u64,
    /// Segments of all TCP sockets of the machine.
    pub segments: Segments,
}

struct Shared {
    plan: ExchangePlan,
    orders: String,
    trades: String,
    reports: String,
    epoch: Instant,
    due_ns: Vec<AtomicU64>,
    completed: AtomicU64,
    sent: AtomicU64,
    /// Messages that the engine sent to the gateway.
    emitted: AtomicU64,
    gateway_done: AtomicBool,
    stop: AtomicBool,
}

impl Shared {
    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    fn open(&self) -> Result<Link, Error> {
        let link = Link::open(&self.plan.target)?;
        link.stream().set_nodelay(!self.plan.coalesce)?;
        Ok(link)
    }

    fn subscribe(&self, name: &str) -> Result<Link, Error> {
        let mut link = self.open()?;
        link.subscribe(&Source::plain(name), 0)?;
        Ok(link)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || interrupt::requested()
    }
}

/// A message for one queue, encoded once; only its body changes.
struct Template {
    octets: Vec<u8>,
    places: Encoded,
    /// How often it was appended.
    sent: u64,
}

impl Template {
    fn new(link: &mut Link, key: &str) -> Result<Template, Error> {
        let mut octets = Vec::new();
        let route = Route { exchange: "", key, persistent: false };
        link.prepare(&route)?;
        let places = link.encode(&route, &[0; MESSAGE_BYTES], &mut octets);
        Ok(Template { octets, places, sent: 0 })
    }

    fn append(&mut self, message: Message, out: &mut Vec<u8>) {
        self.sent += 1;
        self.places.write_tag(&mut self.octets, self.sent);
        let at = self.places.body_at;
        self.octets[at..at + MESSAGE_BYTES].copy_from_slice(&message.encode());
        out.extend_from_slice(&self.octets);
    }
}

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
    /// Reads once; leaves `messages` empty if nothing arrived in time.
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
    let shared = Shared {
        plan: ExchangePlan { orders, ..plan.clone() },
        orders: names.queue("orders"),
        trades: names.queue("trades"),
        reports: names.queue("reports"),
        epoch: Instant::now(),
        due_ns: (0..orders).map(|_| AtomicU64::new(0)).collect(),
        completed: AtomicU64::new(0),
        sent: AtomicU64::new(0),
        emitted: AtomicU64::new(0),
        gateway_done: AtomicBool::new(false),
        stop: AtomicBool::new(false),
    };
    let mut owner = Link::open(&plan.target)?;
    let queues = [&shared.orders, &shared.trades, &shared.reports];
    for queue in queues {
        owner.declare_queue(queue, false, &[])?;
    }
    let outcome = trade(&shared, broker_pid);
    for queue in queues {
        owner.delete_queue(queue)?;
    }
    owner.close()?;
    outcome
}

fn trade(shared: &Shared, broker_pid: Option<u32>) -> Result<ExchangeOutcome, Error> {
    let usage = || broker_pid.and_then(Usage::of_tree);
    // All subscribe before the first order is sent.
    let mut orders = shared.subscribe(&shared.orders)?;
    let answers = Answers {
        trades: Template::new(&mut orders, &shared.trades)?,
        reports: Template::new(&mut orders, &shared.reports)?,
    };
    let reports = shared.subscribe(&shared.reports)?;
    let trades = shared.subscribe(&shared.trades)?;
    let mut sender = shared.open()?;
    // The sender never reads.
    sender.disable_replies()?;
    let order = Template::new(&mut sender, &shared.orders)?;
    thread::scope(|scope| {
        let matching = scope.spawn(|| stop_on_error(shared, run_engine(shared, orders, answers)));
        let reporting = scope.spawn(|| stop_on_error(shared, run_reporter(shared, reports)));
        let (before, segments, start) = (usage(), network::segments(), Instant::now());
        let sending = scope.spawn(|| stop_on_error(shared, run_sender(shared, sender, order)));
        let received = stop_on_error(shared, run_receiver(shared, trades));
        let span_s = start.elapsed().as_secs_f64();
        let (after, segments_after) = (usage(), network::segments());
        shared.stop.store(true, Ordering::Relaxed);
        let join = "the programs do not panic";
        let (sent, engine_ns) = (sending.join().expect(join)?, matching.join().expect(join)?);
        let (reports, received) = (reporting.join().expect(join)?, received?);
        let count = received.verdict.delivered;
        let kept = sent.lag.as_ref().is_none_or(|lag| lag.p99_us <= LAG_US_MAX);
        let mut verdict = received.verdict;
        verdict.lost += shared.emitted.load(Ordering::SeqCst).saturating_sub(received.messages);
        Ok(ExchangeOutcome {
            orders_in: shared.plan.orders as f64 / sent.span_s.max(1e-9),
            orders_out: count as f64 / received.span_s.max(1e-9),
            quotes_out: received.messages as f64 / received.span_s.max(1e-9),
            completion: received.completion.summary().filter(|_| kept),
            lag: sent.lag,
            verdict,
            broker: Cost::between(before.as_ref(), after.as_ref(), span_s, count),
            gateway_share: (sent.cpu_ns + received.cpu_ns) as f64 / 1e9 / span_s,
            engine_share: engine_ns as f64 / 1e9 / span_s,
            reports,
            segments: segments_after.since(&segments),
        })
    })
}

/// Stops the other programs if one fails.
fn stop_on_error<T>(shared: &Shared, result: Result<T, Error>) -> Result<T, Error> {
    if result.is_err() {
        shared.stop.store(true, Ordering::Relaxed);
    }
    result
}

struct SenderResult {
    span_s: f64,
    cpu_ns: u64,
    lag: Option<Summary>,
}

/// The sending half of the gateway: orders on schedule.
fn run_sender(
    shared: &Shared,
    mut link: Link,
    mut template: Template,
) -> Result<SenderResult, Error> {
    let start_ns = shared.now_ns();
    let pace = Pace::of(shared.plan.rate, 0, 1, start_ns);
    let (mut next, mut out, mut lags) = (0, Vec::new(), Latencies::default());
    let (mut state, mut free_ns) = (0x9E37_79B9_7F4A_7C15u64, start_ns);
    while next < shared.plan.orders && !shared.is_over() {
        let now_ns = shared.now_ns();
        let ready = match &pace {
            Some(pace) => pace.due_by(now_ns).saturating_sub(next),
            None => {
                WINDOW.saturating_sub(next - shared.completed.load(Ordering::Relaxed)).min(BATCH)
            }
        };
        let count = ready.min(shared.plan.orders - next);
        if count == 0 {
            let wait_ns = pace.map_or(50_000, |pace| pace.due_ns(next).saturating_sub(now_ns));
            thread::sleep(Duration::from_nanos(wait_ns.min(50_000_000)));
            continue;
        }
        out.clear();
        for number in next..next + count {
            let due_ns = pace.map_or(now_ns, |pace| pace.due_ns(number));
            shared.due_ns[number as usize].store(due_ns, Ordering::Relaxed);
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let price = PRICE_MIN + ((state >> 33) % u64::from(PRICES)) as u16;
            let kind = if state >> 63 == 0 { Kind::Buy } else { Kind::Sell };
            template.append(Message { kind, number: number as u32, price }, &mut out);
        }
        if let Some(pace) = &pace {
            lags.record(now_ns.saturating_sub(pace.due_ns(next).max(free_ns)));
        }
        link.write(&out)?;
        free_ns = shared.now_ns();
        next += count;
        shared.sent.store(next, Ordering::Relaxed);
    }
    let span_s = (shared.now_ns() - start_ns) as f64 / 1e9;
    shared.gateway_done.store(true, Ordering::Relaxed);
    // The connection stays open until everything in flight is processed.
    while !shared.is_over() {
        thread::sleep(IDLE);
    }
    Ok(SenderResult { span_s, cpu_ns: process::thread_cpu_ns(), lag: lags.summary() })
}

struct ReceiverResult {
    completion: Latencies,
    verdict: Verdict,
    messages: u64,
    span_s: f64,
    cpu_ns: u64,
}

/// The receiving half of the gateway: confirmations, trades and quotes.
fn run_receiver(shared: &Shared, mut link: Link) -> Result<ReceiverResult, Error> {
    let (mut inbox, mut completion) = (Inbox::default(), Latencies::default());
    let (mut tally, mut delivered, mut messages) = (Tally::new(1), 0, 0);
    let (start, mut last) = (Instant::now(), Instant::now());
    link.stream().set_read_timeout(Some(IDLE))?;
    let cpu_ns = process::thread_cpu_ns();
    loop {
        let sent_all = shared.gateway_done.load(Ordering::Relaxed);
        let all = shared.completed.load(Ordering::Relaxed) >= shared.plan.orders
            && messages >= shared.emitted.load(Ordering::SeqCst);
        if all || shared.is_over() || sent_all && last.elapsed() > PATIENCE {
            break;
        }
        inbox.take(&mut link)?;
        if inbox.messages.is_empty() {
            continue;
        }
        last = Instant::now();
        let now_ns = shared.now_ns();
        for message in inbox.messages.drain(..) {
            messages += 1;
            let number = match message {
                Some(Message { kind: Kind::Confirmed, number, .. }) => number,
                Some(_) => continue,
                None => {
                    tally.record_corrupt();
                    continue;
                }
            };
            let due_ns = shared.due_ns.get(number as usize);
            if tally.record(&Stamp::of(0, number.into()), false)
                && let Some(due_ns) = due_ns
            {
                delivered += 1;
                completion.record(now_ns.saturating_sub(due_ns.load(Ordering::Relaxed)));
            }
        }
        shared.completed.store(delivered, Ordering::Relaxed);
    }
    let mut verdict = Verdict::new(Checked::Checksums);
    verdict.add_queue(&tally, &[shared.sent.load(Ordering::Relaxed)]);
    let span_s = (last - start).as_secs_f64();
    let cpu_ns = process::thread_cpu_ns() - cpu_ns;
    Ok(ReceiverResult { completion, verdict, messages, span_s, cpu_ns })
}

/// What the matching engine sends.
struct Answers {
    trades: Template,
    reports: Template,
}

/// The matching engine. Returns the CPU time of its thread.
fn run_engine(shared: &Shared, mut link: Link, answers: Answers) -> Result<u64, Error> {
    let Answers { mut trades, mut reports } = answers;
    let (mut inbox, mut book, mut out) = (Inbox::default(), Book::new(), Vec::new());
    let (mut taken, mut emitted) = (0u32, 0);
    link.stream().set_read_timeout(Some(IDLE))?;
    while !shared.is_over() {
        inbox.take(&mut link)?;
        out.clear();
        for message in inbox.messages.drain(..) {
            // A damaged order shows as missing at the gateway.
            let Some(order) = message else { continue };
            let buys = match order.kind {
                Kind::Buy => true,
                Kind::Sell => false,
                _ => continue,
            };
            let Some(result) = book.take(order.number, order.price, buys) else { continue };
            let mut emit = |message| {
                trades.append(message, &mut out);
                emitted += 1;
            };
            emit(Message { kind: Kind::Confirmed, ..order });
            if let Some(number) = result.matched {
                emit(Message { kind: Kind::Traded, ..order });
                emit(Message { kind: Kind::Traded, number, ..order });
            }
            if let Some(Quote { bid, ask }) = result.quote {
                emit(Message { kind: Kind::Quote, number: bid.into(), price: ask });
            }
            taken += 1;
            if taken.is_multiple_of(REPORT_EVERY) {
                let report = Message { kind: Kind::Measured, number: taken, price: 0 };
                reports.append(report, &mut out);
            }
        }
        if !out.is_empty() {
            shared.emitted.store(emitted, Ordering::SeqCst);
            link.write(&out)?;
        }
    }
    Ok(process::thread_cpu_ns())
}

/// The statistics reporter: counts reports.
fn run_reporter(shared: &Shared, mut link: Link) -> Result<u64, Error> {
    let (mut inbox, mut count) = (Inbox::default(), 0);
    link.stream().set_read_timeout(Some(IDLE))?;
    while !shared.is_over() {
        inbox.take(&mut link)?;
        let reports = inbox.messages.iter().flatten().filter(|it| it.kind == Kind::Measured);
        count += reports.count() as u64;
    }
    Ok(count)
}
