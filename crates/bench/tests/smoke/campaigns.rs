//! Presets through the command line against fake brokers: results, verdicts, interrupted campaigns.

use crate::fake::{self, Fault};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A folder of one test, removed when it ends.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("bench-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("there is space");
        Place(path)
    }

    pub(crate) fn result(&self) -> serde_json::Value {
        let text = fs::read_to_string(self.0.join("r.json")).expect("it was written");
        serde_json::from_str(&text).expect("it is JSON")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

pub(crate) fn bench(place: &Path, arguments: &[&str]) -> Output {
    bench_with(place, arguments, None)
}

fn bench_with(place: &Path, arguments: &[&str], password: Option<&str>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_angarium-bench"))
        .args(arguments)
        .envs(password.map(|password| ("ANGARIUM_PASSWORD", password)))
        .current_dir(place)
        .output()
        .expect("it was built")
}

fn run(name: &str, fault: Fault, preset: &[&str]) -> (Place, Output) {
    let place = Place::new(name);
    let target = format!("amqp://127.0.0.1:{}", fake::start(fault));
    let mut arguments = preset.to_vec();
    arguments.extend(["--quick", "--drain", "0.5", "--target", &target, "--output", "r.json"]);
    let output = bench(&place.0, &arguments);
    (place, output)
}

#[test]
fn a_preset_leaves_a_table_a_result_and_a_page() {
    let (place, output) =
        run("whole", Fault::None, &["pang-2", "--set", "messages=50", "--runs", "2"]);
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    assert!(said.contains("publish rate") && said.contains("SonicMQ"), "{said}");
    assert!(errors.contains("[6/6"), "{errors}");
    let result = place.result();
    assert!(result["partial"].is_null());
    let cases = result["presets"][0]["cases"].as_array().expect("there are cases");
    assert_eq!(cases.len(), 3);
    let run = &cases[2]["sides"][0][1]["done"];
    assert_eq!(run["verdict"]["delivered"], 250, "{run}");
    assert!(run["metrics"]["transfer_rate"].as_f64().is_some_and(|rate| rate > 0.0));
    let page = fs::read_to_string(place.0.join("r.html")).expect("it was written");
    assert!(page.contains("figure class=\"chart\"") && page.contains("pang-2"));
    // The same result beside itself has no differences.
    let output = bench(&place.0, &["diff", "r.json", "r.json"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("same") && !said.contains("BETTER") && !said.contains("WORSE"), "{said}");
}

#[test]
fn persistent_messages_that_are_harmed_fail_for_exactly_that() {
    let check = |fault: Fault, words: &[&str]| {
        let preset = ["xmlblaster-throughput", "--set", "messages=500"];
        let (_place, output) = run(&format!("{fault:?}"), fault, &preset);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{fault:?}: {said}");
        let line = said.lines().find(|line| line.contains("FAIL:")).unwrap_or_default();
        assert!(words.iter().all(|word| line.contains(word)), "{fault:?}: {said}");
        let others = ["lost", "duplicated", "reordered", "corrupted"];
        let others = others.iter().filter(|other| !words.iter().any(|word| word.contains(**other)));
        others.for_each(|other| assert!(!line.contains(other), "{fault:?}: {line}"));
    };
    check(Fault::Drop, &["5 lost"]);
    check(Fault::Duplicate, &["5 duplicated"]);
    // The last one is struck and no other follows it: it is lost.
    check(Fault::Swap, &["4 reordered", "1 lost"]);
    check(Fault::FlipBit, &["5 corrupted"]);
}

#[test]
fn direct_messages_that_are_lost_are_a_loss_and_no_failure() {
    let (_place, output) = run("loss", Fault::Drop, &["pang-2", "--set", "messages=200"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("LOSS: "), "{said}");
}

#[test]
fn nobody_listening_is_said_and_no_figure_is_made_up() {
    let place = Place::new("nobody");
    let arguments = ["pang-2", "--quick", "--target", "amqp://127.0.0.1:1", "--output", "r.json"];
    let output = bench(&place.0, &arguments);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let line = "not measured: amqp://127.0.0.1:1: 127.0.0.1:1: Connection refused";
    assert!(said.contains(line) && !said.contains("FAILED"), "{said}");
    assert!(said.contains("PARTIAL: amqp://127.0.0.1:1 was not measured"), "{said}");
    let preset = &place.result()["presets"][0];
    assert_eq!(preset["cases"][0]["sides"][0].as_array().map(Vec::len), Some(0), "{preset}");
    assert_eq!(preset["absent"][0]["side"], 0, "{preset}");
}

#[test]
fn a_peer_that_does_not_start_fails_in_all_it_could_have_done() {
    let place = Place::new("unstarted");
    let target = format!("amqp://127.0.0.1:{}", fake::start(Fault::None));
    let arguments = ["pang-2", "--quick", "--set", "messages=50", "--output", "r.json"];
    let sides = ["--target", &target, "--peer", "nats", "--program", "nats=/nowhere/nats-server"];
    let output = bench(&place.0, &[arguments.as_slice(), &sides].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("PARTIAL: nats was not measured"), "{said}");
    assert!(said.contains("go install"), "{said}");
    // The rest was measured.
    let result = place.result();
    let preset = &result["presets"][0];
    assert!(preset["cases"][0]["sides"][0][0]["done"].is_object(), "{preset}");
    assert_eq!(preset["absent"][0]["side"], 1, "{preset}");
}

#[test]
fn a_password_is_not_in_the_results() {
    let place = Place::new("password");
    let port = fake::start(Fault::None);
    let measure = |target: &str| {
        let arguments = ["pang-2", "--quick", "--set", "messages=50", "--output", "r.json"];
        let arguments = [arguments.as_slice(), &["--target", target]].concat();
        bench_with(&place.0, &arguments, Some("pass-word"))
    };
    let refused = measure(&format!("amqp://guest:pass-word@127.0.0.1:{port}"));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("ANGARIUM_PASSWORD"), "{said}");
    assert!(!said.contains("pass-word"), "{said}");
    let output = measure(&format!("amqp://guest@127.0.0.1:{port}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for file in ["r.json", "r.html"] {
        let text = fs::read_to_string(place.0.join(file)).expect("it was written");
        assert!(text.contains("guest@127.0.0.1") && !text.contains("pass-word"), "{file}");
    }
}

#[test]
fn what_is_asked_wrongly_is_said() {
    let place = Place::new("wrong");
    let check = |arguments: &[&str], words: &str| {
        let output = bench(&place.0, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{arguments:?}: {said}");
    };
    check(&["pang-9"], "no preset `pang-9`");
    check(&["pang-2", "--set", "pairs=x"], "`x` is not a number");
    check(
        &["pang-2", "--set", "subscribers=1"],
        "no selected preset has a parameter `subscribers`",
    );
    check(&["pang-2", "--set", "joram.messages=1"], "is not a parameter of a selected preset");
    check(&["pang-2", "--peer", "kafka"], "no peer `kafka`");
    check(&["pang-2", "--target", "ftp://h"], "starts with none of");
    check(&["pang-2", "--runs", "0"], "`runs` must be 1 at least");
    check(&["latency", "--set", "seconds=1e300"], "`1e300` is too large");
    check(&["pang-2", "--output", "nowhere/r.json"], "nowhere/r.json: No such file");
    check(&["load", "--target", "amqp://127.0.0.1:1"], "127.0.0.1:1: Connection refused");
    check(&["pang-2", "--worker", "10.0.0.1:7070"], "which 10.0.0.1:7070 does not reach");
}

#[test]
fn nobody_need_read_all_that_is_said() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_angarium-bench"))
        .arg("list")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it was built");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it is ours");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn presets_are_shared_out_to_workers_or_say_why_not() {
    let workers = crate::workers::workers(2);
    let by: Vec<&str> = workers.iter().flat_map(|worker| ["--worker", worker]).collect();
    let presets = ["pang-2", "osu-fe-spmc", "pang-3", "--set", "pang-2.messages=100"];
    let (place, output) = run("workers", Fault::None, &[&presets, by.as_slice()].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let result = place.result();
    let runs = |preset: usize| {
        let cases = result["presets"][preset]["cases"].as_array().expect("there are cases");
        cases.iter().map(|case| case["sides"][0][0].clone()).collect::<Vec<_>>()
    };
    for (run, pairs) in runs(0).iter().zip([1, 3, 5]) {
        assert_eq!(run["done"]["verdict"]["delivered"], pairs * 100, "{run}");
        assert!(run["done"]["clock_error_us"].as_f64().is_some_and(|error| error > 0.0), "{run}");
    }
    for (preset, why) in [(1, "a bound on undelivered"), (2, "one subscriber connects after")] {
        let refused = |run: &serde_json::Value| run["refused"].to_string().contains(why);
        assert!(runs(preset).iter().any(refused) && said.contains(why), "{preset}: {said}");
    }
    assert!(said.contains(&format!("by workers at {}: times", workers.join(", "))), "{said}");
}

fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("it has a number");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is ours");
}

/// The result of a day-long measurement that is interrupted.
fn interrupted(arguments: &[&str]) -> serde_json::Value {
    let mut child = Command::new(env!("CARGO_BIN_EXE_angarium-bench"))
        .args(arguments)
        .args(["--json", "--duration", "100000"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was built");
    // The main thread, the signal thread, and two of the measurement.
    let tasks = format!("/proc/{}/task", child.id());
    while fs::read_dir(&tasks).map_or(0, Iterator::count) < 4 {
        assert!(child.try_wait().expect("it is ours").is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    interrupt(&child);
    let output = child.wait_with_output().expect("it is ours");
    assert_eq!(output.status.code(), Some(2));
    let outcome: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("what is done is kept");
    assert_eq!(outcome["interrupted"], true);
    outcome
}

#[test]
fn an_interrupted_load_says_so_and_makes_up_no_loss() {
    let target = format!("amqp://127.0.0.1:{}", fake::start(Fault::Drop));
    let outcome = interrupted(&["load", "--target", &target]);
    let lost = &outcome["verdict"]["lost"];
    assert!(lost.is_null() || lost == 0, "{lost}");
}

#[test]
fn an_interrupted_comparison_of_drivers_begins_no_further_run() {
    let costs = interrupted(&["drivers", "--runs", "1000"]);
    assert_eq!(costs["drivers"].as_array().map(Vec::len), Some(0));
}

#[test]
fn an_interrupt_keeps_what_is_done() {
    let place = Place::new("interrupt");
    let target = format!("amqp://127.0.0.1:{}", fake::start(Fault::None));
    let mut child = Command::new(env!("CARGO_BIN_EXE_angarium-bench"))
        .args(["pang-2", "xmlblaster-throughput", "--set", "pang-2.messages=20", "--set"])
        .args(["xmlblaster-throughput.messages=100000000", "--runs", "1", "--target", &target])
        .args(["--output", "r.json"])
        .current_dir(&place.0)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it was built");
    // The first preset's result is written when it has ended; the second one runs for hours.
    while !place.0.join("r.html").exists() {
        assert!(child.try_wait().expect("it is ours").is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    interrupt(&child);
    let status = child.wait().expect("it is ours");
    assert_eq!(status.code(), Some(2));
    let result = place.result();
    assert_eq!(result["partial"], "it was interrupted");
    assert_eq!(result["presets"][0]["cases"].as_array().map(Vec::len), Some(5));
    let begun = &result["presets"][1]["cases"][0]["sides"][0];
    assert_eq!(begun.as_array().map(Vec::len), Some(0), "what was broken off is no measurement");
}
