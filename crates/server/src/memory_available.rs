//! How much memory this process may use: what the machine has, or less where a control group or a limit of
//! the process (`ulimit -v`, `LimitAS=`) bounds it.

use rustix::process::{Resource, getrlimit};
use std::path::{Path, PathBuf};

/// What to assume where the system says nothing.
const UNKNOWN: u64 = 1 << 30;

/// Addresses that a broker takes by itself, where they are limited: the program, its threads, the allocator's
/// reserve and what it asks for in advance.
const RESERVED_ADDRESSES: u64 = 256 << 20;
/// What a broker has anyway, however few addresses there are.
const LEAST: u64 = 64 << 20;

/// Bytes that the process may use.
pub(crate) fn bytes() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let machine = total(&read("/proc/meminfo")).unwrap_or(UNKNOWN);
    let group = bound(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup"));
    let addresses = getrlimit(Resource::As).current;
    let addresses = addresses.map(|most| most.saturating_sub(RESERVED_ADDRESSES).max(LEAST));
    let data = getrlimit(Resource::Data).current;
    [addresses, data, group].into_iter().flatten().fold(machine, u64::min)
}

/// The memory of the machine, from `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The least bound of the groups of the process and those around them. `root`: where they are mounted;
/// `groups`: which they are, from `/proc/self/cgroup`.
fn bound(root: &Path, groups: &str) -> Option<u64> {
    let mut bounds = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        // Version 2 has one hierarchy for all, named by no controller.
        if controllers.is_empty() {
            bounds.extend(bounds_along(root, path, "memory.max"));
            bounds.extend(bounds_along(&root.join("unified"), path, "memory.max"));
        } else if controllers.split(',').any(|controller| controller == "memory") {
            bounds.extend(bounds_along(&root.join("memory"), path, "memory.limit_in_bytes"));
        }
    }
    bounds.into_iter().min()
}

/// The bounds of a group and of all around it. In a container only the last of them may be seen, which is
/// then the container's.
fn bounds_along(mount: &Path, path: &str, file: &str) -> Vec<u64> {
    let inside = PathBuf::from(path.trim_start_matches('/'));
    let folders = inside.ancestors().map(|folder| mount.join(folder).join(file));
    // "max", version 2 says, where there is none; version 1 names a number that no machine has.
    let read = |file: PathBuf| std::fs::read_to_string(file).ok()?.trim().parse().ok();
    folders.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Rlimit, setrlimit};

    #[test]
    fn the_machine_says_what_it_has() {
        assert_eq!(total("MemTotal:       2048 kB\nMemFree: 1 kB\n"), Some(2 << 20));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert!(bytes() > 0);
    }

    #[test]
    fn a_limit_of_the_process_holds() {
        let (before, most) = (getrlimit(Resource::Data), bytes() - 4_096);
        setrlimit(Resource::Data, Rlimit { current: Some(most), ..before }).unwrap();
        let limited = bytes();
        setrlimit(Resource::Data, before).unwrap();
        assert_eq!(limited, most);
    }

    #[test]
    fn the_least_bound_of_all_groups_holds() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let check = |groups: &str, expected| assert_eq!(bound(root.path(), groups), expected);
        check("0::/a/b\n", None);
        write("a/b/memory.max", "max\n");
        check("0::/a/b\n", None);
        write("a/memory.max", "500\n");
        check("0::/a/b\n", Some(500));
        write("a/b/memory.max", "400\n");
        check("0::/a/b\n", Some(400));
        check("0::/a\n", Some(500));
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/c/memory.limit_in_bytes", "300\n");
        check("4:cpu,cpuacct:/x\n3:memory:/c\n", Some(300));
        // A container sees its own group as the root.
        check("3:memory:/docker/0123\n", Some(9_223_372_036_854_771_712));
        check("3:memory:/c\n0::/a\n", Some(300));
        check("nonsense", None);
    }
}
