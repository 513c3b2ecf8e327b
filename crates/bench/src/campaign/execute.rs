//! One case against one broker: runs its work and names its metrics.

use super::side::Side;
use crate::client::{Error, Protocol, Target};
use crate::exchange::{self, ExchangePlan};
use crate::interrupt;
use crate::load::idle::IdlePlan;
use crate::load::{
    self, End, Outcome, Plan, Verdict, backlog, durability, first_message, idle, isolation,
    round_trip,
};
use crate::measure::latency::Summary;
use crate::measure::process::Cost;
use crate::peer::Level;
use crate::preset::Work;
use crate::report::{Measurement, Run};
use std::time::Duration;

/// The most travel times that a result keeps, as many as a chart can show.
const TRAVELS_MAX: usize = 1_000;
/// The most seconds that a result keeps.
const SECONDS_MAX: usize = 2_000;

/// Runs the work, by workers if there are any. After `drain` without progress, missing messages count as
/// lost.
pub(super) fn run(work: &Work, side: &mut Side, workers: &[String], drain: Duration) -> Run {
    if !workers.is_empty()
        && let Some(why) = work.indivisible()
    {
        return Run::Refused(format!("not by workers: {why}"));
    }
    let in_memory = match work.is_kept_in_memory().then(|| side.set_durable(false)) {
        Some(Err(error)) => return Run::Failed(error.to_string()),
        Some(Ok(changed)) => changed,
        None => false,
    };
    let result = measure(work, side, workers, drain);
    if in_memory && let Err(error) = side.set_durable(true) {
        return Run::Failed(error.to_string());
    }
    match result {
        Ok(mut measurement) => {
            debug_assert!(
                measurement.verdict.is_some()
                    || measurement.unjudged.is_some()
                    || interrupt::requested(),
                "a run ends in a verdict, or says why not"
            );
            if in_memory {
                let note =
                    "no message had to survive a restart: it ran without the file that is flushed";
                measurement.notes.push(note.to_owned());
            }
            Run::Done(Box::new(measurement))
        }
        Err(Stop::Refused(why)) => Run::Refused(why),
        Err(Stop::Failed(why)) => Run::Failed(why),
    }
}

fn measure(
    work: &Work,
    side: &mut Side,
    workers: &[String],
    drain: Duration,
) -> Result<Measurement, Stop> {
    match work {
        Work::Load(plan) => load(plan, side, workers),
        Work::Fastest(plans) => fastest(plans, side, workers),
        Work::RoundTrips { target, size_bytes, span } => {
            let trips = round_trip::measure(target, side.pid(), *size_bytes, *span, drain)?;
            let mut found = found(format!("round trips of {size_bytes} B"), trips.verdict);
            found.closed_loop = true;
            found.latency(trips.latency.as_ref()).cost(trips.broker.as_ref());
            Ok(found)
        }
        Work::FirstMessage { target, size_bytes, rate, attempts } => {
            let first = first_message::measure(target, *size_bytes, *rate, *attempts)?;
            let mut found = found(format!("{attempts} subscribers, one by one"), first.verdict);
            found.set("connect_ms", first.times.map(|times| times.p50_us / 1e3));
            Ok(found)
        }
        Work::Spool(plan) => check(plan).and_then(|()| spooled(plan, side)),
        Work::Idle { target, plan } => clients(target, plan, side),
        Work::Stored { target, messages, size_bytes } => {
            stored_memory(target, *messages, *size_bytes, side, drain)
        }
        Work::Exchange(plan) => stock_exchange(plan, side),
        Work::Isolation(plan) => plan.check().map_err(Stop::Refused).and_then(|()| {
            let found = isolation::measure(plan, side.pid())?;
            Ok(isolated(&found))
        }),
        Work::Durability { plan, kill_after } => {
            check(plan).and_then(|()| killed(plan, *kill_after, side))
        }
    }
}

/// Why there is no measurement.
enum Stop {
    Refused(String),
    Failed(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error.to_string())
    }
}

fn check(plan: &Plan) -> Result<(), Stop> {
    plan.check().map_err(Stop::Refused)
}

/// A measurement without figures.
fn found(plan: String, verdict: impl Into<Option<Verdict>>) -> Measurement {
    Measurement { plan, verdict: verdict.into(), ..Measurement::default() }
}

