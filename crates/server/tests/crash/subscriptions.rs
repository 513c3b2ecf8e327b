//! Named subscriptions that are made, replaced and deleted while the broker is killed: after each restart
//! there is the one that was answered, with its messages, or the one that was asked for last, and new.

use crate::broker::Broker;
use crate::random::Random;
use crate::wire::{Client, Event};
use crate::{folder, seed};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

const ROUNDS: u64 = 8;
const NAMES: [&str; 3] = ["one", "two", "three"];

/// A subscription as it may be after a restart.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    /// `None`: there is none.
    key: Option<String>,
    /// The least and the most that wait.
    messages: (u64, u64),
}

/// What was asked for, and what of it was answered.
#[derive(Debug)]
struct Operator {
    data: PathBuf,
    address: SocketAddr,
    random: Random,
    known: BTreeMap<&'static str, State>,
    /// What was asked for and not answered.
    pending: Option<(&'static str, State)>,
    last_key: u64,
}

impl Operator {
    fn command(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_angarium"));
        command.arg("subscription").args(arguments).arg("--data").arg(&self.data);
        command.output().expect("the program can be run")
    }

    /// Makes changes until the broker is gone; returns how many were answered.
    fn work(&mut self) -> u64 {
        let mut answered = 0;
        loop {
            let name = NAMES[usize::try_from(self.random.below(3)).unwrap_or(0)];
            let is_there = self.known.get(name).is_some_and(|state| state.key.is_some());
            let deletes = is_there && self.random.below(4) == 0;
            self.last_key += 1;
            let key = format!("key.{}", self.last_key);
            let next = State { key: (!deletes).then(|| key.clone()), messages: (0, 0) };
            self.pending = Some((name, next.clone()));
            let asked = match deletes {
                true => self.command(&["delete", name]),
                false => self.command(&["add", name, "--source", "amq.topic", "--key", &key]),
            };
            if !asked.status.success() {
                return answered;
            }
            answered += 1;
            self.pending = None;
            self.known.insert(name, next);
            if !deletes && !self.publish(name, &key) {
                return answered;
            }
        }
    }

    /// Publishes one message to a subscription; false: the broker is gone.
    fn publish(&mut self, name: &'static str, key: &str) -> bool {
        let state = self.known.entry(name).or_default();
        state.messages.1 += 1;
        let confirmed = (|| -> std::io::Result<bool> {
            let mut client = Client::connect(self.address)?;
            client.select_confirms()?;
            client.publish("amq.topic", key, b"message");
            client.flush()?;
            Ok(matches!(client.next()?, Event::Confirm { positive: true, .. }))
        })();
        let is_confirmed = confirmed.unwrap_or(false);
        state.messages.0 += u64::from(is_confirmed);
        is_confirmed
    }

    /// Compares what there is with what is known, which becomes what there is.
    fn check(&mut self) {
        let listed = self.command(&["list", "--json"]);
        assert!(listed.status.success(), "{listed:?}");
        let rows: Vec<Value> = serde_json::from_slice(&listed.stdout).expect("a listing");
        for name in NAMES {
            let row = rows.iter().find(|row| row["name"] == name);
            let found = State {
                key: row.and_then(|row| row["keys"][0].as_str()).map(str::to_owned),
                messages: row.and_then(|row| row["ready"].as_u64()).map_or((0, 0), |it| (it, it)),
            };
            let before = self.known.get(name).cloned().unwrap_or_default();
            let asked = self.pending.as_ref().filter(|(of, _)| *of == name).map(|(_, state)| state);
            let is_before = found.key == before.key
                && (before.messages.0..=before.messages.1).contains(&found.messages.0);
            assert!(
                is_before || asked == Some(&found),
                "subscription '{name}' is {found:?}, was {before:?}, asked for {asked:?}"
            );
            self.known.insert(name, found);
        }
        self.pending = None;
    }
}

#[test]
#[ignore = "slow: cargo xtask test --only crash"]
fn named_subscriptions_survive_kill_9_as_they_were_answered() {
    let data = folder();
    let path: &Path = data.path();
    let mut random = Random::new(seed());
    let mut broker = Broker::start(path);
    let mut operator = Operator {
        data: path.to_path_buf(),
        address: broker.address,
        random: random.fork(),
        known: BTreeMap::new(),
        pending: None,
        last_key: 0,
    };
    let mut answered = 0;
    for _ in 0..ROUNDS {
        answered += std::thread::scope(|scope| {
            let work = scope.spawn(|| operator.work());
            std::thread::sleep(Duration::from_micros(300_000 + random.below(500_000)));
            broker.kill();
            work.join().expect("the operator does not panic")
        });
        broker.restart();
        operator.check();
    }
    println!("{answered} changes answered");
    assert!(answered > ROUNDS, "there was hardly any work");
}
