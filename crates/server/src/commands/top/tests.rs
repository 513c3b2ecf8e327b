//! Samples in, rows, text and screens out; and one of a broker in this process.

use super::sample::Sample;
use super::table::{Cell, QUEUES, bytes, choose, count, sort};
use super::view::{Next, View};
use super::{command, screen};
use crate::commands::tests::Running;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn queue(name: &str, ready: u64, published: u64) -> Value {
    json!({
        "vhost": "/", "name": name, "ready": ready, "unsettled": 0, "consumers": 1, "bytes": 2048,
        "published_total": published, "delivered_total": 0, "accepted_total": 0, "state": "running",
    })
}

fn sample(at: Instant, published: u64, queues: &[Value]) -> Sample {
    let overview = json!({ "version": "1", "published_total": published, "queues": queues.len() });
    let connection = json!({ "id": 7, "user": "ada", "waits_for": "memory", "sent_bytes": 0 });
    Sample { at, overview, listings: [queues.to_vec(), vec![connection]] }
}

/// Two looks at a broker, two seconds apart.
fn view() -> View {
    let start = Instant::now();
    let mut view =
        View::new(sample(start, 1_000, &[queue("orders", 5, 100), queue("audit", 9, 7)]));
    let later = [queue("orders", 12_345, 4_100), queue("audit", 0, 3), queue("new", 1, 1)];
    view.take(Ok(sample(start + Duration::from_secs(2), 5_000, &later)));
    view
}

fn press(view: &mut View, keys: &[KeyCode]) -> Next {
    let mut next = Next::Stay;
    for key in keys {
        next = view.press(KeyEvent::new(*key, KeyModifiers::NONE));
    }
    next
}

/// The names of the queues that are shown, from above.
fn shown(view: &View) -> Vec<String> {
    let name = |row: &Vec<Cell>| match &row[1] {
        Cell::Text(name) => name.clone(),
        other => panic!("{other:?}"),
    };
    view.rows(0).iter().map(name).collect()
}

