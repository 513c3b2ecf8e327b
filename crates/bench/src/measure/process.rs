//! Resource use of processes and the machine from Linux's `/proc`. Other systems report nothing.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::iter::{once, successors};
use std::path::{Path, PathBuf};

/// What a process and its descendants have used so far.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of all threads, in user and kernel.
    pub cpu_ns: u64,
    /// Resident memory.
    pub rss_kib: u64,
    /// Peak of the resident memory.
    pub rss_peak_kib: u64,
    /// Context switches, voluntary and not.
    pub context_switches: u64,
    /// Bytes written to disk.
    pub disk_bytes: u64,
    /// System calls that wrote to files, not to sockets.
    pub write_calls: u64,
    /// CPU time of each living thread.
    pub threads_ns: BTreeMap<u32, u64>,
}

/// What a broker used over a measured span.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU nanoseconds per message.
    pub cpu_ns_per_message: f64,
    /// Cores of CPU.
    pub cpu_share: f64,
    /// Context switches per second.
    pub context_switches_per_s: f64,
    /// Bytes per second written to disk.
    pub disk_bytes_per_s: f64,
    /// System calls per second that wrote to files.
    pub write_calls_per_s: f64,
    /// Cores of CPU of the busiest thread.
    pub busiest_thread_share: f64,
    /// Flushes per second of all disks of the machine, including those of other processes.
    pub disk_flushes_per_s: Option<f64>,
    /// Resident memory at the end.
    pub rss_kib: u64,
    /// Peak of the resident memory in the measurement, or since the start where it cannot be reset.
    pub rss_peak_kib: u64,
}

impl Cost {
    /// The cost of `messages` between two usages, if both are known.
    pub fn between(
        start: Option<&Usage>,
        end: Option<&Usage>,
        span_s: f64,
        messages: u64,
    ) -> Option<Cost> {
        let (start, end) = start.zip(end)?;
        let grown = |field: fn(&Usage) -> u64| field(end).saturating_sub(field(start)) as f64;
        let cpu_ns = grown(|usage| usage.cpu_ns);
        Some(Cost {
            cpu_ns_per_message: cpu_ns / messages.max(1) as f64,
            cpu_share: cpu_ns / 1e9 / span_s,
            context_switches_per_s: grown(|usage| usage.context_switches) / span_s,
            disk_bytes_per_s: grown(|usage| usage.disk_bytes) / span_s,
            write_calls_per_s: grown(|usage| usage.write_calls) / span_s,
            busiest_thread_share: end.busiest_since(start) as f64 / 1e9 / span_s,
            disk_flushes_per_s: None,
            rss_kib: end.rss_kib,
            rss_peak_kib: end.rss_peak_kib,
        })
    }
}

impl Usage {
    /// CPU time of the busiest thread since `start`.
    fn busiest_since(&self, start: &Usage) -> u64 {
        let before = |thread: &u32| start.threads_ns.get(thread).copied().unwrap_or(0);
        let grown = |(thread, ns): (&u32, &u64)| ns.saturating_sub(before(thread));
        self.threads_ns.iter().map(grown).max().unwrap_or(0)
    }

    /// Resets the memory peaks of the process and its descendants, where the system allows it.
    pub fn forget_peaks(pid: u32) {
        for pid in once(pid).chain(descendants(pid, &parents())) {
            // See proc(5): 5 sets the high-water mark to the current resident memory.
            let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
        }
    }

    /// The usage of a process and its descendants; `None` if it does not exist.
    pub fn of_tree(pid: u32) -> Option<Usage> {
        let mut total = Usage::of(pid)?;
        for child in descendants(pid, &parents()) {
            // The child may have ended.
            if let Some(usage) = Usage::of(child) {
                total.cpu_ns += usage.cpu_ns;
                total.rss_kib += usage.rss_kib;
                total.rss_peak_kib += usage.rss_peak_kib;
                total.context_switches += usage.context_switches;
                total.disk_bytes += usage.disk_bytes;
                total.write_calls += usage.write_calls;
                total.threads_ns.extend(usage.threads_ns);
            }
        }
        Some(total)
    }

