//! A preset's results as tables for terminals, in the terms of its text: a row for each case, a column for
//! each broker and each system of the text, and the bare machine. Also the remarks beside them.

use super::grouped;
use super::result::{CaseResult, Extent, Measurement, PresetResult, Report, Run};
use super::text_table::{Layout, text_table};
use crate::load::{Checked, Verdict};
use crate::preset::{self, Baseline, Better, History, Preset, metric};
use std::collections::BTreeMap;

/// The mark of a printed figure that is corrected here.
const CORRECTED: &str = "*";

/// A figure with the decimals of its metric.
pub(crate) fn figure(key: &str, value: f64) -> String {
    match metric(key).decimals {
        0 => grouped(value),
        decimals => format!("{value:.decimals$}"),
    }
}

/// The median, with the least and the most where there are several.
pub(super) fn cell(case: &CaseResult, side: usize, key: &str) -> String {
    let values = case.values(side, key);
    let Some(median) = super::median(&values) else {
        return if case.failed(side) { "FAILED".to_owned() } else { "-".to_owned() };
    };
    let text = figure(key, median);
    if values.len() < 2 {
        return text;
    }
    let Extent { low, high } = Extent::of(values);
    format!("{text} [{}..{}]", figure(key, low), figure(key, high))
}

/// What the bare machine does in a case in terms of a metric, if that was measured.
pub(super) fn bare(report: &Report, preset: &Preset, case: &CaseResult, key: &str) -> Option<f64> {
    let raw = report.raw.get(&case.size_bytes);
    match (preset.baseline, key) {
        // Not the publish rate: messages in socket buffers count as published.
        (Baseline::Relay, "out_rate" | "transfer_rate" | "receive_rate") => {
            Some(raw?.messages_per_s)
        }
        (Baseline::Relay, "bandwidth") => Some(raw?.bytes_per_s / 1e6),
        // CPU of sender, relay and receiver together for the bare octets.
        (Baseline::Relay, "tool_us") => Some(raw?.cpu_ns_per_message / 1e3),
        (Baseline::RoundTrip, "p50_us") => Some(raw?.round_trip_us),
        (Baseline::Disk, "out_rate" | "spool_rate") => {
            Some(report.disk.as_ref()?.bytes_per_s / case.size_bytes.max(1) as f64)
        }
        (Baseline::Disk, "bandwidth") => Some(report.disk.as_ref()?.bytes_per_s / 1e6),
        _ => None,
    }
}

/// The name of the same.
pub(super) fn bare_name(baseline: Baseline) -> &'static str {
    match baseline {
        Baseline::None => "",
        Baseline::Relay => "bare relay",
        Baseline::RoundTrip => "bare round trip",
        Baseline::Disk => "bare disk",
    }
}

