//! NATS with JetStream: subjects and streams, with a faulty fake, and with the real server on request.

use crate::fake::Fault;
use crate::fake_nats;
use crate::streams::{
    self, Folder, MESSAGES, PATIENCE, check_kill, check_refused, check_shapes, measure_others,
    verdict,
};
use angarium_bench::client::amqp091::Argument;
use angarium_bench::client::{Link, Route, Target};
use angarium_bench::load::{self, Plan};
use angarium_bench::peer::{Kind, Peer, Programs};
use std::path::Path;
use std::time::Duration;

fn direct(port: u16) -> Plan {
    streams::direct("jetstream", port)
}

fn kept(port: u16) -> Plan {
    streams::kept("jetstream", port)
}

/// Every load shape that JetStream supports, and the deliveries per message.
fn shapes(port: u16) -> Vec<(Plan, u64)> {
    let mut shapes = streams::shapes("jetstream", port);
    shapes.extend([
        (Plan { consumers: 4, queues: 2, ..direct(port) }, 1),
        (Plan { ack_every: 1, prefetch: 3, ..kept(port) }, 1),
        (Plan { persistent: false, ack_every: 0, prefetch: 0, ..kept(port) }.fanned_out(2), 2),
    ]);
    shapes
}

#[test]
fn an_honest_one_is_clean_in_every_shape() {
    let nats = fake_nats::start(Fault::None);
    check_shapes(shapes(nats.port));
    assert_eq!(nats.streams(|it| it.count()), 0, "what was declared is deleted");
}

#[test]
fn what_is_delivered_is_acknowledged_to_the_last() {
    for (acks, plan) in [
        (1, Plan { ack_every: 1, ..kept(0) }),
        (1, kept(0)),
        (1, Plan { consumers: 3, ..kept(0) }),
        (2, kept(0).fanned_out(2)),
    ] {
        let nats = fake_nats::start(Fault::None);
        let target = direct(nats.port).target;
        assert!(verdict(&Plan { drain: PATIENCE, target, ..plan }).is_clean());
        assert_eq!(nats.streams(|it| it.acknowledged()), acks * MESSAGES);
    }
}

#[test]
fn only_what_is_to_outlive_a_restart_is_kept_in_files() {
    let nats = fake_nats::start(Fault::None);
    for (persistent, durable_queues) in [(true, true), (true, false), (false, true)] {
        let plan = Plan { persistent, durable_queues, drain: PATIENCE, ..kept(nats.port) };
        assert!(verdict(&plan).is_clean());
    }
    assert_eq!(nats.streams(|it| it.made.clone()), [true, false, false]);
}

#[test]
fn one_with_a_fault_is_found_out_for_exactly_that() {
    for (what, shape) in [("subjects", direct as fn(u16) -> Plan), ("streams", kept)] {
        crate::check_faults(what, 1, |fault| Plan {
            ahead: 0,
            drain: Duration::from_secs(1),
            ..shape(fake_nats::start(fault).port)
        });
    }
}

#[test]
fn what_its_model_lacks_is_said() {
    let check = |plan: Plan, wanted: &str| check_refused(&plan, wanted);
    check(Plan { window: 0, ..kept(1) }, "confirmed ones");
    check(Plan { ack_every: 1, ..direct(1) }, "in streams only");
    check(Plan { spread: 10, ..kept(1) }, "no patterns");
    check(Plan { bystanders: 10, ..kept(1) }, "no patterns");
    check(Plan { commit_publishes: 10, ..kept(1) }, "no transactions");
    check(Plan { commit_acks: true, ..kept(1) }, "no transactions");
    let arguments = vec![("a".to_owned(), Argument::Integer(1))];
    check(Plan { queue_arguments: arguments, ..kept(1) }, "no queue arguments");
    assert!(direct(1).describe().ends_with("at most once"), "{}", direct(1).describe());
    assert!(kept(1).describe().contains("confirm window 50"), "{}", kept(1).describe());
}

#[test]
fn the_other_measurements_go_through_subjects_and_streams() {
    let nats = fake_nats::start(Fault::None);
    measure_others(&kept(nats.port), std::process::id());
    assert_eq!(nats.streams(|it| it.count()), 0, "what was declared is deleted");
}

/// The server named by the environment, or an installed one.
fn programs() -> Programs {
    let named = std::env::var_os("NATS_SERVER");
    named.map_or_else(Programs::default, |path| Programs::of_one(Kind::Nats, Path::new(&path)))
}

fn start(folder: &Folder) -> Peer {
    let peer = Peer::start_for(Kind::Nats, "jetstream", &programs(), &folder.0);
    peer.expect("nats-server is installed")
}

#[test]
#[ignore = "needs nats-server: cargo xtask test --only jetstream"]
fn the_real_one_is_clean_in_every_shape() {
    let folder = Folder::new("jetstream-shapes");
    let peer = start(&folder);
    let target = &peer.targets()[0];
    check_shapes(shapes(target.port()));
    measure_others(&kept(target.port()), peer.pid());
    assert!(peer.configuration().contains("sync_interval: always"), "{}", peer.configuration());
    // It keeps a folder per existing stream, and renames the folder before it removes it.
    let streams = folder.0.join("jetstream/jetstream/$G/streams");
    let names = streams.read_dir().expect("there were some").map(|it| it.expect("it is read"));
    let mut names = names.map(|it| it.file_name().to_string_lossy().into_owned());
    assert!(names.all(|name| name.starts_with('.')), "what was declared is deleted");
}

#[test]
#[ignore = "needs nats-server: cargo xtask test --only jetstream"]
fn what_the_real_one_confirmed_is_there_after_a_kill() {
    let folder = Folder::new("jetstream-killed");
    let mut peer = start(&folder);
    check_kill(kept(peer.targets()[0].port()), &mut peer);
}

#[test]
#[ignore = "needs nats-server: cargo xtask test --only jetstream"]
fn what_no_stream_of_the_real_one_keeps_is_an_error() {
    let folder = Folder::new("jetstream-refused");
    let peer = start(&folder);
    let mut link = Link::open(&peer.targets()[0]).expect("it listens");
    link.select_confirms().expect("it has confirms");
    let route = Route { exchange: "", key: "unheard", persistent: true };
    let mut message = Vec::new();
    link.encode(&route, b"hello", &mut message).write_tag(&mut message, 1);
    link.write(&message).expect("it reads");
    let error = loop {
        link.fill().expect("it answers");
        if let Err(error) = link.parse(&mut ()) {
            break error.to_string();
        }
    };
    assert!(error.ends_with("no stream stores this subject"), "{error}");
    // Without JetStream there are no streams.
    let target = &peer.targets()[0];
    let plain = Folder::new("jetstream-none");
    let peer = Peer::start(Kind::Nats, &programs(), &plain.0).expect("it is there");
    let port = peer.targets()[0].port();
    let without: Target = format!("jetstream://127.0.0.1:{port}").parse().expect("it is one");
    assert_ne!(&without, target);
    let error = load::run(&kept(port), None).expect_err("it keeps nothing").to_string();
    assert!(error.ends_with("JetStream is not enabled there"), "{error}");
    assert!(verdict(&Plan { drain: PATIENCE, ..direct(port) }).is_clean());
}
