//! How many files and sockets the system lets this process have open, and how many of them are left to
//! clients: if clients had all of them, the journal could not open a file.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files of a folder that are open at once, each up to twice ([`angarium_journal::Disk`]).
const FOLDER_FILES: u64 = 2 * 128;
/// What a shard has.
const SHARD_FILES: u64 = 16;
/// Connections by HTTP and the socket of administration, and what every process has.
const OTHER_FILES: u64 = 2 * 256 + 64;

/// Raises the limit as far as the system allows; returns how many clients that leaves room for.
pub(super) fn clients_max(shards: usize) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let open_max = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    open_max.map_or(u64::MAX, |open_max| left_to_clients(open_max, shards as u64))
}

/// What the journal, the store of the spill logs and administration leave, but half of all in any case.
fn left_to_clients(open_max: u64, shards: u64) -> u64 {
    let kept = 2 * FOLDER_FILES + shards * SHARD_FILES + OTHER_FILES;
    open_max - kept.min(open_max / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_what_the_broker_does_not_need_itself() {
        for (open_max, shards, expected) in
            [(524_288, 1, 523_184), (262_144, 16, 260_800), (1_024, 1, 512), (60, 1, 30), (0, 1, 0)]
        {
            assert_eq!(left_to_clients(open_max, shards), expected, "{open_max}, {shards}");
        }
    }
}
