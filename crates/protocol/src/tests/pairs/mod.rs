//! What a message of each protocol is to clients of every other, row by row of the tables in
//! `docs/protocols/mapping.md`.
//!
//! `scenarios.txt` has what is published and what everybody gets. The tests read the tables too: a row
//! without scenarios, or a protocol without them in some row, fails, and so does a scenario without a row.

mod clients;
mod mqtt;

use super::host::TestHost;
use crate::amqp091;
use clients::{Client, PROTOCOLS, Place, Protocol};
use std::collections::BTreeSet;

const MAPPING: &str = include_str!("../../../../../docs/protocols/mapping.md");
const SCENARIOS: &str = include_str!("scenarios.txt");
/// Where messages are published and heard, unless a scenario says another way.
const TOPIC: &str = "k";

/// Something published, and what everybody gets.
#[derive(Debug)]
struct Scenario {
    row: &'static str,
    publisher: &'static str,
    way: Way,
    line: &'static str,
    /// The receiver's protocol and what it gets.
    received: Vec<(&'static str, &'static str)>,
}

/// The way of a message to its receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By a topic.
    Plain,
    /// By a queue each, from which somebody has taken it and given it back.
    Returned,
    /// As a dead letter of a queue that has no room.
    Dead,
    /// By a queue each that has dropped the message before it.
    Dropped,
}

impl Way {
    fn of(word: &str) -> Way {
        match word {
            "returned" => Way::Returned,
            "dead" => Way::Dead,
            "dropped" => Way::Dropped,
            _ => panic!("({word}) is no way"),
        }
    }
}

/// All scenarios: `## row`, then for each `PROTOCOL > line` or `PROTOCOL (way) > line`, and what receivers of
/// each protocol get, `PROTOCOL < line`.
fn scenarios() -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut row = "";
    for line in SCENARIOS.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix("## ") {
            row = name;
        } else if let Some((from, line)) = line.split_once(" > ") {
            let (publisher, way) = match from.strip_suffix(')').and_then(|it| it.split_once(" (")) {
                Some((publisher, way)) => (publisher, Way::of(way)),
                None => (from, Way::Plain),
            };
            scenarios.push(Scenario { row, publisher, way, line, received: Vec::new() });
        } else if let Some((receiver, line)) = line.split_once(" < ") {
            scenarios.last_mut().expect("something is published").received.push((receiver, line));
        } else {
            assert!(line.starts_with("# "), "neither a row nor a scenario: {line}");
        }
    }
    scenarios
}

/// The cells of the first table behind a heading: its first line, and the others.
fn table(heading: &str) -> (Vec<&'static str>, Vec<Vec<&'static str>>) {
    let cells = |line: &'static str| -> Vec<&'static str> {
        line.trim_matches('|').split('|').map(str::trim).collect()
    };
    let (_, text) = MAPPING.split_once(&format!("## {heading}\n")).expect(heading);
    let mut lines = text.lines().skip_while(|line| !line.starts_with('|'));
    let first = cells(lines.next().expect("a table"));
    let lines = lines.skip(1).take_while(|line| line.starts_with('|'));
    (first, lines.map(cells).collect())
}

fn protocol(name: &str) -> &'static Protocol {
    let found = PROTOCOLS.iter().find(|protocol| protocol.name == name);
    found.unwrap_or_else(|| panic!("{name} is no protocol of these tests"))
}

/// The names of all protocols.
fn names() -> Vec<&'static str> {
    PROTOCOLS.iter().map(|protocol| protocol.name).collect()
}

fn host() -> TestHost {
    TestHost::new(amqp091::Settings::default())
}

