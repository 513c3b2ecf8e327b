//! Results on values: words, medians, tables, pages.

use super::result::{Absent, CaseResult, Measurement, PresetResult, Report, Run, SideInfo};
use super::result_diff::Diff;
use super::{Raw, diff, median, page, preset_table};
use crate::load::Verdict;
use crate::load::isolation::Isolation;
use crate::measure::stalls::Stalls;
use crate::peer::Level;

fn done(rate: f64) -> Run {
    let metrics = [("out_rate".to_owned(), rate)].into();
    let verdict = Some(Verdict { expected: 5, delivered: 5, ..Verdict::default() });
    Run::Done(Box::new(Measurement { metrics, verdict, ..Measurement::default() }))
}

fn report(rates: &[&[f64]]) -> Report {
    let side = |index: usize| SideInfo {
        label: format!("side-{index}"),
        level: Level::Flushed,
        ..SideInfo::default()
    };
    let case = |x: f64| CaseResult {
        x,
        size_bytes: 100,
        sides: rates.iter().map(|runs| runs.iter().map(|rate| done(*rate)).collect()).collect(),
        ..CaseResult::default()
    };
    let result = PresetResult {
        name: "solace-t2".to_owned(),
        cases: vec![case(100.0), case(1_024.0)],
        ..PresetResult::default()
    };
    Report {
        format: super::FORMAT,
        sides: (0..rates.len()).map(side).collect(),
        presets: vec![result],
        raw: [(100, Raw { messages_per_s: 1e6, ..Raw::default() })].into(),
        ..Report::default()
    }
}

#[test]
fn a_run_is_judged_by_its_verdict_and_by_what_it_promised() {
    let word = |verdict: Verdict, persistent: bool| {
        Measurement { verdict: Some(verdict), persistent, ..Measurement::default() }.word()
    };
    let clean = Verdict { expected: 9, delivered: 9, ..Verdict::default() };
    let lost = Verdict { lost: 1, ..clean.clone() };
    let twice = Verdict { duplicated: 1, ..clean.clone() };
    assert_eq!(word(clean, true), "ok");
    assert_eq!((word(lost.clone(), true), word(lost, false)), ("FAIL", "LOSS"));
    assert_eq!((word(twice.clone(), true), word(twice, false)), ("FAIL", "FAIL"));
    let faults = vec!["it confirms before it flushes".to_owned()];
    assert_eq!(Measurement { faults, ..Measurement::default() }.word(), "FAIL");
}

#[test]
fn medians_are_in_the_middle() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
}

#[test]
fn a_table_has_today_history_and_the_limit() {
    let text = preset_table(&report(&[&[5e5, 6e5, 4e5], &[1e5]]), &report(&[&[1.0]]).presets[0]);
    assert!(text.contains("side-0") && text.contains("side-1") && text.contains("appliance"));
    let report = report(&[&[5e5, 6e5, 4e5], &[1e5]]);
    let text = preset_table(&report, &report.presets[0]);
    assert!(text.contains("500,000 [400,000..600,000]"), "{text}");
    assert!(text.contains("1,540,000") && text.contains("9,290,000"), "{text}");
    assert!(text.contains("1,000,000  ") && text.contains("0.50"), "{text}");
}

#[test]
fn what_broke_and_what_cannot_be_is_said() {
    let mut report = report(&[&[5e5], &[1e5]]);
    report.presets[0].cases[0].sides[1] = vec![Run::Failed("it died".to_owned())];
    report.presets[0].cases[1].sides[1] = vec![Run::Refused("it has no such thing".to_owned())];
    let text = preset_table(&report, &report.presets[0]);
    assert!(text.contains("FAILED: it died") && text.contains("it has no such thing"), "{text}");
    assert!(!report.is_clean());
    assert_eq!(report.lacks().as_deref(), Some("1 of 2 runs of side-1 failed"));
    report.presets[0].cases[0].sides[1] = vec![Run::Failed(format!("{}: reset", super::DIED))];
    assert_eq!(report.lacks().as_deref(), Some("side-1 died"));
}

#[test]
fn unlike_durability_is_marked() {
    let mut report = report(&[&[5e5], &[1e5]]);
    for case in &mut report.presets[0].cases {
        for run in case.sides.iter_mut().flatten() {
            let Run::Done(measurement) = run else { continue };
            measurement.persistent = true;
        }
    }
    let alike = preset_table(&report, &report.presets[0]);
    assert!(alike.contains("a confirm means: side-0 flushed") && !alike.contains("NOT COMPARABLE"));
    report.sides[1].level = Level::Memory;
    let unlike = preset_table(&report, &report.presets[0]);
    assert!(unlike.contains("NOT COMPARABLE") && unlike.contains("side-1 in memory"), "{unlike}");
}

