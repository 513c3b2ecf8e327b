//! Load from several workers against fake brokers; over network namespaces on request.

use crate::fake::Fault;
use angarium_bench::load::{End, Plan, worker};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Starts workers that serve until the process ends. Returns their addresses.
pub(crate) fn workers(count: usize) -> Vec<String> {
    let start = |_| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let address = listener.local_addr().expect("it is bound").to_string();
        std::thread::spawn(move || worker::serve(&listener, None).expect("it serves"));
        address
    };
    (0..count).map(start).collect()
}

#[test]
fn two_workers_share_a_load_and_its_verdict() {
    let check = |plan: Plan, lost: u64| {
        let plan = Plan { producers: 3, consumers: 2, latency: true, ..plan };
        let outcome = worker::run(&plan, &workers(2), None).expect("the fake answers");
        let verdict = outcome.verdict.expect("there are consumers");
        assert_eq!((outcome.workers, outcome.published), (2, 5_000));
        assert_eq!((verdict.expected, verdict.lost), (5_000, lost), "{verdict:?}");
        assert_eq!(verdict.duplicated + verdict.reordered + verdict.corrupt, 0, "{verdict:?}");
        let timed = outcome.latency.map(|latency| latency.count);
        assert_eq!(timed, Some(5_000 - lost), "{:?} {:?}", outcome.bottleneck, plan.describe());
        assert!(outcome.clock_error_us.is_some_and(|error| error > 0.0));
    };
    check(crate::plan(Fault::None), 0);
    check(crate::nats_plan(Fault::None), 0);
    check(Plan { window: 50, ack_every: 5, prefetch: 50, ..crate::plan(Fault::None) }, 0);
    // Every hundredth of each queue; one queue has the messages of two producers.
    check(crate::plan(Fault::Drop), 33 + 16);
}

#[test]
fn workers_hold_a_rate_for_a_time() {
    let span = Duration::from_millis(400);
    let end = End::After { warm_up: Duration::from_millis(100), measured: span };
    let plan = Plan { rate: 2_000, end, ..crate::plan(Fault::None) };
    let outcome = worker::run(&plan, &workers(2), None).expect("the fake answers");
    assert!(outcome.verdict.is_some_and(|verdict| verdict.is_clean()));
    let schedule = outcome.schedule.expect("there was one");
    assert!(schedule.achieved_part > 0.5 && outcome.messages > 0, "{schedule:?}");
}

#[test]
fn a_worker_that_is_not_there_or_cannot_is_named() {
    let plan = crate::plan(Fault::None);
    let refused = |plan: &Plan, workers: &[String]| {
        worker::run(plan, workers, None).expect_err("it cannot be").to_string()
    };
    assert!(refused(&plan, &["127.0.0.1:1".to_owned()]).contains("127.0.0.1:1"));
    // A worker that ends when it gets its part.
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let ending = listener.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || drop(listener.accept()));
    let both = [workers(1), vec![ending.clone()]].concat();
    let said = refused(&plan, &both);
    assert!(said.starts_with(&format!("the worker at {ending}: ")), "{said}");
    let bounded = Plan { ahead: 10, ..plan }.fanned_out(2);
    assert!(refused(&bounded, &workers(2)).contains("several machines"));
}

/// A worker that accepts connections and says nothing.
fn silent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || listener.incoming().map_while(Result::ok).collect::<Vec<_>>());
    address
}

/// A proxy between a coordinator and a worker.
struct Between {
    /// Its address for the coordinator.
    address: String,
    /// Keeps both connections open.
    _open: mpsc::Sender<()>,
}

impl Between {
    /// Passes everything on until the worker has sent this many lines, and nothing after that; `holds`
    /// keeps both connections open.
    fn start(worker: &str, lines: usize, holds: bool) -> Between {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let address = listener.local_addr().expect("it is bound").to_string();
        let worker = worker.to_owned();
        let (open, closed) = mpsc::channel::<()>();
        thread::spawn(move || {
            let (coordinator, _) = listener.accept().expect("it comes");
            let worker = TcpStream::connect(worker).expect("it listens");
            let again = |stream: &TcpStream| stream.try_clone().expect("a socket");
            let (from, mut to) = (BufReader::new(again(&worker)), again(&coordinator));
            let (asks, mut asked) = (BufReader::new(again(&coordinator)), again(&worker));
            // Requests and answers alternate, so an unanswered request is the last one passed on.
            thread::spawn(move || pass(asks, &mut asked, lines + 1));
            pass(from, &mut to, lines);
            if holds {
                // Until the test is over.
                let _ = closed.recv();
            }
            drop((worker.shutdown(std::net::Shutdown::Both), coordinator));
        });
        Between { address, _open: open }
    }
}

fn pass(from: impl BufRead, to: &mut TcpStream, lines: usize) {
    for line in from.lines().map_while(Result::ok).take(lines) {
        let passed = to.write_all(format!("{line}\n").as_bytes());
        if passed.is_err() {
            return;
        }
    }
}

/// Lines of a worker up to its preparation, and some of its progress.
const AMID_THE_LOAD: usize = 202 + 10;

/// A load of a minute.
fn long() -> Plan {
    let end = End::After { warm_up: Duration::ZERO, measured: Duration::from_secs(60) };
    Plan { end, rate: 1_000, ..crate::plan(Fault::None) }
}

