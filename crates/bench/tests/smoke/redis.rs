//! Redis: channels and streams, with a faulty fake, and with the real server on request.

use crate::fake::Fault;
use crate::fake_redis;
use crate::streams::{
    self, Folder, MESSAGES, PATIENCE, check_kill, check_refused, check_shapes, measure_others,
    verdict,
};
use angarium_bench::client::amqp091::Argument;
use angarium_bench::client::{Acks, Head, Link, Receiver, Route, Session, Source, Target};
use angarium_bench::load::durability::RestartableBroker;
use angarium_bench::load::{self, End, Plan};
use angarium_bench::peer::{Kind, Peer, Programs};
use std::time::Duration;

fn direct(port: u16) -> Plan {
    streams::direct("redis", port)
}

fn kept(port: u16) -> Plan {
    streams::kept("redis", port)
}

/// Every load shape that Redis supports, and the deliveries per message.
fn shapes(port: u16) -> Vec<(Plan, u64)> {
    let mut shapes = streams::shapes("redis", port);
    let committed = || Plan { window: 0, commit_publishes: 10, ..kept(port) };
    shapes.extend([
        // The answers are not awaited.
        (Plan { window: 0, ack_every: 1, ..kept(port) }, 1),
        // Transactions on both sides.
        (committed(), 1),
        (Plan { commit_acks: true, ..committed() }.fanned_out(2), 2),
    ]);
    shapes
}

#[test]
fn an_honest_one_is_clean_in_every_shape() {
    let redis = fake_redis::start(Fault::None);
    check_shapes(shapes(redis.port));
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

/// Counts deliveries, and those that another consumer had before.
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

/// A group member that takes `count` entries and acknowledges all of them, or vanishes.
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

/// Entries of a vanished consumer go to another one, marked as redelivered; `between` runs in between.
fn check_claims(target: &Target, between: impl FnOnce()) {
    let mut link = Link::open(target).expect("it listens");
    let (name, filter) = ("group", "stream");
    let session = Session { name, filter, durable: true, fan_out: false, acks: Acks::UpTo };
    link.declare_session(&session).expect("it has groups");
    link.select_confirms().expect("it has confirms");
    let route = Route { exchange: "", key: "stream", persistent: true };
    let mut message = Vec::new();
    link.encode(&route, b"body", &mut message);
    (0..200).for_each(|_| link.write(&message).expect("it goes on"));
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
        peer.restart().expect("it starts again");
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
    let check = |plan: Plan, wanted: &str| check_refused(&plan, wanted);
    check(Plan { consumers: 2, ..direct(1) }, "no groups");
    check(Plan { ack_every: 1, ..direct(1) }, "in streams only");
    check(Plan { spread: 10, ..kept(1) }, "no patterns");
    check(Plan { bystanders: 10, ..kept(1) }, "no patterns");
    check(Plan { commit_publishes: 10, ..kept(1) }, "not both");
    let arguments = vec![("a".to_owned(), Argument::Integer(1))];
    check(Plan { queue_arguments: arguments, ..kept(1) }, "no queue arguments");
}

#[test]
fn the_other_measurements_go_through_channels_and_streams() {
    let redis = fake_redis::start(Fault::None);
    measure_others(&kept(redis.port), std::process::id());
}

fn start(folder: &Folder) -> Peer {
    Peer::start(Kind::Redis, &Programs::default(), &folder.0).expect("redis-server is installed")
}

#[test]
#[ignore = "needs redis-server: cargo xtask test --only redis"]
fn the_real_one_is_clean_in_every_shape() {
    let folder = Folder::new("shapes");
    let peer = start(&folder);
    check_shapes(shapes(peer.targets()[0].port()));
    measure_others(&kept(peer.targets()[0].port()), peer.pid());
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
    check_kill(kept(peer.targets()[0].port()), &mut peer);
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