#[test]
fn a_broker_that_is_down_is_one_line() {
    let mut report = report(&[&[5e5], &[1e5]]);
    for case in &mut report.presets[0].cases {
        case.sides[1].clear();
    }
    let why = "127.0.0.1:1: Connection refused".to_owned();
    report.presets[0].absent = vec![Absent { side: 1, why }];
    let line = "not measured: side-1: 127.0.0.1:1: Connection refused";
    assert_eq!(report.down(), [line]);
    assert!(!report.is_clean());
    assert_eq!(report.lacks().as_deref(), Some("side-1 was not measured"));
    let text = preset_table(&report, &report.presets[0]);
    assert!(!text.contains("side-1") && text.contains("side-0"), "{text}");
    assert_eq!(page(&report).matches(line).count(), 1);
    // Another preset could measure it: then it is not down, and this one says so.
    report.presets.push(PresetResult { absent: Vec::new(), ..report.presets[0].clone() });
    assert_eq!(report.down(), Vec::<String>::new());
    assert!(preset_table(&report, &report.presets[0]).contains(line));
    // None is there.
    let why = "no".to_owned();
    report.presets.truncate(1);
    report.presets[0].absent.push(Absent { side: 0, why });
    assert_eq!(preset_table(&report, &report.presets[0]), "");
}

#[test]
fn an_overview_says_what_cannot_be_compared_and_shows_the_figure_that_is_chosen() {
    let mut report = report(&[&[5e5], &[1e5]]);
    report.sides[1].level = Level::Memory;
    for run in report.presets[0].cases.iter_mut().flat_map(|case| case.sides.iter_mut()).flatten() {
        let Run::Done(measurement) = run else { continue };
        measurement.persistent = true;
    }
    let text = super::summary(&report);
    assert!(text.contains("1,024 octets") && text.contains("NOT COMPARABLE"), "{text}");
    report.presets.push(report.presets[0].clone());
    let page = page(&report);
    assert_eq!(page.matches("<td class=\"bad\">NOT COMPARABLE</td>").count(), 2);
    // On a phone the columns have no heads: each figure says whose it is.
    assert_eq!(page.matches("data-side=\"side-1\"").count(), 2);
}

#[test]
fn what_printed_figures_are_of_is_said() {
    let mut report = report(&[&[5e5, 6e5, 4e5], &[2e6]]);
    report.presets[0].parameters = [("groups", "5"), ("runs", "1"), ("sizes", "100")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let text = preset_table(&report, &report.presets[0]);
    assert!(text.contains("printed figures are of the text's groups=20, here 5\n"), "{text}");
    // 2,000,000 are more than the 1,000,000 of the relay.
    assert!(text.contains("the bare relay is no limit: side-1 went beyond it"), "{text}");
    report.presets[0].name = "solace-t3".to_owned();
    for case in &mut report.presets[0].cases {
        case.series = "1 KB".to_owned();
        case.x = if case.x == 100.0 { 1.0 } else { 2.0 };
    }
    let text = preset_table(&report, &report.presets[0]);
    assert!(text.contains("1,040,000*") && text.contains("VMR at 1 KB, 2 subscribers"), "{text}");
    assert!(text.contains(" 784,000 "), "{text}");
}

#[test]
fn places_have_the_names_of_the_text() {
    let place = |name: &str, series: &str, x: f64| {
        crate::preset::find(name).expect("there is one").place(series, x)
    };
    assert_eq!(place("joram", "queue", 2.0), "queue, transacted producer");
    assert_eq!(place("solace-t3", "1 KB", 50.0), "1 KB, 50 subscribers");
    assert_eq!(place("pang-2", "", 1.0), "1 pair");
    assert_eq!(place("solace-t4", "", 1_024.0), "1,024 octets");
    assert_eq!(place("latency", "", 1.0), "1 messages/s");
    assert_eq!(place("stock-exchange", "coalescing", 0.0), "coalescing, unlimited");
}

#[test]
fn how_times_came_about_is_said() {
    let said = |change: fn(&mut Measurement)| {
        let mut report = report(&[&[5e5]]);
        report.workers = vec!["w:1".to_owned()];
        let runs = report.presets[0].cases.iter_mut().flat_map(|case| case.sides.iter_mut());
        for run in runs.flatten() {
            let Run::Done(measurement) = run else { continue };
            measurement.metrics.insert("p50_us".to_owned(), 9.0);
            change(measurement);
        }
        preset_table(&report, &report.presets[0])
    };
    assert!(!said(|_| ()).contains("times are"));
    assert!(said(|it| it.closed_loop = true).contains("closed loop: "));
    assert!(
        said(|it| it.saturated = true).contains("waited for no answer: times are those of the")
    );
    assert!(said(|it| it.clock_error_us = Some(7.25)).contains("by workers at w:1: times"));
    assert!(said(|it| it.notes.push("a ladder".to_owned())).contains("a ladder"));
}

#[test]
fn a_page_holds_everything_and_asks_for_nothing() {
    let mut report = report(&[&[5e5, 6e5], &[1e5, 2e5]]);
    report.sides[0].label = "<script>alert(1)</script>".to_owned();
    let page = page(&report);
    assert!(page.contains("figure class=\"chart\"") && page.contains("solace-t2"));
    assert!(page.contains("uPlot=function") && page.contains("The MIT License"));
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;"));
    assert!(page.contains("default-src 'none'"));
    for asks in ["src=\"", "href=\"http", "@import", "url(", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(asks), "{asks}");
    }
}

