//! The benchmark and the broker as they are: a verdict that must not be kinder or harder than what
//! a proxy between them does, and a tool that is killed.

mod proxy;

use angarium_bench::client::Target;
use angarium_bench::peer::{Kind, Peer, Programs};
use proxy::{EVERY, Fault, Language};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Messages of a run.
const MESSAGES: u64 = 5 * EVERY;

/// A folder for data, under target/ and not under a temporary folder, which may be memory.
fn folder() -> TempDir {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
    TempDir::with_prefix_in("bench-", base).expect("target/tmp can be written to")
}

fn broker(folder: &Path) -> Peer {
    let program = format!("angarium={}", env!("CARGO_BIN_EXE_angarium"));
    let programs = Programs::parse(&[program]).expect("it is NAME=PATH");
    Peer::start(Kind::Angarium, &programs, &folder.join("broker")).expect("it was built")
}

fn bench(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_angarium"));
    command.arg("bench").args(arguments).current_dir(folder);
    command.output().expect("it was built")
}

/// What is said of deliveries of which one in a hundred was harmed: that, and nothing else.
fn verdict(fault: Fault) -> String {
    let struck = MESSAGES / EVERY;
    let (lost, what) = match fault {
        Fault::None => return format!("{MESSAGES} of {MESSAGES} delivered"),
        Fault::Drop => (struck, "lost"),
        Fault::Duplicate => (0, "duplicated"),
        Fault::Reorder => (0, "reordered"),
        Fault::Corrupt => (0, "corrupted"),
    };
    format!("{} of {MESSAGES} delivered, {struck} {what}", MESSAGES - lost)
}

/// Runs these arguments through a proxy with each fault. What is said must have a line with one of
/// these two marks, of the good and of the bad, that ends with the verdict.
fn check(language: Language, arguments: &[&str], marks: [&str; 2]) {
    let folder = folder();
    let broker = broker(folder.path());
    let scheme = if language == Language::Nats { "nats" } else { "amqp" };
    let speaks = |target: &&Target| target.to_string().starts_with(scheme);
    let port = broker.targets().iter().find(speaks).expect("it speaks both").port();
    for fault in [Fault::None, Fault::Drop, Fault::Duplicate, Fault::Reorder, Fault::Corrupt] {
        let proxy = proxy::start(language, fault, port);
        let through = format!("{scheme}://127.0.0.1:{proxy}");
        let output =
            bench(folder.path(), &[arguments, &["--drain", "0.5", "--target", &through]].concat());
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let (mark, code) = if fault == Fault::None { (marks[0], 0) } else { (marks[1], 2) };
        let wanted = verdict(fault);
        let found = said.lines().any(|line| line.contains(mark) && line.ends_with(&wanted));
        assert_eq!(output.status.code(), Some(code), "{language:?} {fault:?}: {said}");
        assert!(found, "{language:?} {fault:?}, no `{mark}` with `{wanted}`: {said}");
    }
}

#[test]
fn a_preset_fails_for_exactly_what_happened_on_the_way() {
    let messages = format!("messages={MESSAGES}");
    let preset = ["xmlblaster-throughput", "--runs", "1", "--set", &messages];
    check(Language::Amqp091, &preset, ["ok:", "FAIL:"]);
}

#[test]
fn a_load_fails_for_exactly_what_happened_on_the_way() {
    let load = ["load", "--checksum", "--count", &MESSAGES.to_string()];
    for language in [Language::Amqp091, Language::Nats] {
        check(language, &load, [" clean:", "NOT CLEAN:"]);
    }
}

#[test]
fn presets_run_over_every_protocol_of_ours() {
    let folder = folder();
    let presets = ["pang-2", "xmlblaster-throughput", "--runs", "1"];
    let small = ["--set", "messages=100", "--set", "pairs=2", "--output", "result.json"];
    let peers = ["--peer", "angarium:mqtt", "--peer", "angarium:mqtt5", "--peer", "angarium:stomp"];
    let output = bench(folder.path(), &[presets.as_slice(), &small, &peers].concat());
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    for peer in ["angarium:mqtt", "angarium:mqtt5", "angarium:stomp"] {
        assert!(!said.contains(&format!("PARTIAL: {peer}")), "{said}");
    }
}

#[test]
fn messages_that_come_exactly_once_are_clean() {
    let folder = folder();
    let broker = broker(folder.path());
    for target in broker.targets().iter().filter(|target| target.scheme().starts_with("mqtt")) {
        let load = ["load", "--persistent", "--checksum", "--exactly-once", "--window", "100"];
        let more = ["--ack-every", "10", "--count", "2000", "--target", &target.to_string()];
        let output = bench(folder.path(), &[load.as_slice(), &more].concat());
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{target}: {said}");
        assert!(said.contains("2000 of 2000 delivered"), "{target}: {said}");
    }
}

/// The state of a process and its parent, as far as it is there (proc(5), stat).
fn state(pid: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// The brokers that a process has started.
fn brokers_of(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("it is mounted").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_broker = |pid: &u32| {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        state(*pid).is_some_and(|(_, of)| of == parent) && command.contains("\0serve\0")
    };
    pids.filter(is_broker).collect()
}

/// Whether a process has a TCP connection to anything (proc(5), net/tcp: the fourth field is the
/// state, 01 for an established connection, and the tenth the number that its file is known by).
fn is_connected(pid: u32) -> bool {
    let sockets = std::fs::read_to_string("/proc/net/tcp").expect("it is mounted");
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let sockets = sockets.lines().skip(1).map(fields).filter(|socket| socket[3] == "01");
    let open: Vec<_> = sockets.map(|socket| format!("socket:[{}]", socket[9])).collect();
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut files = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    files.any(|file| open.iter().any(|socket| file.as_os_str() == socket.as_str()))
}

/// Waits for something that happens soon or never.
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_broker_does_not_outlive_the_tool_that_started_it() {
    let folder = folder();
    let mut tool = Command::new(env!("CARGO_BIN_EXE_angarium"))
        .args(["bench", "pang-2", "--set", "messages=100000000"])
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("it was built");
    wait_until("a broker is started", || !brokers_of(tool.id()).is_empty());
    // Between the start of a broker and the word of it to the reaper is a moment, in which the tool
    // must not be killed. It connects after both.
    wait_until("the tool connects to it", || is_connected(tool.id()));
    let brokers = brokers_of(tool.id());
    tool.kill().expect("it is ours");
    tool.wait().expect("it is ours");
    let ended = |pid: &u32| state(*pid).is_none_or(|(state, _)| state == "Z");
    wait_until("the broker ends", || brokers.iter().all(ended));
}