impl Measurement {
    /// Adds a figure, if there is one.
    fn set(&mut self, key: &str, value: impl Into<Option<f64>>) -> &mut Measurement {
        debug_assert_eq!(crate::preset::metric(key).key, key, "results have known metrics only");
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            self.metrics.insert(key.to_owned(), value);
        }
        self
    }

    fn latency(&mut self, latency: Option<&Summary>) -> &mut Measurement {
        let Some(latency) = latency else { return self };
        self.set("mean_us", latency.mean_us)
            .set("p50_us", latency.p50_us)
            .set("p99_us", latency.p99_us)
            .set("p999_us", latency.p999_us)
            .set("max_us", latency.max_us)
    }

    fn cost(&mut self, cost: Option<&Cost>) -> &mut Measurement {
        let Some(cost) = cost else { return self };
        let per_s = cost.cpu_share / (cost.cpu_ns_per_message / 1e9).max(1e-12);
        let per_message = |rate: f64| rate / per_s.max(1e-9);
        let flushes = cost.disk_flushes_per_s.map(|flushes| per_message(flushes) * 1e3);
        self.set("broker_us", cost.cpu_ns_per_message / 1e3)
            .set("broker_cores", cost.cpu_share)
            .set("broker_mib", cost.rss_kib as f64 / 1024.0)
            .set("broker_mib_peak", cost.rss_peak_kib as f64 / 1024.0)
            .set("switches", per_message(cost.context_switches_per_s))
            .set("disk_bytes", per_message(cost.disk_bytes_per_s))
            .set("flushes", flushes)
    }
}

fn load(plan: &Plan, side: &mut Side, workers: &[String]) -> Result<Measurement, Stop> {
    check(plan)?;
    load::worker::check(plan, workers).map_err(Stop::Refused)?;
    let outcome = load::run_by(plan, workers, side.pid())?;
    Ok(measured(plan, &outcome))
}

fn fastest(plans: &[Plan], side: &mut Side, workers: &[String]) -> Result<Measurement, Stop> {
    let mut best: Option<Measurement> = None;
    let (mut ladder, mut verdict) = (Vec::new(), None::<Verdict>);
    for plan in plans {
        let next = load(plan, side, workers)?;
        if let Some(next) = &next.verdict {
            verdict = Some(verdict.map_or_else(|| next.clone(), |all| all.with(next)));
        }
        let rate = |it: &Measurement| it.metrics.get("out_rate").copied().unwrap_or(0.0);
        ladder.push(format!("{} groups: {:.0} msg/s", plan.producers, rate(&next)));
        if best.as_ref().is_none_or(|best| rate(&next) > rate(best)) {
            best = Some(next);
        }
    }
    let mut best = best.ok_or_else(|| Stop::Refused("no groups to try".to_owned()))?;
    best.notes.push(ladder.join(", "));
    // Messages that the slower ones lost count, too.
    best.verdict = verdict;
    Ok(best)
}

