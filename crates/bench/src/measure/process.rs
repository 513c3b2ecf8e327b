//! What processes take, as Linux tells it under `/proc`. Elsewhere nothing is seen and nothing
//! reported.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What a process and all below it took so far, and hold now.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of all threads, in user and kernel.
    pub cpu_ns: u64,
    /// Resident memory now.
    pub rss_kib: u64,
    /// The most resident memory so far.
    pub rss_peak_kib: u64,
    /// Context switches, voluntary and not.
    pub context_switches: u64,
    /// Octets handed to the disk.
    pub disk_bytes: u64,
    /// Calls that wrote to files; sends on sockets are not among them.
    pub write_calls: u64,
}

/// What a broker took over a measured span.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU nanoseconds per message.
    pub cpu_ns_per_message: f64,
    /// Cores' worth of CPU.
    pub cpu_share: f64,
    /// Context switches per second.
    pub context_switches_per_s: f64,
    /// Octets per second handed to the disk.
    pub disk_bytes_per_s: f64,
    /// Calls per second that wrote to files.
    pub write_calls_per_s: f64,
    /// Resident memory at the end.
    pub rss_kib: u64,
    /// The most resident memory since it started.
    pub rss_peak_kib: u64,
}

impl Cost {
    /// The cost of `messages` between two usages.
    pub fn between(start: &Usage, end: &Usage, span_s: f64, messages: u64) -> Cost {
        let grown = |field: fn(&Usage) -> u64| field(end).saturating_sub(field(start)) as f64;
        let cpu_ns = grown(|usage| usage.cpu_ns);
        Cost {
            cpu_ns_per_message: cpu_ns / messages.max(1) as f64,
            cpu_share: cpu_ns / 1e9 / span_s,
            context_switches_per_s: grown(|usage| usage.context_switches) / span_s,
            disk_bytes_per_s: grown(|usage| usage.disk_bytes) / span_s,
            write_calls_per_s: grown(|usage| usage.write_calls) / span_s,
            rss_kib: end.rss_kib,
            rss_peak_kib: end.rss_peak_kib,
        }
    }
}

impl Usage {
    /// The usage of the process and its descendants; `None` if it is not there.
    pub fn of_tree(pid: u32) -> Option<Usage> {
        let mut total = Usage::of(pid)?;
        for child in descendants(pid, &parents()) {
            // One that ended meanwhile is not there to be counted.
            if let Some(usage) = Usage::of(child) {
                total.cpu_ns += usage.cpu_ns;
                total.rss_kib += usage.rss_kib;
                total.rss_peak_kib += usage.rss_peak_kib;
                total.context_switches += usage.context_switches;
                total.disk_bytes += usage.disk_bytes;
                total.write_calls += usage.write_calls;
            }
        }
        Some(total)
    }

    fn of(pid: u32) -> Option<Usage> {
        let folder = Path::new("/proc").join(pid.to_string());
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        let status = fs::read_to_string(folder.join("status")).ok()?;
        // Only its own user may read this one.
        let io = fs::read_to_string(folder.join("io")).unwrap_or_default();
        let mut usage = Usage {
            cpu_ns: parse_stat(&stat)?.cpu_ns,
            rss_kib: status_field(&status, "VmRSS").unwrap_or(0),
            rss_peak_kib: status_field(&status, "VmHWM").unwrap_or(0),
            context_switches: 0,
            disk_bytes: status_field(&io, "write_bytes").unwrap_or(0),
            write_calls: status_field(&io, "syscw").unwrap_or(0),
        };
        for task in fs::read_dir(folder.join("task")).ok()?.flatten() {
            let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
            for name in ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"] {
                usage.context_switches += status_field(&status, name).unwrap_or(0);
            }
        }
        Some(usage)
    }
}

/// CPU time of this process.
pub fn own_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The fields of `/proc/PID/stat` that count here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: u32,
    pub(super) cpu_ns: u64,
}

/// Linux counts in ticks of 10 ms here whatever its own timer does (`getconf CLK_TCK`). The kernel
/// scales user and system time to the precise run time, so only the rounding is lost.
const TICK_NS: u64 = 10_000_000;

pub(super) fn parse_stat(stat: &str) -> Option<Stat> {
    // The second field is the name in brackets, which may hold anything, brackets and spaces too.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    Some(Stat { parent: number(1)? as u32, cpu_ns: (number(11)? + number(12)?) * TICK_NS })
}

/// CPU time of the ended children, from the text of a `/proc/PID/stat`.
pub(crate) fn parse_children_ns(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut times = rest.split_whitespace().skip(13).map_while(|field| field.parse::<u64>().ok());
    Some((times.next()? + times.next()?) * TICK_NS)
}

pub(super) fn status_field(status: &str, name: &str) -> Option<u64> {
    let line = status
        .lines()
        .find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The parent of every process.
fn parents() -> BTreeMap<u32, u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let entry = |process: fs::DirEntry| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(process.path().join("stat")).ok()?;
        Some((pid, parse_stat(&stat)?.parent))
    };
    processes.filter_map(entry).collect()
}

pub(super) fn descendants(root: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let is_below = |&pid: &u32| {
        let mut ancestor = pid;
        // A chain longer than the number of processes would be a cycle of reused numbers.
        for _ in 0..parents.len() {
            match parents.get(&ancestor) {
                Some(&parent) if parent == root => return true,
                Some(&parent) => ancestor = parent,
                None => return false,
            }
        }
        false
    };
    parents.keys().copied().filter(is_below).collect()
}

/// The process that listens on a TCP port of this machine.
pub fn listener_pid(port: u16) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let sockets: Vec<String> = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .filter_map(|table| listening_inode(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    let holds = |pid: &u32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        descriptors
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
    };
    parents().into_keys().find(holds)
}

pub(super) fn listening_inode(table: &str, port: u16) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
        let is_listening = *fields.get(3)? == "0A";
        let is_port = u16::from_str_radix(local_port, 16).ok()? == port;
        (is_listening && is_port).then(|| fields.get(9)?.parse().ok())?
    })
}
