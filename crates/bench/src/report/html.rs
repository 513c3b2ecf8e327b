//! A report as one page that needs no network: its plots are SVG, its style is within.

use super::charts::{self, Bar, COLORS, Line, Lines, escape};
use super::result::{CaseResult, PresetResult, Report, Run};
use super::table::{self, Grid, grid};
use crate::load::Second;
use crate::preset::{self, Plot, Points, Preset, metric};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub(crate) fn page(report: &Report) -> String {
    let mut page = String::new();
    put(&mut page, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    put(&mut page, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    put(
        &mut page,
        &format!("<title>Broker measurements</title><style>{STYLE}</style></head><body>"),
    );
    head(&mut page, report);
    overview(&mut page, report);
    for result in &report.presets {
        if let Some(preset) = preset::find(&result.name) {
            section(&mut page, report, result, preset);
        }
    }
    how(&mut page, report);
    put(&mut page, "</main></body></html>");
    page
}

fn put(page: &mut String, text: &str) {
    page.write_str(text).expect("a String takes everything");
}

fn head(page: &mut String, report: &Report) {
    put(page, "<header><h1>Broker measurements</h1><p class=\"sides\">");
    for (index, side) in report.sides.iter().enumerate() {
        let (color, label) = (index % COLORS, escape(&side.label));
        put(
            page,
            &format!("<span class=\"key c{color}\">{label} {}</span> ", escape(&side.version)),
        );
    }
    put(page, "</p>");
    let when = date(report.started_unix_s);
    let machine = escape(&report.machine.describe());
    put(page, &format!("<p>{when} · {:.0} s · {machine}</p>", report.took_s));
    let state = match (&report.partial, report.is_clean()) {
        (Some(why), _) => format!("<p class=\"state bad\">PARTIAL: {}</p>", escape(why)),
        (None, true) => {
            "<p class=\"state good\">Every verdict is clean, or says where loss was allowed.</p>"
                .into()
        }
        (None, false) => {
            "<p class=\"state bad\">Some runs FAILED; they are marked below.</p>".into()
        }
    };
    put(page, &state);
    if let Some(noise) = super::noise(report) {
        let percent = noise * 100.0;
        put(
            page,
            &format!(
                "<p>Two copies of one broker differ by up to {percent:.0}%: that is noise.</p>"
            ),
        );
    }
    put(page, "</header><main>");
}

/// A day and a time (UTC) from seconds since 1970, by the civil calendar.
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

/// One row for each preset: its first metric at its last place, and the verdict of each side.
fn overview(page: &mut String, report: &Report) {
    if report.presets.len() < 2 {
        return;
    }
    put(
        page,
        "<section><h2>Overview</h2><p>The first figure of each measurement at its last place; \
               click a name for the rest.</p><table class=\"overview\"><thead><tr><th>measurement</th>\
               <th>place</th><th>figure</th>",
    );
    for side in &report.sides {
        put(page, &format!("<th class=\"n\">{}</th>", escape(&side.label)));
    }
    put(page, "</tr></thead><tbody>");
    for result in &report.presets {
        let (Some(preset), Some(case)) = (preset::find(&result.name), result.cases.last()) else {
            continue;
        };
        let metric = metric(preset.columns[0]);
        let place = format!("{} {} {}", case.series, table::place(case.x), preset.axis);
        put(
            page,
            &format!(
                "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{2}, {3}</td>",
                preset.name,
                escape(place.trim()),
                escape(metric.label),
                escape(metric.unit)
            ),
        );
        for side in 0..report.sides.len() {
            let (class, word) = judged(result, side);
            let cell = escape(&table::cell(case, side, metric.key));
            put(page, &format!("<td class=\"n {class}\">{cell}{word}</td>"));
        }
        put(page, "</tr>");
    }
    put(page, "</tbody></table></section>");
}

/// The worst word over all runs of a side.
fn judged(result: &PresetResult, side: usize) -> (&'static str, &'static str) {
    let mut worst = ("", "");
    for run in result.cases.iter().filter_map(|case| case.sides.get(side)).flatten() {
        match run {
            Run::Failed(_) => return ("bad", " <b>FAILED</b>"),
            Run::Done(measurement) if measurement.word() == "FAIL" => {
                return ("bad", " <b>FAIL</b>");
            }
            Run::Done(measurement) if measurement.word() == "LOSS" => {
                worst = ("warn", " <b>LOSS</b>")
            }
            Run::Done(_) | Run::Refused(_) => {}
        }
    }
    worst
}

fn section(page: &mut String, report: &Report, result: &PresetResult, preset: &Preset) {
    put(
        page,
        &format!(
            "<section id=\"{0}\"><h2>{0}</h2><p class=\"about\">{1}<br>\
         <span class=\"soft\">after {2}</span></p>",
            preset.name,
            escape(preset.about),
            escape(preset.text)
        ),
    );
    let parameters: Vec<String> =
        result.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let quick = if result.quick { "<b>quick</b> " } else { "" };
    put(page, &format!("<p class=\"soft\">{quick}{}</p>", escape(&parameters.join("  "))));
    put(page, "<div class=\"plots\">");
    for plot in preset.plots {
        draw(page, report, result, preset, plot);
    }
    // Without an axis worth a line, bars.
    let places: Vec<f64> = result.cases.iter().map(|case| case.x).collect();
    if preset.plots.is_empty() || places.len() == 1 {
        for key in preset.columns.iter().take(4) {
            for case in &result.cases {
                page.push_str(&bars(report, result, preset, case, key));
            }
        }
    } else {
        for plot in preset.plots {
            let Plot::Against(key) = plot else { continue };
            for case in result.cases.iter().filter(|case| is_free(preset, case)) {
                page.push_str(&bars(report, result, preset, case, key));
            }
        }
    }
    put(page, "</div>");
    let remarks = table::remarks(report, result);
    if !remarks.is_empty() {
        put(page, "<ul class=\"remarks\">");
        for remark in &remarks {
            let bad = ["FAIL", "LOSS", "NOT COMPARABLE"].iter().any(|word| remark.contains(word));
            let class = if bad { " class=\"bad\"" } else { "" };
            put(page, &format!("<li{class}>{}</li>", escape(remark)));
        }
        put(page, "</ul>");
    }
    tables(page, report, result, preset);
    put(page, "</section>");
}

fn tables(page: &mut String, report: &Report, result: &PresetResult, preset: &Preset) {
    put(page, "<details><summary>Figures</summary>");
    for key in preset.columns {
        let Some(grid) = grid(report, result, preset, key) else { continue };
        let metric = metric(key);
        let unit =
            if metric.unit.is_empty() { String::new() } else { format!(", {}", metric.unit) };
        put(page, &format!("<h3>{}{}</h3>", escape(metric.label), escape(&unit)));
        rows(page, &grid);
    }
    for note in preset.notes {
        put(page, &format!("<p class=\"soft\">{}</p>", escape(note)));
    }
    put(page, "</details>");
}

fn rows(page: &mut String, grid: &Grid) {
    let row = |cells: &[String], tag: &str| {
        let cell = |cell: &String| format!("<{tag} class=\"n\">{}</{tag}>", escape(cell));
        format!("<tr>{}</tr>", cells.iter().map(cell).collect::<String>())
    };
    put(page, &format!("<table><thead>{}</thead><tbody>", row(&grid.head, "th")));
    grid.rows.iter().for_each(|cells| page.push_str(&row(cells, "td")));
    put(page, "</tbody></table>");
}

/// The series of a result, in order.
fn series(result: &PresetResult) -> Vec<&str> {
    let mut series: Vec<&str> = Vec::new();
    for case in &result.cases {
        if !series.contains(&case.series.as_str()) {
            series.push(&case.series);
        }
    }
    series
}

fn draw(page: &mut String, report: &Report, result: &PresetResult, preset: &Preset, plot: &Plot) {
    match plot {
        Plot::Against(key) => {
            for series in series(result) {
                page.push_str(&against(report, result, preset, key, series));
            }
        }
        Plot::Travels => {
            for case in &result.cases {
                page.push_str(&travels(report, case));
            }
        }
        Plot::Seconds => {
            for case in &result.cases {
                page.push_str(&seconds(report, case));
            }
        }
    }
}

/// Whether this is the case without a pace, which is no place between the others.
fn is_free(preset: &Preset, case: &CaseResult) -> bool {
    preset.zero_is_free && case.x == 0.0
}

/// A metric against the axis: a line for each side, dashed ones for the text's systems.
fn against(
    report: &Report,
    result: &PresetResult,
    preset: &Preset,
    key: &str,
    series: &str,
) -> String {
    let on_axis = |case: &&CaseResult| case.series == series && !is_free(preset, case);
    let cases = || result.cases.iter().filter(on_axis);
    if cases().count() < 2 {
        return String::new();
    }
    let mut lines: Vec<Line> = Vec::new();
    for (side, info) in report.sides.iter().enumerate() {
        let point = |case: &CaseResult| Some((case.x, case.median(side, key)?));
        let points = cases().filter_map(point).collect();
        lines.push(Line { name: info.label.clone(), color: side, dashed: false, points });
    }
    let history = preset.history.iter().filter(|it| it.metric == key);
    let history = history.filter(|it| it.series.is_empty() || it.series == series);
    for (history, color) in history.zip(report.sides.len()..) {
        let points: Vec<(f64, f64)> = match history.points {
            Points::All(value) => cases().map(|case| (case.x, value)).collect(),
            Points::At(points) => points.to_vec(),
        };
        lines.push(Line { name: history.system.to_owned(), color, dashed: true, points });
    }
    let limit = |case: &CaseResult| Some((case.x, table::limit(report, preset, case, key)?));
    let points: Vec<(f64, f64)> = cases().filter_map(limit).collect();
    if !points.is_empty() {
        let name = table::limit_name(preset.baseline).to_owned();
        lines.push(Line { name, color: COLORS - 1, dashed: true, points });
    }
    let metric = metric(key);
    let title = if series.is_empty() {
        metric.label.to_owned()
    } else {
        format!("{}, {series}", metric.label)
    };
    // What stands in brackets is of places that are not drawn here.
    let x_label = preset.axis.split(" (0:").next().unwrap_or(preset.axis).to_owned();
    let y_label = metric.unit.to_owned();
    Lines { title, x_label, y_label, x_log: preset.axis_log, lines }.svg()
}

fn travels(report: &Report, case: &CaseResult) -> String {
    let mut group = 0;
    let mut lines = Vec::new();
    for (side, info) in report.sides.iter().enumerate() {
        let Some(measurement) = case.done(side).next() else { continue };
        group = measurement.travel_group;
        let point = |(index, us): (usize, &f32)| (index as f64, f64::from(*us) / 1e3);
        let points = measurement.travels_us.iter().enumerate().map(point).collect();
        lines.push(Line { name: info.label.clone(), color: side, dashed: false, points });
    }
    let title = format!("{} {}", case.series, table::place(case.x));
    let x_label = format!("groups of {group} deliveries");
    Lines { title, x_label, y_label: "travel time, ms".to_owned(), x_log: false, lines }.svg()
}

/// A figure of one second.
type OfSecond = fn(&Second) -> f64;

fn seconds(report: &Report, case: &CaseResult) -> String {
    let kinds: [(&str, &str, OfSecond); 3] = [
        ("deliveries", "msg/s", |second| second.delivered),
        ("broker CPU", "cores", |second| second.broker_cpu_share),
        ("broker memory", "MiB", |second| second.broker_rss_kib as f64 / 1024.0),
    ];
    let mut text = String::new();
    for (what, unit, value) in kinds {
        let mut lines = Vec::new();
        for (side, info) in report.sides.iter().enumerate() {
            let Some(measurement) = case.done(side).next() else { continue };
            let points = measurement.seconds.iter().map(|it| (it.at_s, value(it))).collect();
            lines.push(Line { name: info.label.clone(), color: side, dashed: false, points });
        }
        let title = format!("{what}, {} {}", case.series, table::place(case.x));
        let (x_label, y_label) = ("seconds".to_owned(), unit.to_owned());
        text += &Lines { title, x_label, y_label, x_log: false, lines }.svg();
    }
    text
}

fn bars(
    report: &Report,
    result: &PresetResult,
    preset: &Preset,
    case: &CaseResult,
    key: &str,
) -> String {
    let mut bars = Vec::new();
    for (side, info) in report.sides.iter().enumerate() {
        if let Some(value) = case.median(side, key) {
            bars.push(Bar { name: info.label.clone(), color: side, dashed: false, value });
        }
    }
    if bars.is_empty() {
        return String::new();
    }
    for history in preset.history.iter().filter(|it| it.metric == key) {
        if let Some(value) = history.at(&case.series, case.x) {
            let (name, color) = (history.system.to_owned(), report.sides.len());
            bars.push(Bar { name, color, dashed: true, value });
        }
    }
    let metric = metric(key);
    let place = match result.cases.len() {
        1 => String::new(),
        _ if is_free(preset, case) => format!(", {}, unlimited", case.series),
        _ => format!(" {} {}", case.series, table::place(case.x)),
    };
    charts::bars(&format!("{}{place}", metric.label), metric.unit, &bars)
}

fn how(page: &mut String, report: &Report) {
    put(page, "<section><h2>How it was measured</h2>");
    put(page, &format!("<pre>{}</pre>", escape(&report.command.join(" "))));
    for side in &report.sides {
        put(
            page,
            &format!(
                "<details><summary>{} {}: {}, a confirm says: {}</summary><pre>{}</pre></details>",
                escape(&side.label),
                escape(&side.version),
                escape(&side.target),
                side.level.name(),
                escape(&side.configuration)
            ),
        );
    }
    if let Some(disk) = &report.disk {
        put(
            page,
            &format!(
                "<p class=\"soft\">bare disk: {:.0} MB/s in writes of {} KiB, each with fdatasync</p>",
                disk.bytes_per_s / 1e6,
                disk.flush_bytes / 1024
            ),
        );
    }
    put(
        page,
        &format!(
            "<p class=\"soft\">load average before: {}. Figures are medians, with least and most \
         where a case ran several times; dashed lines and pale bars are what the texts printed, \
         or a physical limit. Where \
         a rate was asked for, latencies count from when each message was due.</p></section>",
            escape(&report.machine.load_before)
        ),
    );
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