fn drawn(view: &mut View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen::draw(view, frame)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn rates_are_what_counters_grew_by_in_a_second() {
    let in_of = |name: &str| {
        let rows = view().rows(0);
        let row = rows.into_iter().find(|row| row[1] == Cell::Text(name.to_owned()));
        row.unwrap()[6].clone()
    };
    assert_eq!(in_of("orders"), Cell::Number(2_000.0));
    // One that is smaller than before has begun anew, one that was not there has none.
    assert_eq!(in_of("audit"), Cell::Number(1.5));
    assert_eq!(in_of("new"), Cell::Nothing);
}

#[test]
fn figures_are_shown_so_that_they_are_read_at_a_glance() {
    for (number, text) in [(0.0, "0"), (999.0, "999"), (1_000.0, "1,000"), (1.2e7, "12,000,000")] {
        assert_eq!(count(number), text);
    }
    for (number, text) in [
        (0.0, "0 B"),
        (1_023.0, "1023 B"),
        (2_048.0, "2.0 KiB"),
        (5.4e8, "515 MiB"),
        (9e15, "8185 TiB"),
    ] {
        assert_eq!(bytes(number), text);
    }
}

#[test]
fn rows_are_sorted_and_chosen() {
    let rows = |names: &[&str]| -> Vec<Vec<Cell>> {
        names.iter().map(|name| vec![Cell::Text((*name).to_owned())]).collect()
    };
    let mut sorted = rows(&["b", "a", "c"]);
    sorted.push(vec![Cell::Nothing]);
    sort(&mut sorted, 0, true);
    assert_eq!(sorted[0], vec![Cell::Text("c".to_owned())]);
    assert_eq!(sorted[3], vec![Cell::Nothing]);
    let mut chosen = rows(&["Orders", "audit"]);
    choose(&mut chosen, "ord");
    assert_eq!(chosen, rows(&["Orders"]));
    choose(&mut chosen, "");
    assert_eq!(chosen.len(), 1);
}

#[test]
fn keys_sort_choose_and_leave() {
    let mut view = view();
    assert_eq!(shown(&view), ["orders", "new", "audit"]);
    press(&mut view, &[KeyCode::Char('r')]);
    assert_eq!(shown(&view), ["audit", "new", "orders"]);
    press(&mut view, &[KeyCode::Char('<')]);
    assert_eq!(shown(&view), ["audit", "new", "orders"], "by name");
    press(&mut view, &[KeyCode::Char('/'), KeyCode::Char('q'), KeyCode::Backspace]);
    press(&mut view, &[KeyCode::Char('N'), KeyCode::Char('e'), KeyCode::Enter]);
    assert_eq!(shown(&view), ["new"]);
    press(&mut view, &[KeyCode::Esc, KeyCode::Tab]);
    assert_eq!((view.table, shown(&view).len()), (1, 3));
    assert_eq!(press(&mut view, &[KeyCode::Char('q')]), Next::Leave);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(view.press(interrupt), Next::Leave);
}

#[test]
fn a_screen_has_the_summary_a_table_and_the_keys() {
    let mut view = view();
    let screen = drawn(&mut view, 120, 12);
    for part in ["in/s 2,000", "queues 3", "READY\u{25be}", "orders", "12,345", "q leave"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    press(&mut view, &[KeyCode::Tab]);
    let screen = drawn(&mut view, 140, 12);
    assert!(screen.contains("ada") && screen.contains("memory"), "{screen}");
    view.take(Err("the broker does not answer".to_owned()));
    assert!(drawn(&mut view, 120, 12).contains("does not answer"));
}

#[test]
fn any_size_is_drawn_and_the_last_row_can_be_reached() {
    let mut view = view();
    press(&mut view, &[KeyCode::End]);
    for (width, height) in [(1, 1), (10, 3), (40, 5), (40, 7), (300, 100)] {
        drawn(&mut view, width, height);
    }
    press(&mut view, &[KeyCode::End]);
    let screen = drawn(&mut view, 80, 7);
    assert!(screen.contains("audit") && !screen.contains("orders"), "{screen}");
}

#[test]
fn what_stands_still_takes_nothing_new() {
    let mut view = view();
    press(&mut view, &[KeyCode::Char(' ')]);
    view.take(Ok(sample(Instant::now(), 9_000, &[])));
    assert_eq!(shown(&view).len(), 3);
    press(&mut view, &[KeyCode::Char(' ')]);
    view.take(Ok(sample(Instant::now(), 9_000, &[])));
    assert_eq!(shown(&view).len(), 0);
}

#[test]
fn a_broker_is_shown_as_text_and_for_programs() {
    let broker = Running::start();
    let mut client = broker.client();
    client.declare("orders").unwrap();
    let mut view = View::new(Sample::take(&broker.broker("guest")).unwrap());
    view.take(Ok(Sample::take(&broker.broker("guest")).unwrap()));
    let text = view.as_text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("connections 1") && lines[0].contains("queues 1"), "{text}");
    assert!(lines.iter().any(|line| line.starts_with("/") && line.contains("orders")), "{text}");
    assert!(lines.iter().any(|line| line.contains("AMQP 0-9-1")), "{text}");
    let whole = view.as_json();
    assert_eq!(whole["queues"][0]["name"], "orders");
    assert_eq!(whole["queues"][0]["published_per_second"], 0.0);
    assert_eq!(whole["connections"][0]["user"], "guest");
    // Each figure of a column is one that the broker tells.
    for column in QUEUES.columns {
        let value = &whole["queues"][0][column.name()];
        assert!(!value.is_null(), "{}: {whole}", column.title);
    }
}

#[test]
fn intervals_are_within_bounds() {
    for (interval, is_right) in [("0.2", true), ("3600", true), ("0", false), ("NaN", false)] {
        let matches = command().try_get_matches_from(["top", "--interval", interval]).unwrap();
        let seconds = matches.get_one::<f64>("interval").unwrap();
        assert_eq!(super::INTERVALS.contains(seconds), is_right, "{interval}");
    }
}