/// A table of one metric: its head and its rows, all cells as text.
pub(super) struct Grid {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// The table of a metric; `None` if no case has it.
pub(super) fn grid(
    report: &Report,
    result: &PresetResult,
    preset: &Preset,
    key: &str,
) -> Option<Grid> {
    let measured = |case: &CaseResult| {
        let mut sides = result.present(report.sides.len());
        sides.any(|side| !case.values(side, key).is_empty() || case.failed(side))
    };
    if !result.cases.iter().any(measured) {
        return None;
    }
    let has_series = result.cases.iter().any(|case| !case.series.is_empty());
    let systems = preset.systems(Some(key));
    let has_bare = result.cases.iter().any(|case| bare(report, preset, case, key).is_some());
    let present: Vec<usize> = result.present(report.sides.len()).collect();
    let mut head = Vec::new();
    if has_series {
        head.push("series".to_owned());
    }
    head.push(preset.axis.clone());
    head.extend(present.iter().map(|side| report.sides[*side].label.clone()));
    head.extend(systems.iter().map(|system| (*system).to_owned()));
    if has_bare {
        head.extend([bare_name(preset.baseline).to_owned(), "first to it".to_owned()]);
    }
    let row = |case: &CaseResult| {
        let mut row = Vec::new();
        if has_series {
            row.push(case.series.clone());
        }
        row.push(preset.place_cell(case.x));
        row.extend(present.iter().map(|side| cell(case, *side, key)));
        row.extend(systems.iter().map(|system| {
            let mut own =
                preset.history.iter().filter(|it| it.system == *system && it.metric == key);
            let found = own.find_map(|it| Some((it.at(&case.series, case.x)?, it)));
            let mark = |it: &History| if it.corrected.contains(&case.x) { CORRECTED } else { "" };
            found.map_or("-".to_owned(), |(value, it)| figure(key, value) + mark(it))
        }));
        if has_bare {
            row.extend(bare_cells(report, preset, case, key));
        }
        row
    };
    Some(Grid { head, rows: result.cases.iter().map(row).collect() })
}

fn bare_cells(report: &Report, preset: &Preset, case: &CaseResult, key: &str) -> [String; 2] {
    let Some(limit) = bare(report, preset, case, key) else { return ["-".into(), "-".into()] };
    let ratio = case.median(0, key).map(|value| match metric(key).better {
        Better::Higher => format!("{:.2}", value / limit),
        Better::Lower => format!("{:.2}x", value / limit),
    });
    [figure(key, limit), ratio.unwrap_or_else(|| "-".to_owned())]
}

/// A preset's tables and remarks.
pub(crate) fn preset(report: &Report, result: &PresetResult) -> String {
    let Some(preset) = preset::find(&result.name) else {
        return format!("{}: this version does not know it\n", result.name);
    };
    let mut text = format!("\n{}  {}\n  ({})\n", preset.name, preset.about, preset.text);
    if result.present(report.sides.len()).next().is_none() {
        // That they are down is said once, for all presets.
        return String::new();
    }
    let quick = if result.quick { "quick: " } else { "" };
    text += &format!("  {quick}{}\n", result.parameters(" "));
    for key in &preset.columns {
        let Some(grid) = grid(report, result, preset, key) else { continue };
        text += &format!("\n  {}\n", metric(key).title());
        text += &align(grid);
    }
    for remark in remarks(report, result) {
        text += &format!("  ! {remark}\n");
    }
    for note in &preset.notes {
        text += &format!("  - {note}\n");
    }
    text
}

fn align(grid: Grid) -> String {
    let rows = std::iter::once(grid.head).chain(grid.rows).collect();
    text_table(Layout { indent: 4, left_columns: 0 }, rows)
}

/// Remarks beside the figures: failures, losses, refusals, different durability, what printed figures are of,
/// and the bottleneck of a run if it was not the broker.
pub(crate) fn remarks(report: &Report, result: &PresetResult) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    let mut add = |remark: String| {
        if !remarks.contains(&remark) {
            remarks.push(remark);
        }
    };
    let Some(preset) = preset::find(&result.name) else { return remarks };
    let down = report.down();
    for absent in &result.absent {
        let line = format!("not measured: {}: {}", report.sides[absent.side].label, absent.why);
        if !down.contains(&line) {
            add(line);
        }
    }
    let mut limits: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (index, side) in report.sides.iter().enumerate() {
        let label = &side.label;
        for case in &result.cases {
            let at = preset.place(&case.series, case.x);
            for run in case.runs(index) {
                let measurement = match run {
                    Run::Done(measurement) => measurement,
                    Run::Refused(why) => {
                        add(format!("{label}: {why}"));
                        continue;
                    }
                    Run::Failed(why) => {
                        add(format!("{label} at {at}: FAILED: {why}"));
                        continue;
                    }
                };
                add_run(label, &at, measurement, &mut add);
                let limit = measurement.bottleneck.map_or("", |limit| limit.name());
                let labels = limits.entry(limit).or_default();
                if !labels.contains(&label.as_str()) {
                    labels.push(label);
                }
            }
        }
    }
    add_verdicts(report, result, &mut add);
    add_workers(report, result, &mut add);
    for (limit, labels) in limits.iter().filter(|(limit, _)| !limit.is_empty()) {
        add(format!("limited by {limit}: {}", labels.join(", ")));
    }
    add_times(report, result, &mut add);
    add_bare(report, result, preset, &mut add);
    add_printed(result, preset, &mut add);
    if let Some(unlike) = unlike_levels(report, result) {
        add(unlike);
    }
    remarks
}

