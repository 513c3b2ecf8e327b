//! A rule is broken on purpose, and the simulator must find it.

use crate::canary::Canary;
use crate::plan::Plan;
use crate::random::Random;
use crate::{run, workload};
use angarium_engine::SlowConsumerPolicy;

/// Runs within which each must be found.
const RUNS: usize = 60;
/// The same for what shows in one run of direct messages in fifty.
const RARE_RUNS: usize = 300;

/// Some run notices, and says so by one of the promises named.
fn found(canary: Canary, promises: &[&str]) {
    found_in(canary, RUNS, |_| true, promises);
}

/// The same with runs of direct messages alone, for what shows in few of them and in no others.
fn found_in_direct(canary: Canary, promises: &[&str]) {
    found_in(canary, RARE_RUNS, |plan| plan.workload == "direct", promises);
}

fn found_in(canary: Canary, runs: usize, is_of_use: fn(&Plan) -> bool, promises: &[&str]) {
    let plan = |seed: &u64| workload::plan(&mut Random::new(*seed));
    for seed in (1000..).filter(|seed| is_of_use(&plan(seed))).take(runs) {
        if let Err(failure) = run::run_with(seed, Some(canary)) {
            let what = &failure.what;
            let is_named = promises.iter().any(|promise| what.contains(promise));
            assert!(is_named, "seed {seed} finds {canary:?} by another sign: {what}");
            return;
        }
    }
    panic!("{runs} runs do not find {canary:?}");
}

#[test]
fn confirming_before_the_flush_is_found() {
    found(
        Canary::SyncLies,
        &[
            "confirmed is kept",
            "settled is gone",
            "transactions atomic",
            "does not start",
            "could not be read back",
        ],
    );
}

#[test]
fn a_block_cut_out_of_the_log_is_found() {
    found(Canary::LogCut, &["does not start", "confirmed is kept", "could not be read back"]);
}

#[test]
fn lost_settles_are_found() {
    found(Canary::SettlesLost, &["settled is gone"]);
}

#[test]
fn repeated_deliveries_are_found() {
    found(Canary::DeliveriesRepeated, &["no unmarked duplicate", "settled is gone", "unknown"]);
}

#[test]
fn swapped_deliveries_are_found() {
    found(Canary::DeliveriesSwapped, &["order kept"]);
}

#[test]
fn torn_transactions_are_found() {
    found(Canary::TransactionsTorn, &["confirmed is kept", "transactions atomic"]);
}

#[test]
fn rollbacks_that_commit_are_found() {
    found(Canary::RollbacksCommitted, &["nothing invented", "confirmed is kept"]);
}

#[test]
fn altered_bodies_are_found() {
    found(Canary::BodiesAltered, &["nothing invented", "confirmed is kept"]);
}

#[test]
fn altered_bindings_are_found() {
    found(Canary::BindingsAltered, &["nothing invented", "confirmed is kept"]);
}

#[test]
fn lost_replies_are_found() {
    found(Canary::RepliesLost, &["replies come"]);
}

#[test]
fn ignored_leases_are_found() {
    found(Canary::LeasesIgnored, &["leases kept"]);
}

#[test]
fn ignored_delays_are_found() {
    found(Canary::DelaysIgnored, &["limits kept"]);
}

#[test]
fn ignored_credit_is_found() {
    found(Canary::CreditIgnored, &["credit respected"]);
}

#[test]
fn repeated_direct_messages_are_found() {
    found(Canary::HeardTwice, &["heard at most once"]);
}

#[test]
fn swapped_direct_messages_are_found() {
    found(Canary::HeardSwapped, &["heard in order", "heard completely"]);
}

#[test]
fn lost_direct_messages_are_found() {
    found(Canary::HeardLost, &["heard completely", "one of a group", "requests answered"]);
}

#[test]
fn altered_direct_messages_are_found() {
    found(Canary::HeardAltered, &["heard as sent"]);
}

#[test]
fn missed_messages_that_nobody_is_told_of_are_found() {
    found(Canary::MissedUntold, &["heard completely"]);
}

/// Messages wait on a disk for clients that are slow.
fn spools(plan: &Plan) -> bool {
    plan.slow_consumer_policy == SlowConsumerPolicy::Spool && plan.sizes.outbox_bytes_max < 1 << 20
}

#[test]
fn what_a_failing_spool_lost_and_nobody_is_told_of_is_found() {
    let is_of_use = |plan: &Plan| spools(plan) && plan.spool.loses();
    found_in(Canary::MissedUntold, RUNS, is_of_use, &["heard completely"]);
}

#[test]
fn spools_that_lose_on_a_sound_disk_are_found() {
    let is_of_use = |plan: &Plan| spools(plan) && !plan.spool.loses();
    found_in(Canary::SpoolRots, RUNS, is_of_use, &["heard completely"]);
    let is_of_use = |plan: &Plan| spools(plan) && plan.spool.has_faults();
    found_in(Canary::SpoolRots, RUNS, is_of_use, &["spool kept"]);
}

#[test]
fn ignored_groups_are_found() {
    found(Canary::GroupsIgnored, &["one of a group"]);
}

#[test]
fn forced_echoes_are_found() {
    found(Canary::EchoForced, &["no echo"]);
}

#[test]
fn lost_ends_of_subscriptions_are_found() {
    found(Canary::UnsubscribesLost, &["unsubscribed is deaf"]);
}

#[test]
fn ignored_limits_of_subscriptions_are_found() {
    found(Canary::UntilIgnored, &["until exact"]);
}

#[test]
fn lost_words_that_nobody_takes_a_request_are_found() {
    found(Canary::NoRespondersLost, &["requests answered"]);
}

#[test]
fn direct_messages_that_a_queue_lost_are_found() {
    found_in_direct(Canary::CaughtLost, &["confirmed is kept"]);
}

/// Clients take named sessions from each other.
fn is_of_sessions(plan: &Plan) -> bool {
    !plan.sessions.is_empty()
}

#[test]
fn lost_notices_of_lost_sessions_are_found() {
    found_in(Canary::SessionNoticesLost, RUNS, is_of_sessions, &["sessions kept"]);
}

#[test]
fn sessions_that_are_not_recorded_are_found() {
    found_in(Canary::SessionRecordsIgnored, RUNS, is_of_sessions, &["sessions kept"]);
}

#[test]
fn lost_batchs_are_found() {
    found(
        Canary::ParcelsLost,
        &[
            "heard completely",
            "one of a group",
            "requests answered",
            "gets no answer",
            // What is published with it has another number for home than for its publisher.
            "confirmed is kept",
            // Nor does who asks how much is left.
            "queues do not get empty",
        ],
    );
}

#[test]
fn swapped_batchs_are_found() {
    found(Canary::ParcelsSwapped, &["heard in order", "heard completely", "order kept"]);
}

#[test]
fn news_that_are_not_waited_for_are_found() {
    found_in_direct(
        Canary::NewsUnawaited,
        &["heard completely", "one of a group", "requests answered"],
    );
}
