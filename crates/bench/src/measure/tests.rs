//! Parsing of `/proc`, and latency summaries.

use super::instructions;
use super::latency::Latencies;
use super::process::{
    Cost, Stat, Ticks, Usage, descendants, listening_inode, parse_machine, parse_stat, parse_words,
    status_field,
};
use std::collections::BTreeMap;

#[test]
fn stat_is_read_whatever_the_name_is() {
    let rest = "S 12 1 1 0 -1 4194560 100 200 0 0 150 50 7 8 20 0 4 0 100 1000 200";
    for name in ["beam.smp", "a b", "tricky) (S 99 1"] {
        let stat = parse_stat(&format!("34 ({name}) {rest}"));
        let times = Stat { parent: 12, cpu_ns: 2_000_000_000, children_ns: 150_000_000 };
        assert_eq!(stat, Some(times));
    }
    assert_eq!(parse_stat("34 (cut short) S 12"), None);
    assert_eq!(parse_stat(""), None);
}

#[test]
fn words_of_a_command_line_end_with_a_zero() {
    assert_eq!(parse_words(b"a\0-b\0\0"), ["a", "-b", ""]);
    // An ended process, or a kernel thread.
    assert_eq!(parse_words(b""), [""; 0]);
}

#[test]
fn status_fields_are_found_by_their_whole_name() {
    let status = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\nvoluntary_ctxt_switches:\t5\n\
                  nonvoluntary_ctxt_switches:\t7\n";
    assert_eq!(status_field(status, "VmRSS"), Some(1024));
    assert_eq!(status_field(status, "VmHWM"), Some(2048));
    assert_eq!(status_field(status, "voluntary_ctxt_switches"), Some(5));
    assert_eq!(status_field(status, "nonvoluntary_ctxt_switches"), Some(7));
    assert_eq!(status_field(status, "Vm"), None);
}

#[test]
fn descendants_are_children_of_children_and_cycles_end() {
    let parents = BTreeMap::from([(1, 0), (2, 1), (3, 2), (4, 3), (5, 1), (8, 9), (9, 8)]);
    assert_eq!(descendants(2, &parents), [3, 4]);
    assert_eq!(descendants(5, &parents), [] as [u32; 0]);
}

#[test]
fn a_listener_is_told_from_a_connection_on_the_same_port() {
    let table = "sl local_address rem_address st queues when retrnsmt uid timeout inode\n\
                 0: 0100007F:1628 0100007F:9C40 01 0:0 0:0 0 0 0 111 1\n\
                 1: 0100007F:1628 00000000:0000 0A 0:0 0:0 0 0 0 222 1\n";
    assert_eq!(listening_inode(table, 0x1628), Some(222));
    assert_eq!(listening_inode(table, 0x1629), None);
}

#[test]
fn a_cost_is_per_message_and_per_second() {
    let start = Usage { cpu_ns: 1_000_000, context_switches: 5, ..Usage::default() };
    let end = Usage {
        cpu_ns: 1_001_000_000,
        rss_kib: 30,
        rss_peak_kib: 40,
        context_switches: 25,
        disk_bytes: 8_192,
        write_calls: 4,
        ..Usage::default()
    };
    let cost = Cost::between(Some(&start), Some(&end), 2.0, 1_000).expect("both are known");
    assert_eq!(cost.cpu_ns_per_message, 1_000_000.0);
    assert_eq!(cost.cpu_share, 0.5);
    assert_eq!(cost.context_switches_per_s, 10.0);
    assert_eq!((cost.disk_bytes_per_s, cost.write_calls_per_s), (4_096.0, 2.0));
    assert_eq!((cost.rss_kib, cost.rss_peak_kib), (30, 40));
}

#[test]
fn latencies_add_up_over_workers() {
    let (mut one, mut other) = (Latencies::default(), Latencies::default());
    assert_eq!(one.summary(), None);
    (1..=99).for_each(|us| one.record(us * 1_000));
    other.record(100_000);
    one.merge(&other);
    let summary = one.summary().expect("there are latencies");
    assert_eq!(summary.count, 100);
    let close = |value: f64, wanted: f64| (value - wanted).abs() <= wanted / 500.0;
    assert!(close(summary.p50_us, 50.0), "{summary:?}");
    assert!(close(summary.p99_us, 99.0), "{summary:?}");
    assert!(close(summary.max_us, 100.0), "{summary:?}");
    // Beyond the longest distinguished latency: recorded as that.
    other.record(u64::MAX);
    let summary = other.summary().expect("there are latencies");
    assert!(close(summary.max_us, 6e7), "{summary:?}");
}

#[test]
fn instructions_are_read_where_they_were_counted() {
    let counted = "# started\n\n123456789,,instructions:u,2000123,100.00,,\n";
    assert_eq!(instructions::parse(counted), Some(123_456_789));
    for refused in ["<not supported>,,instructions:u,0,100.00,,\n", "Error:\nNo permission\n", ""] {
        assert_eq!(instructions::parse(refused), None, "{refused}");
    }
}

#[test]
fn what_no_process_of_the_machine_did_is_told_apart() {
    let stat = "cpu  100 20 50 700 30 4 60 36 0 0\ncpu0 1 2 3";
    let ticks = Ticks { busy: 270, interrupts: 64, stolen: 36, all: 1_000 };
    assert_eq!(parse_machine(stat), Some(ticks));
    // Kernels before 2.6.11 have no steal field.
    let older = Ticks { busy: 234, stolen: 0, all: 964, ..ticks };
    assert_eq!(parse_machine("cpu  100 20 50 700 30 4 60"), Some(older));
    assert_eq!(parse_machine("cpu  100 20 50"), None);
}

#[test]
fn the_largest_memory_counts_from_when_that_is_asked_for() {
    const BYTES: usize = 128 << 20;
    let pid = std::process::id();
    let peak = || Usage::of_tree(pid).expect("it is us").rss_peak_kib;
    drop(std::hint::black_box(vec![1u8; BYTES]));
    let before = peak();
    Usage::forget_peaks(pid);
    assert!(peak() + (BYTES / 2 / 1024) as u64 <= before, "{before} and {}", peak());
}