/// How times came about.
fn add_times(report: &Report, result: &PresetResult, add: &mut impl FnMut(String)) {
    let mut add_times = |remark: &str, is_so: fn(&Measurement) -> bool| {
        let timed = |it: &Measurement| is_so(it) && it.metrics.contains_key("p50_us");
        let sides = report.sides.iter().enumerate();
        let sides = sides.filter(|(side, _)| result.done(*side).any(timed));
        let labels: Vec<&str> = sides.map(|(_, side)| side.label.as_str()).collect();
        if !labels.is_empty() {
            add(format!("{remark}: {}", labels.join(", ")));
        }
    };
    add_times(
        "closed loop: messages waited for room or for an answer, and times are those of such messages",
        |it| it.closed_loop,
    );
    add_times(
        "publishers kept no pace and waited for no answer: times are those of the queue before the consumers",
        |it| it.saturated,
    );
}

/// Brokers that do better than the bare machine did: it is no limit then.
fn add_bare(report: &Report, result: &PresetResult, preset: &Preset, add: &mut impl FnMut(String)) {
    let mut beyond: Vec<&str> = Vec::new();
    // What the tool takes of the processor has nothing to do with a relay's.
    for key in preset.columns.iter().filter(|key| *key != "tool_us") {
        for case in &result.cases {
            let Some(bare) = bare(report, preset, case, key) else { continue };
            for (side, info) in report.sides.iter().enumerate() {
                let is_beyond =
                    case.median(side, key).is_some_and(|value| match metric(key).better {
                        Better::Higher => value > bare,
                        Better::Lower => value < bare,
                    });
                if is_beyond && !beyond.contains(&info.label.as_str()) {
                    beyond.push(&info.label);
                }
            }
        }
    }
    let why = match preset.baseline {
        Baseline::None => return,
        Baseline::Relay => {
            "one thread hands on what comes, piece by piece, measured for a moment before"
        }
        Baseline::RoundTrip => {
            "the machine was measured for a moment before, and changes its speed"
        }
        Baseline::Disk => {
            "flushes of 256 KiB, one after the other, measured for a moment before: larger ones take more"
        }
    };
    if !beyond.is_empty() {
        let (name, labels) = (bare_name(preset.baseline), beyond.join(", "));
        add(format!("the {name} is no limit: {labels} went beyond it ({why})"));
    }
}

/// What printed figures are of, where that differs from what was run, and which are corrected.
fn add_printed(result: &PresetResult, preset: &Preset, add: &mut impl FnMut(String)) {
    if preset.history.is_empty() {
        return;
    }
    let changed = preset.changed(&result.parameters);
    let changed: Vec<String> =
        changed.map(|(name, text, here)| format!("{name}={text}, here {here}")).collect();
    if !changed.is_empty() {
        add(format!("printed figures are of the text's {}", changed.join("; ")));
    }
    for history in &preset.history {
        for x in &history.corrected {
            let (system, at) = (&history.system, preset.place(&history.series, *x));
            add(format!(
                "{CORRECTED} corrected: the text's figure of {system} at {at} is a typo; this one fits those \
                 beside it"
            ));
        }
    }
}

/// Remarks on one run.
fn add_run(label: &str, at: &str, measurement: &Measurement, add: &mut impl FnMut(String)) {
    for failure in measurement.failures() {
        add(format!("{label} at {at}: {}: {failure}", measurement.word()));
    }
    if let Some(why) = &measurement.unjudged {
        add(format!("{label} at {at}: not judged: {why}"));
    }
    for note in &measurement.notes {
        add(format!("{label} at {at}: {note}"));
    }
    if measurement.schedule.as_ref().is_some_and(|schedule| !schedule.tool_kept) {
        add(format!("{label} at {at}: the tool fell behind its schedule: no percentiles"));
    }
}

/// The sum of all verdicts of each side, and how closely messages were checked.
fn add_verdicts(report: &Report, result: &PresetResult, add: &mut impl FnMut(String)) {
    let mut by_check: BTreeMap<Checked, Vec<String>> = BTreeMap::new();
    for (index, side) in report.sides.iter().enumerate() {
        let mut all: BTreeMap<Checked, Verdict> = BTreeMap::new();
        for verdict in result.done(index).filter_map(|run| run.verdict.as_ref()) {
            all.entry(verdict.checked)
                .or_insert_with(|| Verdict::new(verdict.checked))
                .add(verdict);
        }
        for (checked, verdict) in all {
            let text = format!("{} {}", side.label, verdict.describe());
            by_check.entry(checked).or_default().push(text);
        }
    }
    for (checked, verdicts) in by_check {
        add(format!("messages, {}: {}", checked.name(), verdicts.join("; ")));
    }
}

