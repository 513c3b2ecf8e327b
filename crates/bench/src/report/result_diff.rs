//! The difference of two results: which figures changed by more than the noise, and why results are not
//! comparable.

use super::result::{Absent, CaseResult, Extent, PresetResult, Report};
use super::table::figure;
use super::text_table::{Layout, text_table};
use crate::preset::{self, Better, Preset, metric};
use std::fmt::Write;

/// Differences below this part are noise even if the runs differ less: shared machines are no better.
const NOISE_MIN: f64 = 0.05;

/// Two results beside each other.
#[derive(Debug)]
pub(crate) struct Diff {
    /// What changed.
    pub(crate) text: String,
    /// Both results as one, for a page.
    pub(crate) both: Report,
}

/// Compares `a`, the result before a change, with `b`, the result after it.
pub(crate) fn diff(a: &Report, b: &Report) -> Diff {
    let mut text = String::new();
    let mut line = |line: &str| writeln!(text, "{line}").expect("a String takes everything");
    let machines = a.machine.differences(&b.machine);
    for difference in &machines {
        line(&format!("! {difference}"));
    }
    if !machines.is_empty() {
        line("! other machines: differences say nothing about brokers alone");
    }
    for (name, report) in [("A", a), ("B", b)] {
        if let Some(why) = &report.partial {
            line(&format!("! {name} is partial: {why}"));
        }
    }
    let noise = noise(a).into_iter().chain(noise(b)).fold(NOISE_MIN, f64::max);
    line(&format!("differences below {:.0}% are taken for noise", noise * 100.0));
    for before in &a.presets {
        let Some(preset) = preset::find(&before.name) else { continue };
        let Some(after) = b.presets.iter().find(|it| it.name == before.name) else {
            text += &format!("\n{}\n  only in A\n", preset.name);
            continue;
        };
        text += &format!("\n{}\n", preset.name);
        text += &PresetDiff { a, b, before, after, preset, noise }.text();
    }
    for after in b.presets.iter().filter(|it| a.presets.iter().all(|is| is.name != it.name)) {
        text += &format!("\n{}\n  only in B\n", after.name);
    }
    Diff { text, both: both(a, b) }
}

/// A side's index in each of the results.
struct SidePair {
    a: usize,
    b: usize,
}

/// Sides of the same name; if each result has only one side, those.
fn same_sides(a: &Report, b: &Report) -> Vec<SidePair> {
    if a.sides.len() == 1 && b.sides.len() == 1 {
        return vec![SidePair { a: 0, b: 0 }];
    }
    let other = |label: &str| b.sides.iter().position(|side| side.label == label);
    let sides = a.sides.iter().enumerate();
    sides.filter_map(|(a, side)| Some(SidePair { a, b: other(&side.label)? })).collect()
}

/// A preset that both results have.
struct PresetDiff<'a> {
    a: &'a Report,
    b: &'a Report,
    before: &'a PresetResult,
    after: &'a PresetResult,
    preset: &'a Preset,
    noise: f64,
}

impl PresetDiff<'_> {
    fn text(&self) -> String {
        let differences = self.other_parameters();
        if !differences.is_empty() {
            return format!("  not compared: other parameters: {}\n", differences.join(", "));
        }
        let mut text = String::new();
        let mut rows = Vec::new();
        for sides in same_sides(self.a, self.b) {
            let (before, after) = (&self.a.sides[sides.a], &self.b.sides[sides.b]);
            if before.level != after.level {
                let (label, level) = (&before.label, before.level.name());
                let other = after.level.name();
                text += &format!("  {label}: not compared: {level} / {other}\n");
                continue;
            }
            rows.extend(self.rows(&sides));
        }
        if rows.is_empty() {
            return text;
        }
        text + &text_table(Layout { indent: 2, left_columns: 3 }, rows)
    }

    /// The parameters whose difference makes figures incomparable: not how often something ran, and not lists
    /// of places, of which those are compared that both have.
    fn other_parameters(&self) -> Vec<String> {
        let (before, after) = (&self.before.parameters, &self.after.parameters);
        let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
        let is_list = |value: &str| value.contains(',') || value.contains("..");
        let differs = |name: &String| {
            let [one, two] = [before, after].map(|it| it.get(name).map_or("-", String::as_str));
            let matters = *name != "runs" && !is_list(one) && !is_list(two);
            (matters && one != two).then(|| format!("{name} {one} / {two}"))
        };
        names.filter_map(differs).collect()
    }

    fn rows(&self, sides: &SidePair) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for case in &self.before.cases {
            let Some(after) = self.after.case(&case.series, case.x) else { continue };
            rows.extend(
                self.preset.columns.iter().filter_map(|key| self.row(case, after, sides, key)),
            );
        }
        rows
    }

    /// A metric of a case; `None` where one of the sides does not have it.
    fn row(
        &self,
        before: &CaseResult,
        after: &CaseResult,
        sides: &SidePair,
        key: &str,
    ) -> Option<Vec<String>> {
        let (one, two) = (before.median(sides.a, key)?, after.median(sides.b, key)?);
        let metric = metric(key);
        let runs = (before.values(sides.a, key), after.values(sides.b, key));
        let word = match judge(&runs.0, &runs.1, self.noise) {
            Change::None => "same",
            Change::More if metric.better == Better::Higher => "BETTER",
            Change::Less if metric.better == Better::Lower => "BETTER",
            Change::More | Change::Less => "WORSE",
        };
        Some(vec![
            self.a.sides[sides.a].label.clone(),
            self.preset.place(&before.series, before.x),
            metric.label.clone(),
            figure(key, one),
            "->".to_owned(),
            figure(key, two),
            ratio(one, two),
            word.to_owned(),
        ])
    }
}

