//! Random inputs to sessions that share logs, against lists of what each is owed.

use super::TestHost;
use super::sessions::host_with;
use crate::ChannelId;
use crate::foundation::random::Random;
use crate::interface::limits::Limits;
use std::collections::{BTreeMap, BTreeSet};

const PATTERNS: [&str; 4] = ["a.*", "a.1", "#", "b.#"];
const KEYS: [&str; 4] = ["a.1", "a.2", "b", "b.1"];

fn matches(pattern: &str, key: &str) -> bool {
    match pattern {
        "a.*" => key.starts_with("a."),
        "b.#" => key.starts_with('b'),
        "#" => true,
        other => other == key,
    }
}

/// What a session is owed.
#[derive(Default)]
struct Model {
    bound: BTreeSet<&'static str>,
    ready: BTreeSet<u64>,
    out: BTreeMap<u64, u64>,
    channel: Option<ChannelId>,
}

impl Model {
    fn is_done(&self) -> bool {
        self.ready.is_empty() && self.out.is_empty()
    }
}

/// Seconds for which a session that is owed something may get nothing.
const PATIENCE: u32 = 20;

struct Run {
    host: TestHost,
    models: Vec<Model>,
    random: Random,
    persistent: BTreeSet<u64>,
    next: u64,
    lines: Vec<String>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let limits = Limits {
            log_shared_by: 1 + seed as usize % 3,
            queue_resident_bytes_max: 3_000,
            snapshot_at_once: 1 << (seed % 12),
            given_back_at_once: 1 << (seed % 10),
            page_entries: 1 << (seed % 8),
            queues_at_once: [1_000, 2][seed as usize % 2],
            ..Limits::default()
        };
        let mut host = host_with(limits);
        host.fx.quiet = true;
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut run = Run {
            host,
            models: Vec::new(),
            random: Random::new(key),
            persistent: BTreeSet::new(),
            next: 0,
            lines: Vec::new(),
        };
        for at in 0..4 {
            run.models.push(Model::default());
            run.attach(at);
            let pattern = PATTERNS[at % 2];
            run.bind(at, pattern);
        }
        run
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.random.next() >> 11) % bound
    }

    /// The name of a session's channel.
    fn name(at: usize) -> char {
        ['c', 'd', 'e', 'f'][at]
    }

    fn run(&mut self, line: &str) {
        self.lines.push(line.to_owned());
        self.host.run(line);
        for (channel, tag, body, _) in std::mem::take(&mut self.host.fx.delivered) {
            let number: u64 = body[1..].parse().unwrap();
            let model = self.models.iter_mut().find(|it| it.channel == Some(channel)).unwrap();
            assert_eq!(Some(&number), model.ready.first(), "not the first: {:#?}", self.lines);
            model.ready.remove(&number);
            model.out.insert(tag, number);
        }
    }

    fn attach(&mut self, at: usize) {
        let (name, lines) = (Run::name(at), ["claim s expiry=- recorded queue", "flush"]);
        self.host.login(&name.to_string(), "ann");
        self.models[at].channel = Some(self.host.channel(&name.to_string()));
        for line in lines {
            let line = line.replace("claim s", &format!("claim s{at}"));
            let line = if line == "flush" { line } else { format!("{name} {line}") };
            self.run(&line);
        }
        self.run(&format!("{name} consume amq.session-s{at} t granted on-loss=release"));
        self.run(&format!("{name} grant t 1000000000"));
    }

    fn detach(&mut self, at: usize) {
        let model = &mut self.models[at];
        model.channel = None;
        model.ready.extend(std::mem::take(&mut model.out).into_values());
        self.run(&format!("{} disconnect", Run::name(at)));
    }

    fn bind(&mut self, at: usize, pattern: &'static str) {
        let is_bound = !self.models[at].bound.insert(pattern);
        let verb = if is_bound { "unbind" } else { "bind" };
        if is_bound {
            self.models[at].bound.remove(pattern);
        }
        self.run(&format!("a {verb} amq.topic amq.session-s{at} {pattern}"));
    }

    fn publish(&mut self, count: u64) {
        for _ in 0..count {
            let key = KEYS[self.below(4) as usize];
            let is_persistent = self.below(4) > 0;
            let number = self.next;
            self.next += 1;
            if is_persistent {
                self.persistent.insert(number);
            }
            for model in &mut self.models {
                if model.bound.iter().any(|pattern| matches(pattern, key)) {
                    model.ready.insert(number);
                }
            }
            let word = if is_persistent { "persistent" } else { "" };
            self.lines.push(format!("publish {key} m{number} {word}"));
            let line = format!("a publish amq.topic {key} m{number} {word}");
            self.host.act_on(&line);
            // What its client sends next waits.
            let connection = self.host.channel("a").connection;
            if self.host.engine.is_fanning_out(connection) {
                self.host.settle_down();
            }
        }
        self.run("flush");
    }

    fn settle(&mut self, at: usize) {
        let count = self.models[at].out.len() as u64;
        if count > 0 {
            let index = self.below(count) as usize;
            let tag = *self.models[at].out.keys().nth(index).unwrap();
            self.models[at].out = self.models[at].out.split_off(&(tag + 1));
            self.run(&format!("{} accept {tag} multiple", Run::name(at)));
        }
    }

    fn restart(&mut self, how: &str) {
        for model in &mut self.models {
            model.channel = None;
            model.ready.extend(std::mem::take(&mut model.out).into_values());
            model.ready.retain(|number| self.persistent.contains(number));
        }
        self.run(how);
    }

    fn step(&mut self) {
        let at = self.below(4) as usize;
        match self.below(100) {
            0..40 => {
                let count = self.below(12);
                self.publish(count);
            }
            40..43 => {
                let count = self.below(700);
                self.publish(count);
            }
            43..60 => self.settle(at),
            60..80 if self.models[at].channel.is_some() => self.detach(at),
            60..80 => self.attach(at),
            80..88 => {
                let pattern = PATTERNS[self.below(4) as usize];
                self.bind(at, pattern);
            }
            88..91 => self.run("checkpoint"),
            91 => self.run("snapshot"),
            92..95 => self.restart("restart"),
            95 => self.restart("restart clean"),
            _ => {
                let last = self.host.fx.records.len() / 16 + 1;
                let segment = self.below(last as u64) + 1;
                self.run(&format!("relocate {segment}"));
            }
        }
    }

    /// All sessions take all that they are owed, as far as memory allows at a time.
    fn finish(&mut self) {
        for at in 0..4 {
            if self.models[at].channel.is_none() {
                self.attach(at);
            }
            // A backlog is handed out at a rate.
            let mut patience = PATIENCE;
            while patience > 0 && !self.models[at].is_done() {
                patience -= 1;
                if let Some((tag, _)) = self.models[at].out.last_key_value() {
                    let line = format!("{} accept {tag} multiple", Run::name(at));
                    self.models[at].out.clear();
                    self.run(&line);
                    patience = PATIENCE;
                }
                self.run("time 1000");
            }
            let Model { ready, .. } = &self.models[at];
            assert!(ready.is_empty(), "s{at} lacks {ready:?}: {:#?}", self.lines);
        }
        let logs = self.host.engine.queues.iter().filter(|(_, queue)| queue.options.is_log);
        assert_eq!(logs.count(), 0, "logs without sessions");
    }
}

#[test]
fn each_session_gets_what_it_is_owed() {
    for seed in 0..8 {
        let mut run = Run::new(seed);
        for _ in 0..100 {
            run.step();
        }
        run.finish();
    }
}
