//! A report as one HTML page that needs no network: style, script, library and data are within it.

use super::charts::COLORS;
use super::plots::plots;
use super::result::{PresetResult, Report, Run};
use super::table::{self, Grid, grid};
use crate::preset::{self, Preset, metric};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const UPLOT_STYLE: &str = include_str!("assets/uPlot.min.css");
const UPLOT_SCRIPT: &str = include_str!("assets/uPlot.iife.min.js");
/// The licence has to be in every copy of the library.
const UPLOT_LICENSE: &str = include_str!("assets/uPlot.LICENSE");
/// With this policy, browsers refuse every fetch.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The whole page.
pub(crate) fn page(report: &Report) -> String {
    let known = report.presets.iter().filter_map(|it| Some((it, preset::find(&it.name)?)));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { "Broker measurements" }
                style { (PreEscaped(UPLOT_STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                (head(report))
                main {
                    (overview(report))
                    @for (result, preset) in known { (section(report, result, preset)) }
                    (how(report))
                }
                script { "/*\n" (PreEscaped(UPLOT_LICENSE)) "*/\n" (PreEscaped(UPLOT_SCRIPT)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn head(report: &Report) -> Markup {
    html! {
        header {
            h1 { "Broker measurements" }
            p {
                @for (index, side) in report.sides.iter().enumerate() {
                    span.key.{ "c" (index % COLORS) } { (side.label) " " (side.version) } " "
                }
            }
            p { (date(report.started_unix_s)) " · " (format!("{:.0}", report.took_s)) " s · "
                (report.machine.describe()) }
            @for line in report.down() { p.state.bad { (line) } }
            @if let Some(why) = &report.partial {
                p.state.bad { "PARTIAL: " (why) }
            } @else if report.is_clean() {
                p.state.good { "Every verdict is clean, or says where loss was allowed." }
            } @else {
                p.state.bad { "Some runs FAILED; they are marked below." }
            }
            @if let Some(noise) = super::noise(report) {
                p { "Two copies of one broker differ by up to " (format!("{:.0}", noise * 100.0))
                    "%: that is noise." }
            }
            p.soft.needs-js { "Drag across a chart to zoom, double-click to see the whole of it again. A "
                "click on a name in a legend hides that series." }
            noscript { p.soft { "Charts need JavaScript; all figures are in the tables, too." } }
        }
    }
}

/// A day and a time (UTC) from seconds since 1970, by the civil calendar. Own: the one date that the tool
/// writes needs no calendar library.
fn date(unix_s: u64) -> String {
    let (days, seconds) = (unix_s / 86_400, unix_s % 86_400);
    // Days since 1 March of the year 0, in eras of 400 years.
    let shifted = days as i64 + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3_600, seconds / 60 % 60)
}

/// One row for each preset: the figure that stands for it, and the verdict of each side.
fn overview(report: &Report) -> Markup {
    if report.presets.len() < 2 {
        return Markup::default();
    }
    let up = report.up();
    let row = |result: &PresetResult| {
        let preset = preset::find(&result.name)?;
        let figures = table::overview_row(report, result, preset)?;
        Some(html! {
            tr {
                td { a href={ "#" (preset.name) } { (preset.name) } }
                td { (figures.place) }
                td { (figures.metric) }
                @for (side, cell) in up.iter().copied().zip(&figures.cells) {
                    @let word = worst_word(result, side);
                    @let label = &report.sides[side].label;
                    td.n.bad[word.starts_with("FAIL")].warn[word == "LOSS"] data-side=(label) {
                        (cell)
                        @if !word.is_empty() { " " b { (word) } }
                    }
                }
                td.bad { @if table::is_unlike(report, result) { (table::NOT_COMPARABLE) } }
            }
        })
    };
    html! {
        section {
            h2 { "Overview" }
            p { "One figure of each measurement; click a name for the rest." }
            table.overview {
                thead {
                    tr {
                        th { "measurement" } th { "place" } th { "figure" }
                        @for side in &up { th.n { (report.sides[*side].label) } }
                        th {}
                    }
                }
                tbody { @for row in report.presets.iter().filter_map(row) { (row) } }
            }
        }
    }
}

/// The worst word over all runs of a side: `FAILED`, `FAIL`, `LOSS`, or none.
fn worst_word(result: &PresetResult, side: usize) -> &'static str {
    let mut worst = "";
    for run in result.cases.iter().flat_map(|case| case.runs(side)) {
        match run {
            Run::Failed(_) => return "FAILED",
            Run::Done(measurement) => match measurement.word() {
                "FAIL" => return "FAIL",
                "LOSS" => worst = "LOSS",
                _ => {}
            },
            Run::Refused(_) => {}
        }
    }
    worst
}

fn section(report: &Report, result: &PresetResult, preset: &Preset) -> Markup {
    let is_bad = |remark: &str| {
        ["FAIL", "LOSS", table::NOT_COMPARABLE, "not measured"]
            .iter()
            .any(|word| remark.contains(word))
    };
    if result.present(report.sides.len()).next().is_none() {
        // That no broker is there is said once, at the top.
        return Markup::default();
    }
    html! {
        section id=(preset.name) {
            h2 { (preset.name) }
            p { (preset.about) br; span.soft { "after " (preset.text) } }
            p.soft { @if result.quick { b { "quick" } " " } (result.parameters("  ")) }
            (plots(report, result, preset))
            ul.remarks {
                @for remark in table::remarks(report, result) {
                    li.bad[is_bad(&remark)] { (remark) }
                }
            }
            (tables(report, result, preset))
        }
    }
}

/// All figures of a preset. `page.js` closes them: without a script they stand open.
fn tables(report: &Report, result: &PresetResult, preset: &Preset) -> Markup {
    let grids = preset.columns.iter();
    let grids = grids.filter_map(|key| Some((metric(key), grid(report, result, preset, key)?)));
    html! {
        details.figures open {
            summary { "Figures" }
            @for (metric, grid) in grids {
                h3 { (metric.title()) }
                (rows(&grid))
            }
            @for note in &preset.notes { p.soft { (note) } }
        }
    }
}

fn rows(grid: &Grid) -> Markup {
    html! {
        table {
            thead { tr { @for cell in &grid.head { th.n { (cell) } } } }
            tbody {
                @for row in &grid.rows { tr { @for cell in row { td.n { (cell) } } } }
            }
        }
    }
}

fn how(report: &Report) -> Markup {
    html! {
        section {
            h2 { "How it was measured" }
            pre { (report.command.join(" ")) }
            @for side in &report.sides {
                details {
                    summary { (side.label) " " (side.version) ": " (side.target) ", a confirm means: "
                        (side.level.name()) }
                    @if !side.means.is_empty() {
                        p { "A confirm of a persistent message means: " (side.means) "." }
                    }
                    pre { (side.configuration) }
                }
            }
            @if let Some(disk) = &report.disk {
                p.soft { "bare disk: " (format!("{:.0}", disk.bytes_per_s / 1e6)) " MB/s in writes of "
                    (disk.flush_bytes / 1024) " KiB, each with fdatasync" }
            }
            p.soft { "Load average before: " (report.machine.load_before) ". Figures are medians, with "
                "least and most where a case ran several times. Dashed lines and pale bars are printed "
                "figures of the texts, or what the bare machine did for a moment before (a relay, a round "
                "trip, the disk): where a broker goes beyond that, it is no limit. Figures of one kind have "
                "one scale within a measurement. Where a rate was asked for, latencies count from when each "
                "message was due." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (unix_s, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (1_795_320_000, "2026-11-22 04:00 UTC"),
        ] {
            assert_eq!(date(unix_s), text);
        }
    }
}
