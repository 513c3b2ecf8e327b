//! The benchmark and the broker as they are: a verdict that must not be kinder or harder than what
//! a proxy between them does.

mod proxy;

use angarium_bench::client::Target;
use angarium_bench::peer::{Kind, Peer, Programs};
use proxy::{EVERY, Fault, Language};
use std::path::Path;
use std::process::{Command, Output};
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