#[test]
fn a_worker_that_says_nothing_is_named() {
    let check = |workers: &[String], mute: &str, ms: u64| {
        let silence = Duration::from_millis(ms);
        let said = worker::run_within(&long(), workers, None, silence).expect_err("it hangs");
        let wanted = format!("the worker at {mute}: it has said nothing for {}", ms as f64 / 1e3);
        assert!(said.to_string().starts_with(&wanted), "{said}");
    };
    let mute = silent();
    check(std::slice::from_ref(&mute), &mute, 100);
    // During a load, and beside another worker that continues.
    for (before, lines, ms) in
        [(0, AMID_THE_LOAD, 500), (1, AMID_THE_LOAD, 3_000), (1, 201, 3_000), (0, 100, 500)]
    {
        let mute = Between::start(&workers(1)[0], lines, true);
        check(&[workers(before), vec![mute.address.clone()]].concat(), &mute.address, ms);
    }
}

#[test]
fn a_worker_without_its_coordinator_stops_its_load() {
    for holds in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let address = listener.local_addr().expect("it is bound").to_string();
        let silence = Duration::from_secs(2);
        let (over, is_over) = mpsc::channel();
        thread::spawn(move || {
            // It ends with its one session, which ends with all threads of its load.
            let served = worker::serve_within(&listener, Some(1), silence);
            let _ = over.send(served.is_ok());
        });
        let between = Between::start(&address, AMID_THE_LOAD, holds);
        // The coordinator's side stays open, too, unless the coordinator is gone.
        let workers = [between.address.clone()];
        let ran = worker::run_within(&long(), &workers, None, Duration::from_secs(2));
        assert!(ran.is_err(), "it is gone");
        assert_eq!(is_over.recv_timeout(Duration::from_secs(40)), Ok(true), "{holds}");
    }
}

#[test]
fn a_bound_is_kept_by_each_worker_for_its_own_pairs() {
    let bounded = Plan { ahead: 30, ..crate::nats_plan(Fault::None) };
    for (plan, count) in [(bounded.clone().in_pairs(3), 2), (bounded.fanned_out(2), 1)] {
        let outcome = worker::run(&plan, &workers(count), None).expect("the fake answers");
        let verdict = outcome.verdict.expect("there are consumers");
        assert!(verdict.is_clean() && outcome.published == 5_000, "{verdict:?}");
    }
}

/// A process that ends with its test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split_whitespace()).status();
    assert!(status.is_ok_and(|status| status.success()), "ip {arguments}");
}

/// Network namespaces and their links, removed with their test.
struct Namespaces(Vec<String>);

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            drop(Command::new("ip").args(["netns", "delete", name]).status());
        }
    }
}

/// Two workers, each in its own network namespace, and a broker here.
#[test]
#[ignore = "needs root and iproute2: cargo test -p angarium-bench --test smoke -- --ignored"]
fn workers_in_namespaces_of_their_own() {
    let id = std::process::id() % 10_000;
    let names: Vec<String> = (0..2).map(|index| format!("bench{id}w{index}")).collect();
    let namespaces = Namespaces(names);
    let mut processes = Vec::new();
    let mut addresses = Vec::new();
    for (index, name) in namespaces.0.iter().enumerate() {
        let (here, there) = (format!("vb{id}h{index}"), format!("vb{id}t{index}"));
        let subnet = format!("10.{}.{}", 200 + index, id % 250);
        ip(&format!("netns add {name}"));
        ip(&format!("link add {here} type veth peer name {there} netns {name}"));
        ip(&format!("addr add {subnet}.1/24 dev {here}"));
        ip(&format!("link set {here} up"));
        ip(&format!("-n {name} addr add {subnet}.2/24 dev {there}"));
        ip(&format!("-n {name} link set {there} up"));
        ip(&format!("-n {name} link set lo up"));
        let address = format!("{subnet}.2:7070");
        let worker = Command::new("ip")
            .args(["netns", "exec", name, env!("CARGO_BIN_EXE_angarium-bench")])
            .args(["worker", "--listen", &address])
            .stderr(Stdio::null())
            .spawn()
            .expect("it was built");
        processes.push(Ending(worker));
        addresses.push(address);
    }
    // There is no address that both links share, so both workers reach the broker through the first
    // one's network; the second has a route.
    ip(&format!("-n {} route add default via 10.201.{}.1", namespaces.0[1], id % 250));
    let broker = format!("10.200.{}.1", id % 250);
    let port = crate::fake::Fake::start_at(&broker, Fault::None).port;
    let target = format!("amqp://{broker}:{port}").parse().expect("it is an address");
    let plan = Plan { target, latency: true, ..crate::plan(Fault::None) };
    let run = || worker::run(&plan, &addresses, None);
    let mut outcome = run();
    for _ in 0..50 {
        // The workers may not listen yet.
        if outcome.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        outcome = run();
    }
    let outcome = outcome.expect("both hold their part");
    assert!(outcome.verdict.is_some_and(|verdict| verdict.is_clean()));
    assert_eq!(outcome.workers, 2);
    let error_us = outcome.clock_error_us.expect("it was looked at");
    assert!(error_us > 0.0 && error_us < 1e6, "{error_us}");
    // Presets work the same way.
    let place = crate::campaigns::Place::new("namespaces");
    let target = plan.target.to_string();
    let mut preset = vec!["pang-2", "--quick", "--target", &target, "--output", "r.json"];
    preset.extend(addresses.iter().flat_map(|address| ["--worker", address]));
    let output = crate::campaigns::bench(&place.0, &preset);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let runs = &place.result()["presets"][0]["cases"][2]["sides"][0];
    assert_eq!(runs[0]["done"]["verdict"]["delivered"], 5 * 2_000, "{runs}");
}