/// The error of times that came from workers.
fn add_workers(report: &Report, result: &PresetResult, add: &mut impl FnMut(String)) {
    let runs = (0..report.sides.len()).flat_map(|side| result.done(side));
    let errors = runs.filter_map(|run| run.clock_error_us);
    if let Some(error_us) = errors.max_by(f64::total_cmp) {
        let workers = report.workers.join(", ");
        add(format!("by workers at {workers}: times are no more exact than {error_us:.1} us"));
    }
}

/// What a confirm of a persistent message means on each side; `None` without persistent messages.
fn unlike_levels(report: &Report, result: &PresetResult) -> Option<String> {
    let persistent = |side: usize| result.done(side).any(|measurement| measurement.persistent);
    let sides: Vec<_> = report.sides.iter().enumerate().filter(|(at, _)| persistent(*at)).collect();
    let (_, first) = sides.first()?;
    let levels: Vec<String> =
        sides.iter().map(|(_, side)| format!("{} {}", side.label, side.level.name())).collect();
    let unlike = sides.iter().any(|(_, side)| side.level != first.level);
    Some(match unlike {
        true => format!("{NOT_COMPARABLE}, confirms mean different things: {}", levels.join(", ")),
        false => format!("a confirm means: {}", levels.join(", ")),
    })
}

/// The mark of a preset whose sides' confirms mean different things.
pub(super) const NOT_COMPARABLE: &str = "NOT COMPARABLE";

/// Whether persistent figures of a preset cannot be compared.
pub(super) fn is_unlike(report: &Report, result: &PresetResult) -> bool {
    unlike_levels(report, result).is_some_and(|text| text.starts_with(NOT_COMPARABLE))
}

/// A preset's row in an overview.
pub(super) struct Row {
    /// Where its figures are from.
    pub(super) place: String,
    /// The metric, with its unit.
    pub(super) metric: String,
    /// The figure of each side that is up.
    pub(super) cells: Vec<String>,
}

/// The row of a preset; `None` if it has no case.
pub(super) fn overview_row(report: &Report, result: &PresetResult, preset: &Preset) -> Option<Row> {
    let wanted = preset.overview.as_ref();
    let key = wanted.map_or(preset.columns[0].as_str(), |it| it.metric.as_str());
    let sides = report.up();
    let metric = metric(key).title();
    if let Some(best) = wanted.and_then(|it| it.best.as_ref()) {
        let of_side = |side: usize| {
            let medians = result.cases.iter().filter_map(|case| case.median(side, key));
            medians.reduce(f64::max).map_or("-".to_owned(), |value| figure(key, value))
        };
        return Some(Row {
            place: best.clone(),
            metric,
            cells: sides.into_iter().map(of_side).collect(),
        });
    }
    let has_it = |case: &&CaseResult| sides.iter().any(|side| !case.values(*side, key).is_empty());
    let series = wanted.map_or("", |it| it.series.as_str());
    let of_series = |case: &&CaseResult| series.is_empty() || case.series == series;
    let at = |case: &&CaseResult| wanted.and_then(|it| it.x).is_none_or(|x| case.x == x);
    let cases = || result.cases.iter().rev();
    let found = cases().find(|case| of_series(case) && at(case) && has_it(case));
    let found = found.or_else(|| cases().find(|case| of_series(case) && has_it(case)));
    let case = found.or_else(|| cases().find(has_it)).or_else(|| result.cases.last())?;
    let place = preset.place(&case.series, case.x);
    Some(Row { place, metric, cells: sides.iter().map(|side| cell(case, *side, key)).collect() })
}

/// All presets in one line each: the figure that stands for each.
pub(crate) fn summary(report: &Report) -> String {
    let mut head = vec!["preset".to_owned(), "case".to_owned(), "metric".to_owned()];
    head.extend(report.up().iter().map(|side| report.sides[*side].label.clone()));
    head.push(String::new());
    let mut rows = Vec::new();
    for result in &report.presets {
        let Some(preset) = preset::find(&result.name) else { continue };
        let Some(figures) = overview_row(report, result, preset) else { continue };
        let mut row = vec![preset.name.clone(), figures.place, figures.metric];
        row.extend(figures.cells);
        let remark = if is_unlike(report, result) { NOT_COMPARABLE } else { "" };
        row.push(remark.to_owned());
        rows.push(row);
    }
    align(Grid { head, rows })
}