    fn of(pid: u32) -> Option<Usage> {
        let folder = Path::new("/proc").join(pid.to_string());
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        let status = fs::read_to_string(folder.join("status")).ok()?;
        // Readable by the process's own user only.
        let io = fs::read_to_string(folder.join("io")).unwrap_or_default();
        let mut usage = Usage {
            cpu_ns: parse_stat(&stat)?.cpu_ns,
            rss_kib: status_field(&status, "VmRSS").unwrap_or(0),
            rss_peak_kib: status_field(&status, "VmHWM").unwrap_or(0),
            context_switches: 0,
            disk_bytes: status_field(&io, "write_bytes").unwrap_or(0),
            write_calls: status_field(&io, "syscw").unwrap_or(0),
            threads_ns: BTreeMap::new(),
        };
        for task in fs::read_dir(folder.join("task")).ok()?.flatten() {
            let number = task.file_name().to_str().and_then(|name| name.parse().ok());
            let schedule = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            let ns = schedule.split_whitespace().next().and_then(|field| field.parse().ok());
            if let (Some(number), Some(ns)) = (number, ns) {
                usage.threads_ns.insert(number, ns);
            }
            let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
            for name in ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"] {
                usage.context_switches += status_field(&status, name).unwrap_or(0);
            }
        }
        // The scheduler's count is exact where ticks are rounded, but lacks ended threads.
        let exact_ns: u64 = usage.threads_ns.values().sum();
        if exact_ns + 2 * TICK_NS * usage.threads_ns.len() as u64 >= usage.cpu_ns {
            usage.cpu_ns = exact_ns;
        }
        Some(usage)
    }
}

/// CPU time of this process.
pub fn own_cpu_ns() -> u64 {
    clock_ns(ClockId::ProcessCPUTime)
}

/// CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

#[inline]
fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU ticks of all cores of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks {
    /// All ticks but idle and waiting.
    pub busy: u64,
    /// The part of `busy` in interrupts, which no process is charged for, such as loopback traffic.
    pub interrupts: u64,
    /// Ticks that the hypervisor gave to others while a core had work.
    pub stolen: u64,
    /// All ticks.
    pub all: u64,
}

/// CPU ticks of this machine since it started.
pub fn machine_ticks() -> Option<Ticks> {
    parse_machine(&fs::read_to_string("/proc/stat").ok()?)
}

/// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
pub(super) fn parse_machine(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|it| it.parse().ok()).take(8).collect();
    let all: u64 = ticks.iter().sum();
    let interrupts = ticks.get(5)? + ticks.get(6)?;
    let stolen = ticks.get(7).copied().unwrap_or(0);
    Some(Ticks { busy: all - ticks[3] - ticks[4], interrupts, stolen, all })
}

/// Completed flush requests of all disks of this machine since it started.
pub fn disk_flushes() -> Option<u64> {
    parse_flushes(&fs::read_to_string("/proc/diskstats").ok()?)
}

/// Sums the flush counter (kernel documentation, `admin-guide/iostats.rst`, field 16) over all disks;
/// `None` if no disk has it.
pub(super) fn parse_flushes(table: &str) -> Option<u64> {
    let field = |line: &str| line.split_whitespace().nth(18)?.parse::<u64>().ok();
    table.lines().filter_map(field).reduce(|sum, count| sum + count)
}

/// The used fields of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) parent: u32,
    pub(crate) cpu_ns: u64,
    pub(crate) children_ns: u64,
}

/// Linux reports ticks of 10 ms whatever its timer does (`getconf CLK_TCK`). The kernel scales user and
/// system time to the precise run time, so only the rounding is lost.
const TICK_NS: u64 = 10_000_000;

pub(crate) fn parse_stat(stat: &str) -> Option<Stat> {
    // The second field is the name in brackets, which may contain brackets and spaces.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    let sum_ns = |index: usize| Some((number(index)? + number(index + 1)?) * TICK_NS);
    Some(Stat { parent: number(1)? as u32, cpu_ns: sum_ns(11)?, children_ns: sum_ns(13)? })
}

pub(super) fn status_field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

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
        let ancestors = successors(Some(pid), |pid| parents.get(pid).copied());
        // A chain longer than the number of processes is a cycle of reused numbers.
        ancestors.skip(1).take(parents.len()).any(|ancestor| ancestor == root)
    };
    parents.keys().copied().filter(is_below).collect()
}

/// The command line of a process; empty if it is gone or not visible.
pub fn command_line(pid: u32) -> Vec<String> {
    parse_words(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default())
}

pub(super) fn parse_words(bytes: &[u8]) -> Vec<String> {
    let Some(bytes) = bytes.strip_suffix(&[0]) else { return Vec::new() };
    let words = bytes.split(|octet| *octet == 0);
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The process that listens on a TCP port of this machine.
pub fn listener_pid(port: u16) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let sockets: Vec<PathBuf> = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .filter_map(|table| listening_inode(&table, port))
        .map(|inode| format!("socket:[{inode}]").into())
        .collect();
    if sockets.is_empty() {
        return None;
    }
    let holds = |pid: &u32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.any(|target| sockets.contains(&target))
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
