//! The CPU cost of drivers as a table.

use super::grouped;
use super::text_table::{Layout, text_table};
use crate::load::drivers::{DriverCost, DriverCosts};
use std::fmt::Write;

/// A row for each side of each driver.
pub(crate) fn drivers(costs: &DriverCosts) -> String {
    let with = match (costs.checksum, costs.latency) {
        (true, true) => " with checksums and latencies",
        (true, false) => " with checksums",
        (false, true) => " with latencies",
        (false, false) => "",
    };
    let (size_bytes, runs, span_s) = (costs.size_bytes, costs.runs, costs.span_s);
    let mut text = format!(
        "CPU nanoseconds per message of {size_bytes} B{with}: medians of {runs} runs of {span_s} s\n\n"
    );
    let head =
        ["driver", "side", "octets", "in all", "bare socket", "own share", "of runs", "limit"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(costs.drivers.iter().map(|cost| cells(cost, costs.limit_ns).to_vec()));
    text += &text_table(Layout { indent: 0, left_columns: 2 }, rows);
    for cost in costs.drivers.iter().filter(|cost| !cost.verdict.is_clean()) {
        let (driver, side) = (&cost.driver, cost.side.name());
        writeln!(text, "NOT CLEAN: {driver}, {side}: {}", cost.verdict.describe())
            .expect("a String takes everything");
    }
    if costs.interrupted {
        text += "PARTIAL: it was interrupted\n";
    }
    text
}

fn cells(cost: &DriverCost, limit_ns: f64) -> [String; 8] {
    let ns = |value: f64| format!("{value:.1}");
    [
        cost.driver.clone(),
        cost.side.name().to_owned(),
        grouped(cost.wire_bytes as f64),
        ns(cost.cpu_ns),
        ns(cost.bare_ns),
        ns(cost.own_ns),
        format!("{:.1}..{:.1}", cost.own_ns_min, cost.own_ns_max),
        match cost.limit_kept {
            None => "-".to_owned(),
            Some(true) => format!("{limit_ns:.0} kept"),
            Some(false) => format!("{limit_ns:.0} EXCEEDED"),
        },
    ]
}