/// What clients of every protocol get of what was published, in the order of [`PROTOCOLS`].
fn play(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let mut host = host();
    let operator = (protocol("AMQP 0-9-1").connect)(&mut host);
    let mut publisher = (protocol(scenario.publisher).connect)(&mut host);
    let mut receivers: Vec<_> =
        PROTOCOLS.iter().map(|protocol| (protocol.name, (protocol.connect)(&mut host))).collect();
    match scenario.way {
        Way::Plain => {
            subscribe_all(&mut host, &mut receivers);
            publisher.publish(&mut host, Place::Topic(TOPIC), scenario.line);
        }
        Way::Dead => {
            subscribe_all(&mut host, &mut receivers);
            let arguments =
                "{x-dead-letter-exchange:amq.topic,x-dead-letter-routing-key:k,x-max-length:0}";
            declare(&mut host, &*operator, "full", arguments);
            publisher.publish(&mut host, Place::Queue("full"), scenario.line);
        }
        Way::Returned | Way::Dropped => {
            let is_dropped = scenario.way == Way::Dropped;
            let arguments = if is_dropped { "{x-max-length:1}" } else { "{}" };
            receivers.retain_mut(|(name, receiver)| {
                let queue = name.replace([' ', '.'], "-");
                declare(&mut host, &*operator, &queue, arguments);
                for _ in 0..=usize::from(is_dropped) {
                    publisher.publish(&mut host, Place::Queue(&queue), scenario.line);
                }
                if !is_dropped {
                    give_back(&mut host, &*operator, &queue);
                }
                receiver.subscribe(&mut host, Place::Queue(&queue))
            });
        }
    }
    let got = receivers.iter().flat_map(|(name, receiver)| {
        receiver.received(&mut host).into_iter().map(|line| (*name, line))
    });
    got.collect()
}

