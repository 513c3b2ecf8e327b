//! The report of a comparison as Markdown, and the arithmetic of medians and targets. Own: cells hold
//! `<br>`, which makes them too wide to pad, and a row is one line of code.

use super::side::OURS;
use crate::report::{self, Extent, grouped};
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
        let text = format!("{} {unit}, at most {}", short(value), short(most));
        Check { text, met: value <= most }
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
    /// The peers, each with a column.
    theirs: Vec<String>,
    sections: Vec<Section>,
}

impl Report {
    /// An empty report, with the peers' names.
    pub(crate) fn new(theirs: &[&str]) -> Report {
        let theirs = theirs.iter().map(|name| (*name).to_owned()).collect();
        Report { theirs, sections: Vec::new() }
    }

    /// The name of the first peer.
    pub(crate) fn theirs(&self) -> &str {
        self.theirs.first().map_or("", String::as_str)
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
        let columns = self.theirs.join(" | ");
        let lines = "---|".repeat(4 + self.theirs.len());
        let mut text = format!("| load | {OURS} | {columns} | machine | targets |\n|{lines}\n");
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
            let theirs: Vec<_> = self.theirs.iter().map(|peer| of(&|side| side == peer)).collect();
            let is_peer = |side: &str| self.theirs.iter().any(|peer| peer == side);
            writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                section.name,
                of(&|side| side == OURS),
                theirs.join(" | "),
                of(&|side| side != OURS && !is_peer(side)),
                checks.join("<br>")
            )
            .expect("a String takes everything");
        }
        text
    }
}

/// The middle value; the mean of the middle two of an even count; 0 of none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    report::median(&values.into_iter().collect::<Vec<_>>()).unwrap_or(0.0)
}

/// The median, with the least and the most where there are several.
pub(crate) fn spread(values: impl IntoIterator<Item = f64>, decimals: usize) -> String {
    let values: Vec<f64> = values.into_iter().collect();
    let show = |value: f64| match decimals {
        0 => grouped(value),
        decimals => format!("{value:.decimals$}"),
    };
    let middle = show(median(values.iter().copied()));
    if values.len() < 2 {
        return middle;
    }
    let Extent { low, high } = Extent::of(values);
    format!("{middle} ({} to {})", show(low), show(high))
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
