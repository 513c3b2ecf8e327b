//! Checks that are common to brokers with direct messages and streams, and the folders of real brokers.

use angarium_bench::exchange::{self, ExchangePlan};
use angarium_bench::load::durability;
use angarium_bench::load::idle::{self, IdlePlan};
use angarium_bench::load::{self, End, Plan, Verdict, backlog, first_message, round_trip};
use angarium_bench::peer::Peer;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Messages of a run.
pub(crate) const MESSAGES: u64 = 5_000;
/// How long a disk or a busy machine may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Direct messages through the broker of this scheme at this port.
pub(crate) fn direct(scheme: &str, port: u16) -> Plan {
    let target = format!("{scheme}://127.0.0.1:{port}").parse().expect("it is an address");
    Plan {
        end: End::Count(MESSAGES),
        drain: Duration::from_millis(300),
        checksum: true,
        ahead: 500,
        ..Plan::new(target)
    }
}

/// Streams with confirms and acknowledgements.
pub(crate) fn kept(scheme: &str, port: u16) -> Plan {
    let direct = direct(scheme, port);
    Plan { persistent: true, window: 50, ack_every: 7, prefetch: 100, ahead: 0, ..direct }
}

pub(crate) fn verdict(plan: &Plan) -> Verdict {
    let outcome = load::run(plan, None).unwrap_or_else(|error| panic!("{plan:?}: {error}"));
    assert_eq!(outcome.cut_off, Vec::<String>::new(), "{plan:?}");
    let waits = plan.window > 0 || plan.commit_publishes > 0;
    let confirmed = if waits { MESSAGES } else { 0 };
    assert_eq!((outcome.published, outcome.confirmed, outcome.refused), (MESSAGES, confirmed, 0));
    outcome.verdict.expect("there are consumers")
}

/// Load shapes that all of them support, and the deliveries per message.
pub(crate) fn shapes(scheme: &str, port: u16) -> Vec<(Plan, u64)> {
    let (direct, kept) = (|| direct(scheme, port), || kept(scheme, port));
    vec![
        (direct(), 1),
        (Plan { latency: true, ..direct() }.in_pairs(3), 1),
        (direct().fanned_out(4), 4),
        (Plan { spread: 100, ..direct() }, 1),
        (Plan { bystanders: 100, size_bytes: 20_000, ..direct() }, 1),
        (kept(), 1),
        (Plan { latency: true, size_bytes: 20_000, ..kept() }.in_pairs(2), 1),
        (kept().fanned_out(3), 3),
        // Readers of one stream share its entries.
        (Plan { consumers: 3, ..kept() }, 1),
        // Confirmed, and removed once read.
        (Plan { persistent: false, ack_every: 0, prefetch: 0, ..kept() }, 1),
    ]
}

/// Runs each plan and checks its deliveries per message.
pub(crate) fn check_shapes(shapes: Vec<(Plan, u64)>) {
    for (plan, copies) in shapes {
        let plan = Plan { drain: PATIENCE, ..plan };
        let verdict = verdict(&plan);
        assert!(verdict.is_clean(), "{}: {verdict:?}", plan.describe());
        assert_eq!(verdict.delivered, MESSAGES * copies, "{}", plan.describe());
    }
}

/// Checks that a plan is refused for a reason with these words.
pub(crate) fn check_refused(plan: &Plan, wanted: &str) {
    let why = plan.check().expect_err(wanted);
    assert!(why.contains(wanted), "{why}");
}

/// Runs every measurement other than loads, on streams of this plan and on direct messages.
pub(crate) fn measure_others(kept: &Plan, pid: u32) {
    let target = &kept.target;
    let trips = round_trip::measure(target, None, 100, Duration::from_millis(100), PATIENCE);
    let trips = trips.expect("it answers");
    assert!(trips.verdict.is_clean() && trips.latency.is_some_and(|latency| latency.count > 0));
    let idle = IdlePlan { waves: 2, storm: true, ..IdlePlan::of(50) };
    let cost = idle::measure(target, pid, &idle).expect("it answers");
    assert!(cost.waves_ms.len() == 2 && cost.waves_ms.iter().all(|ms| *ms > 0.0));
    assert!(cost.verdict.is_clean() && cost.verdict.delivered == 150, "{:?}", cost.verdict);
    let stored =
        backlog::memory_per_message(target, pid, 2_000, 100, PATIENCE).expect("it answers");
    let verdict = stored.verdict.expect("it was not broken off");
    assert!(verdict.is_clean() && verdict.delivered == 2_001, "{verdict:?}");
    let first = first_message::measure(target, 100, 2_000, 5).expect("it answers");
    assert!(first.times.is_some() && first.verdict.is_clean(), "{:?}", first.verdict);
    let plan = ExchangePlan { target: target.clone(), rate: 0, orders: 2_000, coalesce: false };
    let outcome = exchange::measure(&plan, None).expect("it answers");
    assert!(outcome.verdict.is_clean(), "{:?}", outcome.verdict);
    let spooled = backlog::measure(&Plan { drain: PATIENCE, ..kept.clone() }, None);
    let verdict = spooled.expect("it answers").verdict;
    assert!(verdict.is_clean(), "{verdict:?}");
}

/// Checks that confirmed messages of this plan survive a kill.
pub(crate) fn check_kill(kept: Plan, peer: &mut Peer) {
    let plan = Plan { end: End::Count(u64::MAX / 2), drain: PATIENCE, ..kept }.in_pairs(2);
    let kill_after = Duration::from_millis(300);
    let found = durability::measure(&plan, kill_after, peer).expect("it comes back");
    assert!(found.confirmed > 0 && found.confirmed_lost == 0, "{found:?}");
    assert_eq!(found.faults(true, true), Vec::<String>::new());
}

/// An empty folder, removed with its content on drop.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let name = format!("kept-{name}-{}", std::process::id());
        // Under target/, as a temporary folder may be in memory.
        Folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whatever could not be removed stays there.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