fn subscribe_all(host: &mut TestHost, receivers: &mut [(&'static str, Box<dyn Client>)]) {
    for (name, receiver) in receivers {
        assert!(receiver.subscribe(host, Place::Topic(TOPIC)), "{name}");
        host.output(receiver.number());
    }
}

/// Sends methods of AMQP 0-9-1.
fn operate(host: &mut TestHost, operator: &dyn Client, lines: &[&str]) {
    for line in lines {
        host.receive(operator.number(), &amqp091::tests::script::encode(line, 131_072));
        host.turn_ends();
    }
}

fn declare(host: &mut TestHost, operator: &dyn Client, queue: &str, arguments: &str) {
    let line = format!("1 queue.declare queue={queue} arguments={arguments}");
    operate(host, operator, &[&line]);
}

/// Takes what is first in a queue, and gives it back.
fn give_back(host: &mut TestHost, operator: &dyn Client, queue: &str) {
    let get = format!("1 basic.get queue={queue}");
    operate(host, operator, &[&get, "1 basic.recover requeue=true"]);
}

/// Takes away what every message of another protocol has in AMQP 1.0: where it was published.
fn without_way(scenario: &Scenario, got: &str) -> String {
    let places = [("amq.topic", "k"), ("", "AMQP-1-0")];
    for (exchange, key) in places {
        let exchange = if exchange.is_empty() { "\"\"" } else { exchange };
        let way = format!("@x-exchange={exchange} @x-routing-key={key} ");
        if let Some(rest) = got.split_once(&way) {
            return format!("{}{}", rest.0, rest.1);
        }
    }
    assert_eq!(scenario.publisher, "AMQP 1.0", "where was it published? {got}");
    got.to_owned()
}

#[test]
fn every_message_is_to_everybody_what_the_table_says() {
    let mut wrong = Vec::new();
    for scenario in scenarios() {
        let got: Vec<_> = play(&scenario)
            .into_iter()
            .map(|(name, line)| match name {
                "AMQP 1.0" => (name, without_way(&scenario, &line)),
                _ => (name, line),
            })
            .collect();
        let expected: Vec<_> =
            scenario.received.iter().map(|(name, line)| (*name, (*line).to_owned())).collect();
        if got != expected {
            let Scenario { row, publisher, line, .. } = &scenario;
            let got: Vec<_> = got.iter().map(|(name, line)| format!("{name} < {line}")).collect();
            wrong.push(format!("## {row}\n{publisher} > {line}\n{}", got.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "got:\n{}", wrong.join("\n\n"));
}

#[test]
fn the_table_of_properties_and_its_scenarios_have_the_same_rows() {
    let (first, rows) = table("Properties and headers");
    assert_eq!(first[1..], names(), "a column for each protocol");
    let scenarios = scenarios();
    let tested: BTreeSet<_> = scenarios.iter().map(|scenario| scenario.row).collect();
    let described: BTreeSet<_> = rows.iter().map(|cells| cells[0]).collect();
    assert_eq!(tested, described, "rows with scenarios, and rows of the table");
    for cells in &rows {
        for (name, cell) in names().into_iter().zip(&cells[1..]) {
            let mut of_row = scenarios.iter().filter(|scenario| scenario.row == cells[0]);
            let is_tested = of_row.any(|scenario| scenario.publisher == name);
            assert!(is_tested || *cell == "none", "{name} publishes nothing for: {}", cells[0]);
        }
    }
}

#[test]
fn everybody_can_ask_and_answer() {
    let (_, rows) = table("Replies");
    let described: Vec<_> = rows.iter().map(|cells| (cells[0], cells[1])).collect();
    let mut tested = Vec::new();
    for asking in PROTOCOLS {
        for by in asking.asks_by {
            for answering in PROTOCOLS {
                let asker = format!("{}, {by}", asking.name);
                check_answer(asking, by, answering);
                tested.push((asker, answering.name));
            }
        }
    }
    let tested: Vec<_> = tested.iter().map(|(asker, name)| (&**asker, *name)).collect();
    assert_eq!(tested, described, "pairs that are tested, and rows of the table");
}

fn check_answer(asking: &Protocol, by: &str, answering: &Protocol) {
    let mut host = host();
    let mut service = (answering.connect)(&mut host);
    service.subscribe(&mut host, Place::Topic("service"));
    service.received(&mut host);
    let mut client = (asking.connect)(&mut host);
    let request = client.ask(&mut host, by);
    client.received(&mut host);
    client.publish(&mut host, Place::Topic("service"), &request);
    let requests = service.received(&mut host);
    let pair = format!("{}, {by} and {}", asking.name, answering.name);
    assert_eq!(requests.len(), 1, "{pair}: {requests:?}");
    service.answer(&mut host, &requests[0], "\"!\"");
    let answers = client.received(&mut host);
    assert!(matches!(&answers[..], [answer] if answer.ends_with("\"!\"")), "{pair}: {answers:?}");
}

/// What a row of the table of addresses subscribes to, in the order of [`PROTOCOLS`], and what matches;
/// empty: the protocol has no such pattern.
const PATTERNS: &[(&str, &[&str], &[&str])] = &[
    ("any one part", &["a.*.c", "a.*.c", "a.*.c", "a.*.c", "a/+/c"], &["a.b.c"]),
    (
        "any number of parts, from 0",
        &["a.#", "a.#", "", "a.#", "a/#"],
        &["a", "a.b", "a.b.c", "a.b.b.c"],
    ),
    (
        "any number of parts, from 1",
        &["a.*.#", "a.*.#", "a.>", "a.>", "a/+/#"],
        &["a.b", "a.b.c", "a.b.b.c"],
    ),
];

#[test]
fn subjects_match_the_same_whoever_publishes() {
    let (first, rows) = table("Addresses");
    assert_eq!(first[1..], names(), "a column for each protocol");
    for (row, patterns, matching) in PATTERNS {
        assert!(rows.iter().any(|cells| cells[0] == *row), "there is no row: {row}");
        for publishing in PROTOCOLS {
            check_pattern(row, patterns, matching, publishing);
        }
    }
}

fn check_pattern(row: &str, patterns: &[&str], matching: &[&str], publishing: &Protocol) {
    let mut host = host();
    let mut publisher = (publishing.connect)(&mut host);
    let mut receivers: Vec<_> =
        PROTOCOLS.iter().map(|protocol| (protocol.connect)(&mut host)).collect();
    for (receiver, pattern) in receivers.iter_mut().zip(patterns).filter(|it| !it.1.is_empty()) {
        receiver.subscribe(&mut host, Place::Topic(pattern));
        receiver.received(&mut host);
    }
    for key in ["a", "a.b", "a.b.c", "a.b.b.c", "b.b.c"] {
        publisher.publish(&mut host, Place::Topic(key), "\"x\"");
        for ((receiver, pattern), to) in receivers.iter().zip(patterns).zip(PROTOCOLS) {
            let is_heard = !receiver.received(&mut host).is_empty();
            let expected = !pattern.is_empty() && matching.contains(&key);
            let pair = format!("{row}: {key} from {} to {}", publishing.name, to.name);
            assert_eq!(is_heard, expected, "{pair}");
        }
    }
}
