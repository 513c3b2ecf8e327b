//! Retired names of modules: the vocabulary of ARCHITECTURE.md has one word for each thing.

use super::Tree;
use super::allow::Finding;
use std::collections::BTreeSet;

/// The rule's name in the list of known offenders.
pub(super) const RULE: &str = "retired-names";

/// A name of a file or folder that must not come back.
struct Retired {
    /// The crate; `*` for all.
    of: &'static str,
    /// One part of a path, or several with `/` between them; a file without its `.rs`.
    name: &'static str,
    /// The name to use.
    instead: &'static str,
}

const fn retired(of: &'static str, name: &'static str, instead: &'static str) -> Retired {
    Retired { of, name, instead }
}

/// Every retired name. One that still exists is in the list of known offenders until it is renamed.
const NAMES: &[Retired] = &[
    retired("*", "crowded", "slow_subscribers"),
    retired("*", "egress", "outbox"),
    retired("*", "episodes", "slow_consumer_events"),
    retired("*", "laggard", "slow_consumer"),
    retired("*", "laggards", "slow_consumers"),
    retired("*", "laggards_alone_go", "slow_consumers_alone_go"),
    retired("*", "mesh", "shard/links"),
    retired("*", "outlet", "writer"),
    retired("*", "parcel", "shard/message"),
    retired("*", "streak", "cached_route"),
    retired("engine", "away", "remote_home"),
    retired("engine", "burst", "batch"),
    retired("engine", "departed", "reclaim"),
    retired("engine", "difference", "declaration_mismatch"),
    retired("engine", "direct", "pubsub"),
    retired("engine", "elsewhere", "deferred_drop"),
    retired("engine", "hearing", "fanout"),
    retired("engine", "loaded", "page_in"),
    retired("engine", "names", "ids"),
    retired("engine", "news", "interest_sync"),
    retired("engine", "paging", "page_out"),
    retired("engine", "relocate", "compaction"),
    retired("engine", "settling", "deferred_settle"),
    retired("engine", "share", "drain_pacing"),
    retired("engine", "src/subscription", "consumer"),
    retired("engine", "step", "work_budget"),
    retired("engine", "taking", "incremental_snapshot"),
    retired("engine", "transit", "shard/message_codec"),
    retired("node", "arriving", "shard/inbox"),
    retired("node", "audience", "recent_subscribers"),
    retired("node", "burst", "batch"),
    retired("node", "guest", "shard/remote_connection"),
    retired("node", "outrun", "throttle"),
    retired("node", "places", "connection/limits"),
    retired("node", "surveys", "connection/query"),
    retired("node", "twins", "dedup_index"),
    retired("node", "visiting", "remote_queues"),
    retired("node", "waiting", "read_pause"),
    retired("node", "world", "effects"),
    retired("journal", "faulty", "faulty_storage"),
    retired("journal", "ways", "flush_methods"),
    retired("protocol", "amqp091/session", "handler"),
    retired("protocol", "ending", "close"),
    retired("protocol", "gather", "reassembly"),
    retired("protocol", "large", "shared_body"),
    retired("protocol", "last_method", "publish_memo"),
    retired("protocol", "monitor", "sys_requests"),
    retired("protocol", "nats/session", "handler"),
    retired("protocol", "src/session", "handler"),
    retired("server", "arrivals", "accept"),
    retired("server", "bodies", "request_types"),
    retired("server", "caller", "auth"),
    retired("server", "damage", "storage_alerts"),
    retired("server", "moderation", "input_coalescing"),
    retired("server", "neighbours", "shard_directory"),
    retired("server", "notes", "warnings"),
    retired("server", "operators", "admin_replies"),
    retired("server", "polling", "busy_poll"),
    retired("server", "room", "receive_buffer"),
    retired("server", "share", "read_budget"),
    retired("server", "slow_steps", "slow_step_log"),
    retired("server", "wave", "parallel_send"),
    retired("sim", "hasty", "premature_pong"),
    retired("sim", "lodger", "lease_keeper"),
    retired("sim", "meddler", "queue_deleter"),
    retired("sim", "scene", "client_context"),
    retired("bench", "keeper", "process_reaper"),
    retired("bench", "load/wave", "fanout_latency"),
    retired("bench", "stand_in", "fake_broker"),
    retired("bench", "stored", "memory_per_message"),
    retired("bench", "take_out", "drain"),
    retired("bench", "unruly", "misbehaving_clients"),
    retired("bench", "versus", "compare"),
];

/// Every file and folder of a crate's sources and examples that has a retired name.
pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut found = BTreeSet::new();
    for (path, _) in tree.rust() {
        let Some((name, inner)) = path.strip_prefix("crates/").and_then(|it| it.split_once('/'))
        else {
            continue;
        };
        if !inner.starts_with("src/") && !inner.starts_with("examples/") {
            continue;
        }
        for row in NAMES.iter().filter(|row| row.of == "*" || row.of == name) {
            if let Some(place) = place(inner, row.name) {
                found.insert((format!("crates/{name}/{place}"), row.name, row.instead));
            }
        }
    }
    let finding = |(path, name, instead): (String, &str, &str)| {
        let text = format!("the name '{name}' was retired: say '{instead}'");
        Finding::in_file(RULE, &path, 0, text)
    };
    found.into_iter().map(finding).collect()
}

/// The file or folder in the path that bears the name.
fn place<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let ends = |end: usize| {
        let rest = &path[end..];
        rest.starts_with('/') || rest == ".rs"
    };
    let found = path.match_indices(name).find(|(start, _)| {
        let begins = *start == 0 || path[..*start].ends_with('/');
        begins && ends(start + name.len())
    });
    found.map(|(start, _)| {
        let end = start + name.len();
        if &path[end..] == ".rs" { path } else { &path[..end] }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(paths: &[&str], expected: &[&str]) {
        let mut tree = Tree::default();
        for path in paths {
            tree.texts.insert((*path).to_string(), String::new());
        }
        let found: Vec<String> = find(&tree).into_iter().map(|it| it.path).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn files_and_folders_are_found() {
        check(&["crates/engine/src/away.rs"], &["crates/engine/src/away.rs"]);
        check(
            &["crates/node/src/egress/mod.rs", "crates/node/src/egress/piece.rs"],
            &["crates/node/src/egress"],
        );
        check(&["crates/bench/src/load/wave.rs"], &["crates/bench/src/load/wave.rs"]);
        check(&["crates/engine/src/subscription/mod.rs"], &["crates/engine/src/subscription"]);
    }

    #[test]
    fn other_crates_and_other_names_pass() {
        check(&["crates/bench/src/direct.rs", "crates/engine/src/redirect.rs"], &[]);
        check(&["crates/server/src/away.rs", "crates/bench/src/wave.rs"], &[]);
        check(&["crates/engine/src/pubsub/subscription.rs", "docs/away.rs"], &[]);
    }

    #[test]
    fn each_row_has_its_own_name() {
        let rows: BTreeSet<_> = NAMES.iter().map(|row| (row.of, row.name)).collect();
        assert_eq!(rows.len(), NAMES.len());
        assert!(NAMES.iter().all(|row| row.name != row.instead));
    }
}
