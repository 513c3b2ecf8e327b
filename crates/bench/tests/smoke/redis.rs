//! Redis: channels and streams, of a fake with faults, and of the real one where it is asked for.

use crate::fake::Fault;
use crate::fake_redis::{self, Redis};
use angarium_bench::client::amqp091::Argument;
use angarium_bench::client::{Acks, Head, Link, Receiver, Route, Session, Source, Target};
use angarium_bench::exchange::{self, ExchangePlan};
use angarium_bench::load::durability::{self, Mortal};
use angarium_bench::load::first;
use angarium_bench::load::idle::{self, IdlePlan};
use angarium_bench::load::spool;
use angarium_bench::load::stored;
use angarium_bench::load::{self, End, Plan, Verdict, round_trip};
use angarium_bench::peer::{Kind, Peer, Programs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Messages of a run.
const MESSAGES: u64 = 5_000;
/// How long a disk, or a machine, may do nothing for us while others keep it busy.
const PATIENCE: Duration = Duration::from_secs(20);

fn direct(port: u16) -> Plan {
    let target = format!("redis://127.0.0.1:{port}").parse().expect("it is an address");
    Plan {
        end: End::Count(MESSAGES),
        drain: Duration::from_millis(300),
        checksum: true,
        ahead: 500,
        ..Plan::new(target)
    }
}

/// Streams, with everything that is confirmed and acknowledged.
fn kept(port: u16) -> Plan {
    Plan { persistent: true, window: 50, ack_every: 7, prefetch: 100, ahead: 0, ..direct(port) }
}

fn verdict(plan: &Plan) -> Verdict {
    let outcome = load::run(plan, None).unwrap_or_else(|error| panic!("{plan:?}: {error}"));
    assert_eq!(outcome.cut_off, Vec::<String>::new(), "{plan:?}");
    let waits = plan.window > 0 || plan.commit_publishes > 0;
    let confirmed = if waits { MESSAGES } else { 0 };
    assert_eq!((outcome.published, outcome.confirmed, outcome.refused), (MESSAGES, confirmed, 0));
    outcome.verdict.expect("there are consumers")
}

/// Every shape of a load that a Redis can have, and how many deliveries each makes of a message.
fn shapes(port: u16) -> Vec<(Plan, u64)> {
    vec![
        (direct(port), 1),
        (Plan { latency: true, ..direct(port) }.in_pairs(3), 1),
        (direct(port).fanned_out(4), 4),
        (Plan { spread: 100, ..direct(port) }, 1),
        (Plan { bystanders: 100, size_bytes: 20_000, ..direct(port) }, 1),
        (kept(port), 1),
        (Plan { latency: true, size_bytes: 20_000, ..kept(port) }.in_pairs(2), 1),
        (kept(port).fanned_out(3), 3),
        // Members of a group share what is in their stream.
        (Plan { consumers: 3, ..kept(port) }, 1),
        // Confirmed, and gone once it was read.
        (Plan { persistent: false, ack_every: 0, prefetch: 0, ..kept(port) }, 1),
        // Nobody waits for the answers.
        (Plan { window: 0, ack_every: 1, ..kept(port) }, 1),
        // Transactions of both sides.
        (Plan { window: 0, commit_publishes: 10, ..kept(port) }, 1),
        (
            Plan { window: 0, commit_publishes: 10, commit_acks: true, ..kept(port) }.fanned_out(2),
            2,
        ),
    ]
}

fn check_shapes(port: u16) {
    for (plan, copies) in shapes(port) {
        let plan = Plan { drain: PATIENCE, ..plan };
        let verdict = verdict(&plan);
        assert!(verdict.is_clean(), "{}: {verdict:?}", plan.describe());
        assert_eq!(verdict.delivered, MESSAGES * copies, "{}", plan.describe());
    }
}

#[test]
fn an_honest_one_is_clean_in_every_shape() {
    let redis = fake_redis::start(Fault::None);
    check_shapes(redis.port);
    assert_eq!(redis.streams(), 0, "what was declared is deleted");
}

#[test]
fn what_is_delivered_is_acknowledged_to_the_last() {
    let redis = fake_redis::start(Fault::None);
    assert!(verdict(&Plan { drain: PATIENCE, ..kept(redis.port) }).is_clean());
    assert_eq!(redis.acknowledged(), MESSAGES);
}

#[test]
fn one_with_a_fault_is_found_out_for_exactly_that() {
    for (what, shape) in [("channels", direct as fn(u16) -> Plan), ("streams", kept)] {
        crate::check_faults(what, 1, |fault| Plan {
            ahead: 0,
            drain: Duration::from_secs(1),
            ..shape(fake_redis::start(fault).port)
        });
    }
}

#[test]
fn one_that_is_merely_slow_has_lost_nothing() {
    for shape in [direct, kept] {
        let redis = fake_redis::start(Fault::Pause);
        let verdict = verdict(&Plan { drain: Duration::from_millis(200), ..shape(redis.port) });
        assert!(verdict.is_clean(), "{verdict:?}");
    }
}

/// Counts what comes, and what of it somebody else had before.
#[derive(Default)]
struct Came {
    count: u64,
    redelivered: u64,
    last: Head,
}

impl Receiver for Came {
    fn begin(&mut self, head: Head) {
        (self.count, self.last) = (self.count + 1, head);
        self.redelivered += u64::from(head.redelivered);
    }
}

/// A member of a group that has taken so many entries and acknowledges all of them, or vanishes.
fn consume(target: &Target, count: u64, acknowledges: bool) -> Came {
    let mut link = Link::open(target).expect("it listens");
    let source = Source { session: Some("group"), auto_ack: false, ..Source::plain("stream") };
    link.subscribe(&source, 60).expect("it takes subscribers");
    let mut came = Came::default();
    while came.count < count {
        assert!(link.fill().expect("it goes on") > 0);
        link.parse(&mut came).expect("it makes sense");
        if acknowledges {
            let (mut out, tag) = (Vec::new(), came.last.tag);
            link.encode_ack(&mut out, tag, true);
            link.write(&out).expect("it goes on");
        }
    }
    if acknowledges {
        link.send_end().and_then(|()| link.expect_end(&mut came)).expect("it answers");
        link.close().expect("it takes the last acknowledgements");
    }
    came
}

/// What a consumer had that went away is another's, who is told so; `between` the two.
fn check_claims(target: &Target, between: impl FnOnce()) {
    let mut link = Link::open(target).expect("it listens");
    let (name, filter) = ("group", "stream");
    let session = Session { name, filter, durable: true, fan_out: false, acks: Acks::UpTo };
    link.declare_session(&session).expect("it has groups");
    link.select_confirms().expect("it has confirms");
    let route = Route { exchange: "", key: "stream", persistent: true };
    (0..200).for_each(|_| link.publish(&route, b"body").expect("it goes on"));
    link.send_end().and_then(|()| link.expect_end(&mut ())).expect("it answers");
    let gone = consume(target, 60, false);
    assert_eq!((gone.count, gone.redelivered), (60, 0));
    between();
    let came = consume(target, 200, true);
    assert_eq!((came.count, came.redelivered), (200, 60));
}

#[test]
fn what_lies_with_a_consumer_that_is_gone_is_claimed() {
    let redis = fake_redis::start(Fault::None);
    check_claims(&direct(redis.port).target, || {});
    assert_eq!(redis.acknowledged(), 200);
}

#[test]
#[ignore = "needs redis-server: cargo xtask test --only redis"]
fn what_lies_with_a_consumer_of_the_real_one_is_claimed_after_a_kill_too() {
    let folder = Folder::new("claimed");
    let mut peer = start(&folder);
    let target = peer.targets()[0].clone();
    check_claims(&target, || {});
    let left = open(&peer).ask(&["XPENDING", "stream", "group", "-", "+", "1"]);
    assert_eq!(left.expect("it answers"), "", "all are acknowledged");
    open(&peer).ask(&["UNLINK", "stream"]).expect("it answers");
    check_claims(&target, || {
        peer.kill().expect("it runs");
        peer.revive().expect("it starts again");
    });
}

#[test]
fn a_subscriber_that_is_cut_off_is_named_and_what_it_missed_is_lost() {
    let redis = fake_redis::start(Fault::CutOff);
    let outcome =
        load::run(&Plan { ahead: 0, ..direct(redis.port) }, None).expect("it is served on");
    assert_eq!(outcome.cut_off.len(), 1, "{outcome:?}");
    let verdict = outcome.verdict.expect("there is a consumer");
    assert!(verdict.lost > 0 && verdict.lost == verdict.expected - verdict.delivered);
}

#[test]
fn what_its_model_lacks_is_said() {
    let check = |plan: Plan, wanted: &str| {
        let why = plan.check().expect_err(wanted);
        assert!(why.contains(wanted), "{why}");
    };
    check(Plan { consumers: 2, ..direct(1) }, "no groups");
    check(Plan { ack_every: 1, ..direct(1) }, "in streams only");
    check(Plan { spread: 10, ..kept(1) }, "no patterns");
    check(Plan { bystanders: 10, ..kept(1) }, "no patterns");
    check(Plan { commit_publishes: 10, ..kept(1) }, "not both");
    let arguments = vec![("a".to_owned(), Argument::Integer(1))];
    check(Plan { queue_arguments: arguments, ..kept(1) }, "no arguments");
}

#[test]
fn the_other_measurements_go_through_channels_and_streams() {
    check_others(&fake_redis::start(Fault::None));
}

fn check_others(redis: &Redis) {
    let plan = direct(redis.port);
    measure_others(&plan.target, std::process::id());
    let spooled =
        spool::measure(&Plan { drain: PATIENCE, ..kept(redis.port) }, None).expect("it answers");
    assert!(spooled.verdict.is_clean(), "{:?}", spooled.verdict);
}

/// Has every measurement but loads and spools of a broker that has direct messages and kept ones.
pub(crate) fn measure_others(target: &Target, pid: u32) {
    let trips = round_trip::measure(target, None, 100, Duration::from_millis(100), PATIENCE);
    let trips = trips.expect("it answers");
    assert!(trips.verdict.is_clean() && trips.latency.is_some_and(|latency| latency.count > 0));
    let idle = IdlePlan { waves: 2, storm: true, ..IdlePlan::of(50) };
    let cost = idle::measure(target, pid, &idle).expect("it answers");
    assert!(cost.waves_ms.len() == 2 && cost.waves_ms.iter().all(|ms| *ms > 0.0));
    assert!(cost.verdict.is_clean() && cost.verdict.delivered == 150, "{:?}", cost.verdict);
    let stored = stored::measure(target, pid, 2_000, 100, PATIENCE).expect("it answers");
    let verdict = stored.verdict.expect("it was not broken off");
    assert!(verdict.is_clean() && verdict.delivered == 2_001, "{verdict:?}");
    let first = first::measure(target, 100, 2_000, 5).expect("it answers");
    assert!(first.times.is_some() && first.verdict.is_clean(), "{:?}", first.verdict);
    let plan = ExchangePlan { target: target.clone(), rate: 0, orders: 2_000, coalesce: false };
    let outcome = exchange::measure(&plan, None).expect("it answers");
    assert!(outcome.verdict.is_clean(), "{:?}", outcome.verdict);
}

/// A folder that is empty and goes with what is in it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let name = format!("kept-{name}-{}", std::process::id());
        // Under target/ and not under a temporary folder, which may be memory.
        Folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What could not be removed is found there.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn start(folder: &Folder) -> Peer {
    Peer::start(Kind::Redis, &Programs::default(), &folder.0).expect("redis-server is installed")
}

#[test]
#[ignore = "needs redis-server: cargo xtask test --only redis"]
fn the_real_one_is_clean_in_every_shape() {
    let folder = Folder::new("shapes");
    let peer = start(&folder);
    check_shapes(peer.targets()[0].port());
    measure_others(&peer.targets()[0], peer.pid());
    let keys = open(&peer).ask(&["RANDOMKEY"]).expect("it answers");
    assert_eq!(keys, "", "what was declared is deleted");
}

#[test]
#[ignore = "needs redis-server: cargo xtask test --only redis"]
fn the_real_one_keeps_no_more_of_a_stream_than_what_is_not_acknowledged() {
    let folder = Folder::new("trim");
    let peer = start(&folder);
    let plan = Plan {
        end: End::Count(100_000),
        drain: PATIENCE,
        window: 1_000,
        ack_every: 50,
        size_bytes: 1_024,
        ..kept(peer.targets()[0].port())
    };
    let outcome = load::run(&plan.fanned_out(2), None).expect("it answers");
    assert!(outcome.verdict.is_some_and(|verdict| verdict.is_clean()));
    let info = open(&peer).ask(&["INFO", "memory"]).expect("it answers");
    let peak = info.lines().find_map(|line| line.strip_prefix("used_memory_peak:"));
    let peak: u64 = peak.expect("it is said").trim().parse().expect("a number");
    assert!(peak < 60 << 20, "{peak} octets at most, of 100 MiB that went through");
}

#[test]
#[ignore = "needs redis-server: cargo xtask test --only redis"]
fn what_the_real_one_confirmed_is_there_after_a_kill() {
    let folder = Folder::new("killed");
    let mut peer = start(&folder);
    let plan =
        Plan { end: End::Count(u64::MAX / 2), drain: PATIENCE, ..kept(peer.targets()[0].port()) };
    let plan = plan.in_pairs(2);
    let kill_after = Duration::from_millis(300);
    let found = durability::measure(&plan, kill_after, &mut peer).expect("it comes back");
    assert!(found.confirmed > 0 && found.confirmed_lost == 0, "{found:?}");
    assert_eq!(found.faults(true), Vec::<String>::new());
}

#[test]
#[ignore = "needs redis-server: cargo xtask test --only redis"]
fn the_real_one_flushes_what_is_to_be_durable_and_nothing_else() {
    let folder = Folder::new("durable");
    let mut peer = start(&folder);
    let says = |peer: &Peer| {
        let info = open(peer).ask(&["INFO", "persistence"]).expect("it answers");
        info.lines().any(|line| line.trim_end() == "aof_enabled:1")
    };
    assert!(says(&peer));
    assert!(peer.set_durable(false).expect("it answers") && !says(&peer));
    assert!(peer.set_durable(true).expect("it answers") && says(&peer));
    let plan = Plan { drain: PATIENCE, ..kept(peer.targets()[0].port()) };
    assert!(verdict(&plan).is_clean());
    assert!(peer.version().starts_with(|digit: char| digit.is_ascii_digit()), "{}", peer.version());
    assert!(peer.configuration().contains("appendfsync always"), "{}", peer.configuration());
}

fn open(peer: &Peer) -> angarium_bench::client::resp::Connection {
    match Link::open(&peer.targets()[0]).expect("it listens") {
        Link::Resp(connection) => connection,
        link => panic!("{:?}", link.protocol()),
    }
}