/// How many times the first figure the second one is; of nothing it is no multiple.
fn ratio(one: f64, two: f64) -> String {
    if one == 0.0 { "-".to_owned() } else { format!("{:.2}x", two / one) }
}

/// How a figure changed beyond the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    More,
    Less,
}

/// A change is more than the noise, and the runs before and after do not overlap.
fn judge(before: &[f64], after: &[f64], noise: f64) -> Change {
    let (Some(one), Some(two)) = (super::median(before), super::median(after)) else {
        return Change::None;
    };
    let ends = |values: &[f64]| Extent::of(values.iter().copied());
    let (old, new) = (ends(before), ends(after));
    let differs = (two - one).abs() > noise * one.abs();
    match () {
        () if differs && new.low > old.high => Change::More,
        () if differs && new.high < old.low => Change::Less,
        () => Change::None,
    }
}

/// The largest difference between two copies of one broker in the first figure of any case; `None` without
/// two copies.
pub(crate) fn noise(report: &Report) -> Option<f64> {
    let copy = |label: &str| report.sides.iter().position(|side| side.label == format!("{label}'"));
    let (first, second) = report
        .sides
        .iter()
        .enumerate()
        .find_map(|(index, side)| Some((index, copy(&side.label)?)))?;
    let differences = report.presets.iter().flat_map(|result| {
        let key = preset::find(&result.name).map_or("", |preset| &preset.columns[0]);
        result.cases.iter().filter_map(move |case| {
            let (one, two) = (case.median(first, key)?, case.median(second, key)?);
            Some((two - one).abs() / one.abs().max(1e-9))
        })
    });
    differences.reduce(f64::max)
}

/// Both results as one: the sides of B after those of A.
fn both(a: &Report, b: &Report) -> Report {
    let mut both = a.clone();
    let labelled = |report: &Report, name: &str| {
        let mut sides = report.sides.clone();
        sides.iter_mut().for_each(|side| side.label = format!("{name}: {}", side.label));
        sides
    };
    both.sides = labelled(a, "A").into_iter().chain(labelled(b, "B")).collect();
    both.command = vec![a.command.join(" "), "\n".to_owned(), b.command.join(" ")];
    for result in &mut both.presets {
        let other = b.presets.iter().find(|other| other.name == result.name);
        let absent = other.into_iter().flat_map(|other| &other.absent);
        result.absent.extend(
            absent.map(|absent| Absent { side: absent.side + a.sides.len(), ..absent.clone() }),
        );
        for case in &mut result.cases {
            let same = other.and_then(|other| other.case(&case.series, case.x));
            let runs = same.map(|it| it.sides.clone());
            case.sides.extend(runs.unwrap_or_else(|| vec![Vec::new(); b.sides.len()]));
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_multiple() {
        assert_eq!([ratio(0.0, 0.0), ratio(0.0, 3.0)], ["-", "-"]);
        assert_eq!(ratio(4.0, 3.0), "0.75x");
    }

    #[test]
    fn a_change_is_more_than_noise_and_beyond_all_runs() {
        let check = |before: &[f64], after: &[f64], wanted| {
            assert_eq!(judge(before, after, 0.05), wanted, "{before:?} {after:?}");
        };
        check(&[100.0, 102.0, 98.0], &[120.0, 118.0, 121.0], Change::More);
        check(&[100.0, 102.0, 98.0], &[80.0, 81.0, 79.0], Change::Less);
        check(&[100.0, 102.0, 98.0], &[104.0, 103.0, 105.0], Change::None);
        check(&[100.0, 130.0, 98.0], &[120.0, 118.0, 121.0], Change::None);
        check(&[], &[1.0], Change::None);
    }
}
