//! Tests of the engine as a whole: scenarios in text, effects in text, one [`check`].
//!
//! A line is an input; the lines after it that begin with `>` are the effects it must have, in
//! order. Names of channels are made up: `a` and `a2` are two channels of connection `a`. After each
//! input the engine dispatches until it has no more work, and loads are answered.

mod access_requests;
mod barred;
mod bounds;
mod browsing;
mod channel_credit;
mod checkpoints;
mod conventions;
mod damage;
mod delays;
mod discards;
mod drain_pacing;
mod durability;
mod exactly_once;
mod facts;
mod filtered_pages;
mod filters;
mod grants;
mod groups;
mod held;
mod host;
#[cfg(test)]
pub(crate) mod invariants;
mod leaving;
mod lifetimes;
mod limits;
mod logs;
mod logs_model;
mod long_ways;
mod message_groups;
mod messages;
mod model;
mod named_subscriptions;
mod options;
mod page_in;
mod pages;
mod places;
mod policies;
mod purges;
mod quotas;
mod rebuild;
mod reclaim;
mod recorder;
mod records;
mod recovery;
mod redelivered;
mod retained;
mod rights;
mod session_numbers;
mod session_queues;
mod session_requests;
mod sessions;
mod settle_timeouts;
mod shared_queues;
mod topology;
mod transaction_expiry;
mod transactions;
mod vhost_deletion;
mod wide;
mod wills;

use crate::interface::limits::Limits;

pub(crate) use crate::tests::conventions::CONVENTIONS;
pub(crate) use crate::tests::host::TestHost;

/// What a line of a scenario says of a policy.
pub(crate) fn policy(line: &str) -> crate::Policy {
    access_requests::policy(&host::Words(line.split_whitespace().collect()))
}

/// The same of a queue.
pub(crate) fn queue_options(line: &str) -> crate::QueueOptions {
    options::queue_options(&host::Words(line.split_whitespace().collect()))
}

/// Runs a scenario and compares each line's effects: also where what is settled, given
/// back, or read back, at once takes many turns.
pub(crate) fn check(scenario: &str) {
    check_in(TestHost::new(), scenario);
    let one = Limits {
        settles_at_once: 1,
        given_back_at_once: 1,
        loaded_at_once: 1,
        ..Limits::default()
    };
    check_in(TestHost::with(one), scenario);
}

/// As [`check`], in a host that was prepared.
pub(crate) fn check_in(mut host: TestHost, scenario: &str) -> TestHost {
    let mut transcript = String::new();
    let mut expected: Vec<&str> = Vec::new();
    let mut actual: Vec<String> = Vec::new();
    let mut failed = false;
    for line in scenario.lines().chain(["end"]) {
        let line = line.trim();
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        if let Some(effect) = line.strip_prefix('>') {
            expected.push(effect.trim());
            continue;
        }
        let differs = expected != actual;
        failed |= differs;
        for effect in &actual {
            transcript.push_str(&format!("    > {effect}\n"));
        }
        if differs {
            transcript.push_str(&format!("    EXPECTED {expected:#?}\n"));
        }
        expected.clear();
        actual = if line == "end" { Vec::new() } else { host.run(line) };
        transcript.push_str(&format!("{line}\n"));
    }
    assert!(!failed, "\n{transcript}");
    host
}
