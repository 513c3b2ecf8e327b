//! Two results beside each other: what changed by more than the noise, and why they may not be
//! compared.

use super::result::{CaseResult, PresetResult, Report};
use super::table::{figure, place};
use crate::preset::{self, Better, metric};
use std::fmt::Write;

/// Differences below this are noise whatever the runs say: shared machines are no better.
const NOISE_MIN: f64 = 0.05;

/// The text of the comparison, and both results as one for a page.
pub(crate) fn diff(a: &Report, b: &Report) -> (String, Report) {
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
    for (result, other) in pairs(a, b) {
        let Some(preset) = preset::find(&result.name) else { continue };
        line(&format!("\n{}", preset.name));
        if result.parameters != other.parameters {
            line("  not compared: other parameters");
            continue;
        }
        for (side, other_side) in same_sides(a, b) {
            let (one, two) = (&a.sides[side], &b.sides[other_side]);
            if one.level != two.level {
                let levels = (one.level.name(), two.level.name());
                line(&format!("  {}: not compared: {} / {}", one.label, levels.0, levels.1));
                continue;
            }
            for case in &result.cases {
                let same = |it: &&CaseResult| it.series == case.series && it.x == case.x;
                let Some(after) = other.cases.iter().find(same) else { continue };
                for key in preset.columns.iter().take(3) {
                    if let Some(change) = change(case, side, after, other_side, key, noise) {
                        line(&format!("  {:<14} {change}", one.label));
                    }
                }
            }
        }
    }
    (text, both(a, b))
}

fn pairs<'a>(
    a: &'a Report,
    b: &'a Report,
) -> impl Iterator<Item = (&'a PresetResult, &'a PresetResult)> {
    a.presets.iter().filter_map(|result| {
        Some((result, b.presets.iter().find(|other| other.name == result.name)?))
    })
}

/// Sides of the same name; if each has only one, those.
fn same_sides(a: &Report, b: &Report) -> Vec<(usize, usize)> {
    if a.sides.len() == 1 && b.sides.len() == 1 {
        return vec![(0, 0)];
    }
    let other = |label: &str| b.sides.iter().position(|side| side.label == label);
    let sides = a.sides.iter().enumerate();
    sides.filter_map(|(index, side)| Some((index, other(&side.label)?))).collect()
}

/// One line about a figure that changed by more than the noise and whose runs do not overlap.
fn change(
    before: &CaseResult,
    side: usize,
    after: &CaseResult,
    other_side: usize,
    key: &str,
    noise: f64,
) -> Option<String> {
    let (one, two) = (before.median(side, key)?, after.median(other_side, key)?);
    let ratio = two / one;
    let metric = metric(key);
    let at = format!("{} {}", before.series, place(before.x));
    let word = match judge(&before.values(side, key), &after.values(other_side, key), noise) {
        Change::None => "same",
        Change::More if metric.better == Better::Higher => "BETTER",
        Change::Less if metric.better == Better::Lower => "BETTER",
        Change::More | Change::Less => "WORSE",
    };
    let (one, two) = (figure(key, one), figure(key, two));
    Some(format!(
        "{:<18} {:<28} {one:>14} -> {two:>14}  {ratio:.2}x {word}",
        at.trim(),
        metric.label
    ))
}

/// What became of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    More,
    Less,
}

fn judge(before: &[f64], after: &[f64], noise: f64) -> Change {
    let ends = |values: &[f64]| {
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| {
            (low.min(*it), high.max(*it))
        })
    };
    let (Some(one), Some(two)) = (super::median(before), super::median(after)) else {
        return Change::None;
    };
    let ((low, high), (other_low, other_high)) = (ends(before), ends(after));
    let differs = (two - one).abs() > noise * one.abs();
    match () {
        () if differs && other_low > high => Change::More,
        () if differs && other_high < low => Change::Less,
        () => Change::None,
    }
}

/// The largest difference between two copies of the same broker, of any first figure; none if there
/// were no two copies.
pub(crate) fn noise(report: &Report) -> Option<f64> {
    let copy = |label: &str| report.sides.iter().position(|side| side.label == format!("{label}'"));
    let (first, second) = report
        .sides
        .iter()
        .enumerate()
        .find_map(|(index, side)| Some((index, copy(&side.label)?)))?;
    let differences = report.presets.iter().flat_map(|result| {
        let key = preset::find(&result.name).map_or("", |preset| preset.columns[0]);
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
        for case in &mut result.cases {
            let same = |it: &&CaseResult| it.series == case.series && it.x == case.x;
            let runs =
                other.and_then(|other| other.cases.iter().find(same)).map(|it| it.sides.clone());
            case.sides.extend(runs.unwrap_or_else(|| vec![Vec::new(); b.sides.len()]));
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

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
