//! The real program under load, killed, starved of disk and asked to end: nothing confirmed is lost.
//! These tests are slow, so they are ignored unless asked for: `cargo xtask test --only crash`.

mod broker;
mod clock;
mod disk;
mod drain;
mod history;
mod load;
mod mqtt;
mod mqtt_wire;
mod random;
mod subscriptions;
mod wire;

use broker::Broker;
use history::{History, Id};
use load::Shared;
use random::Random;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How many rounds of kill -9.
const ROUNDS: &str = "CRASH_ROUNDS";
/// The seed of a run that is to be repeated; moments are not exactly the same, choices are.
const SEED: &str = "CRASH_SEED";

fn seed() -> u64 {
    let chosen = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok());
    chosen.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |now| now.as_micros() as u64)
    })
}

/// A folder for data, under target/ and not under a temporary folder, which may be memory. It stays
/// where a test fails.
struct Folder(tempfile::TempDir);

impl Folder {
    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.disable_cleanup(true);
            eprintln!("the broker's data is kept in {}", self.path().display());
        }
    }
}

fn folder() -> Folder {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let made = tempfile::TempDir::with_prefix_in("crash-", base);
    Folder(made.expect("target/tmp can be written to"))
}

fn shared(broker: &Broker) -> Shared {
    Shared {
        address: broker.address,
        history: Arc::new(Mutex::new(History::default())),
        ending: Arc::new(AtomicBool::new(false)),
    }
}

/// Runs the load until `end` has returned; fails if a promise was broken meanwhile.
fn under_load(shared: &Shared, random: &mut Random, end: impl FnOnce(&mut Random)) {
    shared.ending.store(false, Ordering::SeqCst);
    let parts = load::parts(shared, random);
    let threads: Vec<_> = parts.into_iter().map(std::thread::spawn).collect();
    end(random);
    let failures: Vec<String> = threads
        .into_iter()
        .filter_map(|thread| thread.join().expect("a part of the load does not panic").err())
        .collect();
    assert!(failures.is_empty(), "under load:\n{}", failures.join("\n"));
}

/// Waits until `count` messages were confirmed since the beginning.
fn wait_for_confirms(shared: &Shared, count: usize) {
    let begun = Instant::now();
    while shared.history().confirmed() < count {
        assert!(begun.elapsed() < wire::PATIENCE, "no confirms under load");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Empties every queue and checks every promise.
fn check(shared: &Shared) {
    let mut failures = Vec::new();
    let mut work: BTreeSet<Id> = BTreeSet::new();
    for queue in load::QUEUES {
        match load::drain(shared, queue) {
            Ok(found) => {
                failures.extend(shared.history().drained(queue, &found).err());
                if *queue == "work" {
                    work = found;
                }
            }
            Err(text) => failures.push(text),
        }
    }
    let history = shared.history();
    failures.extend(history.transactions_are_whole().err());
    failures.extend(history.moves_are_whole(&work).err());
    drop(history);
    assert!(failures.is_empty(), "after the restart:\n{}", failures.join("\n"));
}

#[test]
#[ignore = "slow: cargo xtask test --only crash"]
fn what_was_confirmed_survives_kill_9() {
    let rounds: u64 = std::env::var(ROUNDS).ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let seed = seed();
    println!("{rounds} rounds, {SEED}={seed}");
    let mut random = Random::new(seed);
    let data = folder();
    let mut broker = Broker::start(data.path());
    let shared = shared(&broker);
    load::prepare(&shared).expect("queues can be declared");
    let mut slowest = Duration::ZERO;
    // Long queues that nobody empties are recovered again and again in every other run.
    let check_every = if random.below(2) == 0 { 3 } else { 3 * rounds };
    for round in 1..=rounds {
        let before = shared.history().confirmed();
        under_load(&shared, &mut random, |random| {
            // Mostly when the load is under way, sometimes while clients still log in.
            if random.below(5) > 0 {
                wait_for_confirms(&shared, before + 1);
            }
            // The moment of the kill is what varies from round to round.
            std::thread::sleep(Duration::from_micros(random.below(400_000)));
            shared.ending.store(true, Ordering::SeqCst);
            broker.kill();
        });
        let mut start = broker.restart();
        if random.below(4) == 0 {
            // Once more, right after (or within) the recovery.
            start = start.max(broker.kill_and_restart());
        }
        slowest = slowest.max(start);
        let checked = round == rounds || random.below(check_every) == 0;
        if checked {
            check(&shared);
        }
        let confirmed = shared.history().confirmed() - before;
        let what = if checked { ", all queues emptied and checked" } else { "" };
        println!("round {round}: {confirmed} confirmed, start in {} ms{what}", start.as_millis());
    }
    let history = shared.history();
    let (confirmed, deliveries, repeated) =
        (history.confirmed(), history.deliveries, history.repeated);
    println!(
        "{confirmed} confirmed, {deliveries} delivered, {repeated} of them repeated and marked, \
         slowest start {} ms",
        slowest.as_millis()
    );
    assert!(confirmed as u64 > 10 * rounds, "there was hardly any load");
}

#[test]
#[ignore = "slow: cargo xtask test --only crash"]
fn kills_during_recovery_change_nothing() {
    let data = folder();
    let mut broker = Broker::start(data.path());
    let shared = shared(&broker);
    let mut random = Random::new(seed());
    load::prepare(&shared).expect("queues can be declared");
    under_load(&shared, &mut random, |_| {
        wait_for_confirms(&shared, 2000);
        shared.ending.store(true, Ordering::SeqCst);
        broker.kill();
    });
    for _ in 0..20 {
        broker.kill_and_restart_within(Duration::from_micros(random.below(15_000)));
    }
    check(&shared);
}
