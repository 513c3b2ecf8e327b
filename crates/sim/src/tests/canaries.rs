//! Tests that the checks find each canary.

use crate::canary::Canary;
use crate::plan::Plan;
use crate::random::Random;
use crate::{run, workload};
use angarium_engine::SlowConsumerPolicy;

/// Runs within which each canary must be found.
const RUNS: usize = 60;
/// Runs for canaries that show in one of fifty runs with direct messages.
const RARE_RUNS: usize = 300;
/// Runs of each of some workloads, which must pass.
const WORKLOAD_RUNS: usize = 5;

/// Some run fails with one of the named promises.
fn found(canary: Canary, promises: &[&str]) {
    found_in(canary, RUNS, |_| true, promises);
}

/// Some of [`RARE_RUNS`] runs with direct messages fails with one of the named promises.
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
    found(Canary::ReceivedTwice, &["received at most once"]);
}

#[test]
fn swapped_direct_messages_are_found() {
    found(Canary::ReceivedSwapped, &["received in order", "received completely"]);
}

#[test]
fn lost_direct_messages_are_found() {
    found(Canary::ReceivedLost, &["received completely", "one of a group", "requests answered"]);
}

#[test]
fn altered_direct_messages_are_found() {
    found(Canary::ReceivedAltered, &["received as sent"]);
}

#[test]
fn unreported_missed_messages_are_found() {
    found(Canary::MissedNotReported, &["received completely"]);
}

/// Whether direct messages of slow consumers are spilled.
fn spills(plan: &Plan) -> bool {
    plan.slow_consumer_policy == SlowConsumerPolicy::Spool && plan.sizes.outbox_bytes_max < 1 << 20
}

#[test]
fn unreported_losses_of_a_faulty_spill_disk_are_found() {
    let is_of_use = |plan: &Plan| spills(plan) && plan.spill.loses();
    found_in(Canary::MissedNotReported, RUNS, is_of_use, &["received completely"]);
}

#[test]
fn losses_of_the_spill_on_a_sound_disk_are_found() {
    let is_of_use = |plan: &Plan| spills(plan) && !plan.spill.loses();
    found_in(Canary::SpillCorrupted, RUNS, is_of_use, &["received completely"]);
    let is_of_use = |plan: &Plan| spills(plan) && plan.spill.has_faults();
    found_in(Canary::SpillCorrupted, RUNS, is_of_use, &["spill kept"]);
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
fn lost_unsubscribes_are_found() {
    found(Canary::UnsubscribesLost, &["unsubscribed receives nothing"]);
}

#[test]
fn ignored_limits_of_subscriptions_are_found() {
    found(Canary::UntilIgnored, &["until exact"]);
}

#[test]
fn lost_no_responders_answers_are_found() {
    found(Canary::NoRespondersLost, &["requests answered"]);
}

#[test]
fn lost_messages_of_subject_queues_are_found() {
    found_in_direct(Canary::QueueSubjectLost, &["confirmed is kept"]);
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

/// Clients take messages by AMQP 1.0.
fn is_of_takers(plan: &Plan) -> bool {
    plan.workload == "takers"
}

#[test]
fn releases_that_count_are_found() {
    found_in(Canary::ReleasesCounted, RUNS, is_of_takers, &["returns counted"]);
}

#[test]
fn lost_releases_are_found() {
    found_in(Canary::ReleasesLost, RUNS, is_of_takers, &["returns in place"]);
}

#[test]
fn early_answers_to_drains_are_found() {
    // The client counts other deliveries than the node then.
    let promises = ["drains complete", "gets no answer"];
    found_in(Canary::DrainsEarly, RUNS, is_of_takers, &promises);
}

/// Clients work in transactions by AMQP 1.0.
fn is_of_transactors(plan: &Plan) -> bool {
    plan.workload == "transactors"
}

#[test]
fn commits_that_are_answered_before_their_flush_are_found() {
    let promises = ["confirmed is kept", "settled is gone"];
    found_in(Canary::CommitsEarly, RUNS, is_of_transactors, &promises);
}

#[test]
fn halves_of_transactions_are_found() {
    let promises = ["confirmed is kept", "transactions atomic"];
    found_in(Canary::TransactionsTorn, RUNS, is_of_transactors, &promises);
}

#[test]
fn what_leaks_from_transactions_is_found() {
    let promises = ["nothing invented", "confirmed is kept", "returns counted"];
    found_in(Canary::TransactionsLeak, RUNS, is_of_transactors, &promises);
}

#[test]
fn rollbacks_by_amqp10_that_commit_are_found() {
    let promises = ["nothing invented", "confirmed is kept"];
    found_in(Canary::RollbacksCommitted, RUNS, is_of_transactors, &promises);
}

#[test]
fn what_does_not_go_back_to_its_place_at_a_rollback_is_found() {
    found_in(Canary::RollbacksLost, RUNS, is_of_transactors, &["returns in place"]);
}

#[test]
fn rollbacks_that_are_not_counted_are_found() {
    found_in(Canary::CountsLost, RUNS, is_of_transactors, &["returns counted"]);
}

/// Clients browse queues.
fn is_of_browsers(plan: &Plan) -> bool {
    plan.workload == "browsers"
}

#[test]
fn browses_that_take_are_found() {
    let promises = ["browses take nothing", "confirmed is kept", "browses complete"];
    found_in(Canary::BrowsesTake, RUNS, is_of_browsers, &promises);
}

#[test]
fn browses_that_end_early_are_found() {
    found_in(Canary::DrainsEarly, RUNS, is_of_browsers, &["browses complete"]);
}

#[test]
fn browses_that_repeat_messages_are_found() {
    found_in(Canary::DeliveriesRepeated, RUNS, is_of_browsers, &["browses complete"]);
}

/// Clients speak MQTT.
fn is_of_mqtt(plan: &Plan) -> bool {
    plan.workload == "mqtt"
}

#[test]
fn packet_identifiers_that_are_used_for_two_messages_are_found() {
    found_in(Canary::PacketIdsReused, RUNS, is_of_mqtt, &["sessions receive completely"]);
}

#[test]
fn completions_before_the_removal_is_kept_are_found() {
    found_in(Canary::CompletedEarly, RUNS, is_of_mqtt, &["sessions receive completely"]);
}

#[test]
fn retained_messages_behind_newer_ones_are_found() {
    found_in(Canary::RetainedLate, RARE_RUNS, is_of_mqtt, &["retained is newest"]);
}

#[test]
fn runs_by_workload_pass() {
    for workload in ["takers", "transactors", "browsers", "mqtt"] {
        let is_of_use = |seed: &u64| workload::plan(&mut Random::new(*seed)).workload == workload;
        for seed in (1..).filter(is_of_use).take(WORKLOAD_RUNS) {
            run::run(seed).unwrap_or_else(|failure| panic!("seed {seed}: {}", failure.what));
        }
    }
}

#[test]
fn lost_batches_are_found() {
    found(
        Canary::BatchesLost,
        &[
            "received completely",
            "one of a group",
            "requests answered",
            "gets no answer",
            // A lost publish shifts the numbers of later ones at the home shard.
            "confirmed is kept",
            // The drain's request for a queue's depth gets lost.
            "queues do not get empty",
        ],
    );
}

#[test]
fn swapped_batches_are_found() {
    found(Canary::BatchesSwapped, &["received in order", "received completely", "order kept"]);
}

#[test]
fn premature_pongs_are_found() {
    found_in_direct(
        Canary::PrematurePong,
        &["received completely", "one of a group", "requests answered"],
    );
}
