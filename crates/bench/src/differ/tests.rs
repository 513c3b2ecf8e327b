//! Scenarios are well formed and compared as they say.

use super::connection::Wire;
use super::scenario::{self, Action};
use super::text::{Cursor, show};
use super::{Finding, Outcome, amqp10, amqp091, beside, finding, nats};

#[test]
fn all_scenarios_are_well_formed() {
    let mut amqp091 = amqp091::Frames::default();
    let mut amqp10 = amqp10::Frames::default();
    for (file, text) in amqp091::SCENARIOS {
        for scenario in scenario::parse(file, text).unwrap() {
            for step in &scenario.steps {
                let Action::Send(text) = &step.action else { continue };
                let encoded = amqp091.encode(&text.replace('$', "name-"));
                assert!(encoded.is_ok(), "{}: {}: {encoded:?}", scenario.name, step.text);
            }
        }
    }
    for (file, text) in amqp10::SCENARIOS {
        for scenario in scenario::parse(file, text).unwrap() {
            for step in &scenario.steps {
                let Action::Send(text) = &step.action else { continue };
                let encoded = amqp10.encode(&text.replace('$', "name-"));
                assert!(encoded.is_ok(), "{}: {}: {encoded:?}", scenario.name, step.text);
            }
        }
    }
    for (file, text) in nats::SCENARIOS.iter().chain(nats::WITH_USERS) {
        for scenario in scenario::parse(file, text).unwrap() {
            for step in &scenario.steps {
                let Action::Send(text) = &step.action else { continue };
                let encoded = nats::Lines::default().encode(text);
                assert!(encoded.is_ok(), "{}: {}: {encoded:?}", scenario.name, step.text);
            }
        }
    }
}

#[test]
fn a_scenario_is_parsed_once_for_each_value() {
    let text = "Title\n\n## name %\n= why\n@ bare\neach: x | y z\n# comment\nfirst %\n\
                b: wait 5\nb: disconnect\n";
    let scenarios = scenario::parse("file", text).unwrap();
    let names: Vec<_> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    assert_eq!(names, ["file: name x", "file: name y z"]);
    let [_, second] = &scenarios[..] else { panic!("two") };
    assert_eq!(second.reason.as_deref(), Some("why"));
    assert_eq!(second.options, ["bare"]);
    let steps: Vec<_> = second.steps.iter().map(|step| (step.connection, &step.action)).collect();
    let send = Action::Send("first y z".to_owned());
    assert_eq!(steps, [('a', &send), ('b', &Action::Wait(5)), ('b', &Action::Disconnect)]);
}

#[test]
fn bytes_are_shown_as_text_that_reads_back() {
    for bytes in [&b""[..], b"word", b"two words", b"\x00\xff", b"\"quoted\\\""] {
        let text = show(bytes);
        let mut cursor = Cursor(&text);
        assert_eq!(cursor.bytes().unwrap(), bytes, "{text}");
        assert!(cursor.is_at_end(), "{text}");
    }
}

#[test]
fn differences_are_accepted_only_with_a_reason_and_only_while_they_are_there() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let mut scenario = scenario::Scenario::default();
    let same = Outcome { ours: lines("a"), theirs: lines("a") };
    let other = Outcome { ours: lines("a"), theirs: lines("b") };
    assert_eq!(finding(&scenario, &same), Finding::Same);
    assert_eq!(finding(&scenario, &other), Finding::Different);
    let said =
        |text: &str| lines(&format!("close reply-code=404 reply-text=\"{text}\" class-id=5"));
    let words = Outcome { ours: said("NOT_FOUND - this"), theirs: said("NOT_FOUND - that") };
    assert_eq!(finding(&scenario, &words), Finding::OtherWords);
    let told = |text: &str| lines(&format!("close error=error{{condition=a description={text}}}"));
    let words = Outcome { ours: told("this"), theirs: told("\"that one\"") };
    assert_eq!(finding(&scenario, &words), Finding::OtherWords);
    let names = Outcome { ours: said("NOT_FOUND - this"), theirs: said("GONE - this") };
    assert_eq!(finding(&scenario, &names), Finding::Different);
    scenario.reason = Some("why".to_owned());
    assert_eq!(finding(&scenario, &same), Finding::NoLongerDifferent);
    assert_eq!(finding(&scenario, &other), Finding::Accepted);
    assert_eq!(beside(&lines("a\nb\nc"), &lines("a\nc\nd")), "    a\n  - b\n    c\n  + d\n");
}

const FROM_RABBITMQ: &str = "\
# What differs from RabbitMQ

<!-- Generated from the scenarios in crates/bench/src/differ/amqp091 by
     `cargo test -p angarium-bench differ` with ANGARIUM_WRITE_DOCS=1; a test keeps it fresh. -->

`cargo xtask differ amqp091` gives Angarium and an installed RabbitMQ (compared last: 4.3.6) the same
frames, and compares all that they answer, frame by frame; only the explanations in error texts may be in
other words. This is all in which the answers differ, on purpose. `%` stands for several values, `$q` for a
queue of that scenario.

| reason | scenarios |
|---|---|
";

const FROM_ARTEMIS: &str = "\
# What differs from ActiveMQ Artemis by AMQP 1.0

<!-- Generated from the scenarios in crates/bench/src/differ/amqp10 by
     `cargo test -p angarium-bench differ` with ANGARIUM_WRITE_DOCS=1; a test keeps it fresh. -->

`cargo xtask differ amqp10` gives Angarium and ActiveMQ Artemis (compared last: 2.44.0) the same frames, and
compares their answers frame by frame, except values that each broker chooses for itself
(windows, how much credit, handles, tags, annotations); only the explanations in error texts may be in other
words. This is all in which the answers differ, on purpose. `%` stands for several values, `$q` for a queue
of that scenario.

| reason | scenarios |
|---|---|
";

/// A page about differences: a row for each reason, in the order of the scenarios.
fn differences(head: &str, scenarios: &[(&str, &str)]) -> String {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for (file, text) in scenarios {
        for scenario in text.split("\n## ").skip(1) {
            let name = scenario.lines().next().unwrap_or_default();
            let name = name.replace(": %", "").replace('|', "\\|");
            let Some(reason) = scenario.lines().find_map(|line| line.strip_prefix("= ")) else {
                continue;
            };
            let place = format!("{file}: {name}");
            match rows.iter_mut().find(|(known, _)| known == reason) {
                Some((_, places)) if places.contains(&place) => {}
                Some((_, places)) => places.push(place),
                None => rows.push((reason.to_owned(), vec![place])),
            }
        }
    }
    let rows =
        rows.iter().map(|(reason, places)| format!("| {reason} | {} |\n", places.join("; ")));
    head.to_owned() + &rows.collect::<String>()
}

#[test]
fn the_pages_about_differences_are_fresh() {
    let pages = [
        ("differences.md", differences(FROM_RABBITMQ, amqp091::SCENARIOS)),
        ("differences-artemis.md", differences(FROM_ARTEMIS, amqp10::SCENARIOS)),
    ];
    let releases = [amqp091::Frames::COMPARED, amqp10::Frames::COMPARED];
    for ((name, page), release) in pages.into_iter().zip(releases) {
        let compared = format!("(compared last: {})", release.version);
        assert!(page.contains(&compared), "{name} does not say: {compared}");
        let path = format!("{}/../../docs/protocols/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("ANGARIUM_WRITE_DOCS").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == page, "{name}: run this test with ANGARIUM_WRITE_DOCS=1");
    }
}
