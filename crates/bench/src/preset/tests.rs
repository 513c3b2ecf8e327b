//! Presets match their texts, and their plans are valid.

use super::{Broker, Parameters, Setting, Work, all, find, metric};
use crate::client::Target;
use crate::load::End;
use std::collections::BTreeSet;

fn targets() -> Vec<Target> {
    let texts = ["amqp://h", "nats://h", "mqtt://h", "mqtt5://h", "stomp://h"];
    texts.map(|text| text.parse().expect("it is one")).into()
}

#[test]
fn names_are_unique_and_metrics_exist() {
    let mut names = BTreeSet::new();
    for preset in all() {
        assert!(names.insert(&preset.name), "{} is there twice", preset.name);
        assert!(!preset.about.is_empty() && !preset.columns.is_empty(), "{}", preset.name);
        let drawn = preset.history.iter().map(|history| &history.metric);
        let overview = preset.overview.iter().map(|overview| &overview.metric);
        assert!(overview.clone().all(|key| preset.columns.contains(key)), "{}", preset.name);
        for key in preset.columns.iter().chain(drawn) {
            assert_eq!(metric(key).key, *key, "{}", preset.name);
        }
        assert!(preset.defaults(false).has("runs"), "{}", preset.name);
    }
}

#[test]
fn every_preset_has_cases_for_every_protocol_and_says_why_not() {
    let targets = targets();
    for preset in all() {
        for target in &targets {
            for quick in [false, true] {
                let broker = Broker { target, targets: &targets };
                let cases = preset.cases(&preset.defaults(quick), &broker);
                assert!(!cases.is_empty(), "{} on {target}", preset.name);
                let places: BTreeSet<String> =
                    cases.iter().map(|case| format!("{} {}", case.series, case.x)).collect();
                assert_eq!(places.len(), cases.len(), "{} on {target}", preset.name);
                for case in cases {
                    let Work::Load(plan) = &case.work else { continue };
                    if let Err(why) = plan.check() {
                        let who = target.protocol().name();
                        assert!(why.starts_with(&format!("{who} has ")), "{}: {why}", preset.name);
                    }
                }
            }
        }
    }
}

/// The plans of a preset on the first target.
fn plans(name: &str) -> Vec<crate::load::Plan> {
    let targets = targets();
    let preset = find(name).expect("there is one");
    let broker = Broker { target: &targets[0], targets: &targets };
    let plan = |case: super::Case| match case.work {
        Work::Load(plan) | Work::Spool(plan) => plan,
        other => panic!("{other:?}"),
    };
    preset.cases(&preset.defaults(false), &broker).into_iter().map(plan).collect()
}

#[test]
fn the_parameters_are_those_of_the_texts() {
    let subscribers = plans("pang-1a");
    assert_eq!(subscribers.len(), 9);
    assert!(subscribers.iter().all(|plan| {
        plan.size_bytes == 10_240 && plan.end == End::Count(2_000) && plan.producers == 1
    }));
    assert_eq!(plans("pang-1b")[8].end, End::Count(18_000));
    assert_eq!(plans("pang-2").len(), 5);
    let joram = plans("joram");
    assert_eq!(joram.len(), 12);
    assert!(joram.iter().all(|plan| plan.size_bytes == 1_024 && plan.persistent));
    assert_eq!(joram.iter().filter(|plan| plan.commit_publishes == 10).count(), 6);
    assert_eq!(joram.iter().filter(|plan| plan.commit_acks).count(), 6);
    assert_eq!(joram.iter().filter(|plan| plan.travel_group == 50).count(), 8);
    assert_eq!(plans("osu-de-spsc").len(), 21);
    let bindings = plans("osu-te-spsc").iter().map(|plan| plan.bystanders + 1).max();
    assert_eq!(bindings, Some(1_024));
    let sizes: Vec<usize> = plans("solace-t2").iter().map(|plan| plan.size_bytes).collect();
    assert_eq!(sizes, [100, 1_024, 2_048, 10_240, 20_480, 51_200]);
    assert!(plans("solace-t2").iter().all(|plan| plan.producers == 20));
    let queues: Vec<usize> = plans("solace-t6").iter().map(|plan| plan.queues).collect();
    assert_eq!(queues, [1, 10, 50]);
}

#[test]
fn what_is_kept_for_nobody_outlives_a_restart_only_where_it_must() {
    // Columns: the target, whether its messages are kept without a consumer, and whether they are persistent.
    for (target, kept, persistent) in [
        ("amqp://h", false, false),
        ("redis://h", true, false),
        ("mqtt://h", true, true),
        ("nats://h", true, true),
    ] {
        let target: Target = target.parse().expect("it is one");
        let preset = find("pang-ping").expect("there is one");
        let broker = Broker { target: &target, targets: std::slice::from_ref(&target) };
        let cases = preset.cases(&preset.defaults(true), &broker);
        let Work::Spool(plan) = &cases[0].work else { panic!("it spools") };
        assert_eq!((plan.is_kept(), plan.persistent), (kept, persistent), "{target}");
        assert_eq!(cases[0].work.is_kept_in_memory(), kept && !persistent, "{target}");
    }
}

#[test]
fn parameters_are_numbers_lists_and_ranges() {
    let mut parameters: Parameters =
        serde_json::from_str(r#"{"a": "1..3", "b": "5"}"#).expect("names and values");
    assert_eq!(parameters.list("a"), [1.0, 2.0, 3.0]);
    for (value, wanted) in [("7", vec![7.0]), ("1, 2,5", vec![1.0, 2.0, 5.0]), ("0.5", vec![0.5])] {
        parameters.set("b", value).expect("it is a value");
        assert_eq!(parameters.list("b"), wanted);
    }
    for value in ["", "x", "3..1", "1..99999", "-1", "inf"] {
        assert!(parameters.set("b", value).is_err(), "{value}");
    }
    assert!(parameters.set("c", "1").is_err_and(|why| why.contains("a, b")));
    assert_eq!(parameters.count("nothing"), 0);
}

#[test]
fn settings_are_read_from_lines() {
    let text = "# all\nruns = 5\npang-1a.messages=100 # fewer\n\n";
    let setting = |preset: Option<&str>, name: &str, value: &str| Setting {
        preset: preset.map(str::to_owned),
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let wanted = [setting(None, "runs", "5"), setting(Some("pang-1a"), "messages", "100")];
    assert_eq!(Setting::parse_lines(text).expect("they are lines"), wanted);
    assert!(Setting::parse_lines("x=1\nnonsense").is_err_and(|why| why.starts_with("line 2")));
}

#[test]
fn history_is_found_by_series_and_place() {
    let preset = find("solace-t3").expect("there is one");
    let vmr = |series: &str, x: f64| {
        preset.history.iter().filter(|it| it.system == "VMR").find_map(|it| it.at(series, x))
    };
    assert_eq!(vmr("100 B", 50.0), Some(4.85e6));
    assert_eq!(vmr("1 KB", 1.0), Some(784e3));
    assert_eq!(vmr("1 KB", 3.0), None);
    let pang = find("pang-1a").expect("there is one");
    assert_eq!(pang.history[0].at("", 4.0), Some(141.26));
}