fn measured(plan: &Plan, outcome: &Outcome) -> Measurement {
    let mut found = found(outcome.plan.clone(), outcome.verdict.clone());
    let (rates, times) = (&outcome.rates, &outcome.times);
    found.latency(outcome.latency.as_ref()).cost(outcome.broker.as_ref());
    let counted = matches!(plan.end, End::Count(_));
    let (published, delivered) = (outcome.published as f64, outcome.messages as f64);
    if counted {
        found
            .set("publish_rate", published / times.publish_s)
            .set("duration", times.total_s)
            .set("transfer_rate", published / times.total_s);
        if plan.consumers > 0 {
            let receive_s = if times.receive_s > 0.0 { times.receive_s } else { times.total_s };
            found
                .set("receive_rate", delivered / receive_s)
                .set("out_rate", delivered / times.total_s)
                .set("bandwidth", delivered * plan.size_bytes as f64 / times.total_s / 1e6);
        } else {
            // Messages in socket buffers are not published yet.
            found
                .set("publish_rate", published / times.total_s)
                .set("bandwidth", published * plan.size_bytes as f64 / times.total_s / 1e6);
        }
    } else {
        found
            .set("publish_rate", rates.published)
            .set("out_rate", rates.delivered)
            .set("bandwidth", rates.delivered_bytes / 1e6)
            .set("slowest_second", rates.second_min);
    }
    if plan.window > 0 {
        let total = outcome.confirmed as f64 / times.total_s;
        found.set("confirm_rate", if counted { total } else { rates.confirmed });
    }
    let confirm = outcome.confirm_latency.as_ref();
    found
        .set("confirm_p50_us", confirm.map(|confirm| confirm.p50_us))
        .set("confirm_p99_us", confirm.map(|confirm| confirm.p99_us))
        .set("tool_us", outcome.tool.cpu_ns_per_message / 1e3)
        .set("publisher_cores", outcome.tool.producers_share)
        .set("consumer_cores", outcome.tool.consumers_share);
    travels(&mut found, &outcome.travels_us);
    let waits = plan.window > 0 || plan.ahead > 0 || plan.commit_publishes > 0;
    Measurement {
        unjudged: outcome.unjudged.clone(),
        persistent: plan.persistent,
        bottleneck: Some(outcome.bottleneck),
        schedule: outcome.schedule.clone(),
        closed_loop: plan.rate == 0 && waits,
        saturated: plan.rate == 0 && !waits,
        clock_error_us: outcome.clock_error_us,
        travels_us: thin(&outcome.travels_us),
        travel_group: travel_group(plan, outcome.travels_us.len()),
        seconds: outcome.seconds.iter().take(SECONDS_MAX).cloned().collect(),
        notes: outcome.cut_off.iter().map(|why| format!("cut off: {why}")).collect(),
        ..found
    }
}

fn travels(found: &mut Measurement, travels: &[f32]) {
    let third = travels.len() / 3;
    if third == 0 {
        return;
    }
    let mean = |part: &[f32]| part.iter().copied().map(f64::from).sum::<f64>() / part.len() as f64;
    let (first, last) = (mean(&travels[..third]), mean(&travels[travels.len() - third..]));
    found
        .set("first_third_us", first)
        .set("last_third_us", last)
        .set("growth", last / first.max(1e-9));
}

/// At most `TRAVELS_MAX` means, each over an equal number of groups.
fn thin(travels: &[f32]) -> Vec<f32> {
    let share = travels.len().div_ceil(TRAVELS_MAX).max(1);
    travels.chunks(share).map(|part| part.iter().sum::<f32>() / part.len() as f32).collect()
}

fn travel_group(plan: &Plan, groups: usize) -> u64 {
    u64::from(plan.travel_group) * groups.div_ceil(TRAVELS_MAX).max(1) as u64
}

fn spooled(plan: &Plan, side: &mut Side) -> Result<Measurement, Stop> {
    let outcome = backlog::measure(plan, side.pid())?;
    let plan_text = format!("{}, first in, then out", plan.describe());
    let mut found = found(plan_text, outcome.verdict);
    let peak = outcome.broker_draining.map(|cost| cost.rss_peak_kib as f64 / 1024.0);
    found
        .cost(outcome.broker_filling.as_ref())
        .set("spool_rate", outcome.fill_rate)
        .set("unspool_rate", outcome.drain_rate)
        .set("bandwidth", outcome.fill_bytes / 1e6)
        .set("broker_mib_peak", peak);
    Ok(Measurement { persistent: plan.persistent, closed_loop: true, ..found })
}

fn process(side: &Side) -> Result<u32, Stop> {
    let why = "the broker's process cannot be seen from here";
    side.pid().ok_or_else(|| Stop::Refused(why.to_owned()))
}

fn clients(target: &Target, plan: &IdlePlan, side: &mut Side) -> Result<Measurement, Stop> {
    let cost = idle::measure(target, process(side)?, plan)?;
    let mut waves = cost.waves_ms;
    waves.sort_by(f64::total_cmp);
    let median = waves.get(waves.len() / 2).copied();
    let connections = plan.connections;
    let mut found = found(format!("{connections} idle clients, each subscribed"), cost.verdict);
    found
        .set("kib_each", cost.kib_per_connection)
        .set("opened_rate", cost.opened_per_s)
        .set("idle_cores", cost.idle_cpu_share)
        .set("wave_ms", median)
        .set("wave_rate", median.map(|median| connections as f64 / (median / 1e3)))
        .set("storm_ms", cost.storm_ms);
    Ok(found)
}