#[test]
fn the_legend_of_a_preset_names_each_series_once() {
    let page = page(&report(&[&[5e5], &[1e5]]));
    for name in ["side-0", "side-1", "bare relay"] {
        assert_eq!(page.matches(&format!("aria-pressed=\"true\">{name}<")).count(), 1, "{name}");
    }
}

#[test]
fn a_result_comes_back_as_it_was() {
    let report = report(&[&[5e5, 6e5], &[1e5]]);
    let json = serde_json::to_string(&report).expect("plain data");
    assert_eq!(serde_json::from_str::<Report>(&json).expect("our own"), report);
}

#[test]
fn two_results_are_compared_where_they_can_be() {
    let (a, b) = (report(&[&[100.0, 101.0]]), report(&[&[150.0, 151.0]]));
    let Diff { text, both } = diff(&a, &b);
    assert_eq!(text.matches("BETTER").count(), 2, "{text}");
    assert_eq!(both.sides.len(), 2);
    assert_eq!(both.presets[0].cases[0].sides.len(), 2);
    let mut other = b.clone();
    other.machine.kernel = "another".to_owned();
    other.presets[0].parameters.insert("groups".to_owned(), "3".to_owned());
    let text = diff(&a, &other).text;
    assert!(text.contains("other machines") && text.contains("other parameters"), "{text}");
    // Lists of places and the number of runs may differ: what both have is compared.
    let mut more = b.clone();
    more.presets[0].parameters.insert("sizes".to_owned(), "100,1024,2048".to_owned());
    more.presets[0].parameters.insert("runs".to_owned(), "9".to_owned());
    assert_eq!(diff(&a, &more).text.matches("BETTER").count(), 2);
    more.presets[0].name = "solace-t4".to_owned();
    let text = diff(&a, &more).text;
    assert!(text.contains("only in A") && text.contains("solace-t4\n  only in B"), "{text}");
    let mut weaker = b;
    weaker.sides[0].level = Level::Memory;
    assert!(diff(&a, &weaker).text.contains("not compared: flushed / in memory"));
}

#[test]
fn copies_of_one_broker_give_the_noise() {
    let mut report = report(&[&[100.0], &[90.0]]);
    report.sides[1].label = "side-0'".to_owned();
    assert_eq!(super::noise(&report), Some(0.1));
    report.sides[1].label = "another".to_owned();
    assert_eq!(super::noise(&report), None);
}

#[test]
fn a_run_is_a_part_of_the_fastest_of_its_side() {
    let mut report = report(&[&[5e5, 6e5, 4e5], &[1e5]]);
    let slower = report.presets[0].cases[0].clone();
    report.presets[0].cases[1] = slower;
    for run in report.presets[0].cases[1].sides.iter_mut().flatten() {
        let Run::Done(measurement) = run else { continue };
        measurement.metrics.values_mut().for_each(|value| *value /= 4.0);
    }
    report.presets[0].set_shares();
    let shares = |case: usize, side| report.presets[0].cases[case].values(side, "of_fastest");
    assert_eq!((shares(0, 0), shares(1, 0)), (vec![100.0, 120.0, 80.0], vec![25.0, 30.0, 20.0]));
    assert_eq!((shares(0, 1), shares(1, 1)), (vec![100.0], vec![25.0]));
}

#[test]
fn isolation_is_told_beside_alone_and_beside_a_sink() {
    let mut found = Isolation {
        rate_part: 0.99,
        p99_times: Some(3.0),
        p99_times_control: Some(1.05),
        flooded_bytes_per_s: 80e6,
        control_flooded_bytes_per_s: 79e6,
        ..Isolation::default()
    };
    let text = super::isolation(&found);
    for wanted in [
        "beside a null broker: ",
        "3.00 times that alone (? us before, ? after)\n",
        "1.05 times that beside a null broker",
        "80.0 MB/s, 79.0 MB/s on the null broker",
    ] {
        assert!(text.contains(wanted), "{text}");
    }
    assert!(!text.contains("stood still") && !text.contains("% of all processors"), "{text}");
    // Where the tool fell behind in one of the runs, there is no ratio.
    found.repeated = 2;
    found.beside.loads.machine = 0.953;
    found.beside.loads.stolen = 0.0132;
    found.beside.stalls = Some(Stalls { total_us: 81_000.0, longest_us: 62_100.0 });
    (found.p99_times, found.p99_times_control) = (None, None);
    let text = super::isolation(&found);
    for wanted in [
        "no percentiles to go by",
        "95% of all processors busy, 1.3% taken by its host, stood still for 81.0 ms, 62.1 ms at once\n",
        "2 runs in which the machine stood still\n",
    ] {
        assert!(text.contains(wanted) && !text.contains("times that"), "{text}");
    }
}
