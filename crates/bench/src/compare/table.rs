//! The report of a comparison as Markdown, and the arithmetic of medians and targets. Own: cells hold
//! `<br>`, which makes them too wide to pad, and a row is one line of code.

use super::perftest::{Row, Run, SideRuns};
use super::side::{OURS, RABBITMQ};
use crate::report::grouped;
use std::fmt::Write;

/// A target and whether it is met.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Check {
    text: String,
    met: bool,
}

impl Check {
    /// `value` must not be below `least`.
    pub(crate) fn at_least(unit: &str, value: f64, least: f64) -> Check {
        let text = format!("{} {unit}, at least {}", short(value), short(least));
        Check { text, met: value >= least }
    }

    /// `value` must not be above `most`.
    pub(crate) fn at_most(unit: &str, value: f64, most: f64) -> Check {
        Check {
            text: format!("{} {unit}, at most {}", short(value), short(most)),
            met: value <= most,
        }
    }

    /// Verdicts must be clean.
    pub(crate) fn clean(clean: bool) -> Check {
        Check::holds("nothing lost, duplicated or reordered", clean)
    }

    /// Something must hold.
    pub(crate) fn holds(text: &str, met: bool) -> Check {
        Check { text: text.to_owned(), met }
    }
}

/// A figure of a side, or of the machine.
#[derive(Debug, Clone, PartialEq)]
struct Figure {
    side: String,
    what: String,
    value: String,
}

/// One load: figures of each side, and the targets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Section {
    name: String,
    figures: Vec<Figure>,
    checks: Vec<Check>,
}

impl Section {
    /// An empty section.
    pub(crate) fn new(name: &str) -> Section {
        Section { name: name.to_owned(), figures: Vec::new(), checks: Vec::new() }
    }

    /// Adds a figure of `side`.
    pub(crate) fn value(&mut self, side: &str, what: &str, value: String) {
        self.figures.push(Figure { side: side.to_owned(), what: what.to_owned(), value });
    }

    /// Adds a target.
    pub(crate) fn check(&mut self, check: Check) {
        self.checks.push(check);
    }
}

/// All sections.
#[derive(Debug)]
pub(crate) struct Report {
    theirs: String,
    sections: Vec<Section>,
}

impl Report {
    /// An empty report, with the peer's name.
    pub(crate) fn new(theirs: &str) -> Report {
        Report { theirs: theirs.to_owned(), sections: Vec::new() }
    }

    /// Adds a section at the end.
    pub(crate) fn add(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// Whether nothing was measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// Whether no target was missed.
    pub(crate) fn all_met(&self) -> bool {
        self.sections.iter().flat_map(|section| &section.checks).all(|check| check.met)
    }

    /// The table: a row for each load, a column for each side; median (least to most) of the
    /// rounds.
    pub(crate) fn render(&self) -> String {
        let theirs = self.theirs.as_str();
        let mut text =
            format!("| load | {OURS} | {theirs} | machine | targets |\n|---|---|---|---|---|\n");
        for section in &self.sections {
            let of = |wanted: &dyn Fn(&str) -> bool| {
                let figures = section.figures.iter().filter(|figure| wanted(&figure.side));
                let cells: Vec<_> = figures.map(|it| format!("{} {}", it.what, it.value)).collect();
                cells.join("<br>")
            };
            let checks: Vec<_> = section
                .checks
                .iter()
                .map(|check| {
                    format!("{}: {}", if check.met { "met" } else { "**MISSED**" }, check.text)
                })
                .collect();
            writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                section.name,
                of(&|side| side == OURS),
                of(&|side| side == theirs),
                of(&|side| side != OURS && side != theirs),
                checks.join("<br>")
            )
            .expect("a String takes everything");
        }
        text
    }
}

/// The section of a PerfTest scenario.
pub(crate) fn perftest_row(row: &Row) -> Section {
    let mut section = Section::new(&format!("PerfTest {}", row.scenario.name));
    for SideRuns { side: name, runs } in &row.sides {
        let rates = runs.iter().map(|run| run.received_per_s);
        section.value(name, "msgs/s", spread(rates, 0));
        let broker = spread(runs.iter().map(|run| run.broker_us), 2);
        section.value(name, "broker CPU", format!("{broker} us"));
        let tool = spread(runs.iter().map(|run| run.tool_us), 2);
        section.value(name, "tool CPU", format!("{tool} us"));
    }
    let of = |side: &str, field: fn(&Run) -> f64| {
        let found = row.sides.iter().find(|it| it.side == side);
        found.map(|it| median(it.runs.iter().map(field)))
    };
    let rate = |run: &Run| run.received_per_s;
    if let (Some(least), Some(ours), Some(theirs)) =
        (row.scenario.rate_min, of(OURS, rate), of(RABBITMQ, rate))
    {
        section.check(Check::at_least("times the msgs/s", ours / theirs, least));
    }
    let cpu = |run: &Run| run.broker_us;
    if let (Some(least), Some(ours), Some(theirs)) =
        (row.scenario.cpu_min, of(OURS, cpu), of(RABBITMQ, cpu))
    {
        section.check(Check::at_least("times less broker CPU a message", theirs / ours, least));
    }
    section
}

/// The middle value; the mean of the middle two of an even count; 0 of none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

/// The median, with the least and the most where there are several.
pub(crate) fn spread(values: impl Iterator<Item = f64>, decimals: usize) -> String {
    let values: Vec<f64> = values.collect();
    let show = |value: f64| match decimals {
        0 => grouped(value),
        decimals => format!("{value:.decimals$}"),
    };
    let middle = show(median(values.iter().copied()));
    if values.len() < 2 {
        return middle;
    }
    let (least, most) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &it| {
            (least.min(it), most.max(it))
        });
    format!("{middle} ({} to {})", show(least), show(most))
}

/// A figure with about three digits.
fn short(value: f64) -> String {
    if value.abs() >= 1_000.0 {
        grouped(value)
    } else if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}