fn stored_memory(
    target: &Target,
    messages: u64,
    size_bytes: usize,
    side: &mut Side,
    drain: Duration,
) -> Result<Measurement, Stop> {
    let stores = [Protocol::Amqp091, Protocol::Amqp10, Protocol::JetStream, Protocol::Resp];
    if !stores.contains(&target.protocol()) {
        let why =
            format!("{} stores no messages without a consumer here", target.protocol().name());
        return Err(Stop::Refused(why));
    }
    let stored = backlog::memory_per_message(target, process(side)?, messages, size_bytes, drain)?;
    let plan = format!("{messages} messages of {size_bytes} B in one queue");
    let mut found = found(plan, stored.verdict);
    found.set("bytes_each", stored.bytes_each).set("broker_mib", stored.after_kib as f64 / 1024.0);
    Ok(found)
}

fn stock_exchange(plan: &ExchangePlan, side: &mut Side) -> Result<Measurement, Stop> {
    let outcome = exchange::measure(plan, side.pid())?;
    let segments = &outcome.segments;
    let span_s = plan.orders as f64 / outcome.orders_in.max(1e-9);
    let mut found = found(format!("{} orders", plan.orders), outcome.verdict);
    found
        .latency(outcome.completion.as_ref())
        .cost(outcome.broker.as_ref())
        .set("orders_in", outcome.orders_in)
        .set("orders_out", outcome.orders_out)
        .set("quotes_out", outcome.quotes_out)
        .set("gateway_cores", outcome.gateway_share)
        .set("engine_cores", outcome.engine_share)
        .set("segments_each", segments.sent as f64 / plan.orders.max(1) as f64)
        .set("segment_bytes", segments.mean_bytes())
        .set("segment_gap_us", span_s * 1e6 / segments.sent.max(1) as f64);
    found.schedule = outcome.lag.map(|lag| load::Schedule {
        rate: plan.rate as f64,
        achieved_part: outcome.orders_in / plan.rate.max(1) as f64,
        tool_kept: outcome.completion.is_some(),
        lag,
    });
    found.closed_loop = plan.rate == 0;
    Ok(found)
}

fn isolated(outcome: &isolation::Isolation) -> Measurement {
    let beside = &outcome.beside;
    let verdict = outcome.verdicts().cloned().reduce(|all, verdict| all.with(&verdict));
    let mut found = found(format!("{}, beside misbehaving clients", beside.plan), verdict);
    found
        .latency(beside.latency.as_ref())
        .cost(beside.broker.as_ref())
        .set("rate_left", outcome.rate_part * 100.0)
        .set("out_rate", beside.rates.delivered)
        .set("cut_off", outcome.cut_off as f64)
        .set("p99_times", outcome.p99_times)
        .set("p99_times_control", outcome.p99_times_control)
        .set("p99_control_us", outcome.control.latency.as_ref().map(|latency| latency.p99_us));
    let (schedule, bottleneck) = (beside.schedule.clone(), Some(beside.bottleneck));
    Measurement { schedule, bottleneck, ..found }
}

fn killed(plan: &Plan, kill_after: Duration, side: &mut Side) -> Result<Measurement, Stop> {
    let level = side.level();
    let survives_kills = !matches!(level, Level::AtMostOnce | Level::Memory);
    let Some(peer) = side.peer_mut() else {
        return Err(Stop::Refused("only a broker that this tool started can be killed".to_owned()));
    };
    let outcome = durability::measure(plan, kill_after, peer)?;
    let faults = outcome.faults(survives_kills, level == Level::Flushed);
    let loss = outcome.loss().filter(|_| !survives_kills);
    let mut found = found(format!("{}, killed", plan.describe()), outcome.verdict);
    found
        .set("confirmed", outcome.confirmed as f64)
        .set("confirmed_lost", outcome.confirmed_lost as f64)
        .set("restart_ms", outcome.restart_ms)
        .set("flushes_per_confirm", outcome.flushes_per_confirm);
    let mut notes = Vec::new();
    if outcome.unconfirmed_kept > 0 {
        let count = outcome.unconfirmed_kept;
        notes.push(format!("{count} messages that it had not confirmed were there, too"));
    }
    if let Some(loss) = loss {
        notes.push(format!("{loss}, as its confirms allow: they mean '{}'", level.name()));
    }
    let loss_allowed = !survives_kills;
    Ok(Measurement { persistent: true, loss_allowed, faults, notes, closed_loop: true, ..found })
}
