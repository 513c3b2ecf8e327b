//! What the broker lists, as rows of cells: with rates, sorted by a column, chosen by a text.

use super::sample::rate;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::HashMap;

/// What a listing is shown as.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) columns: &'static [Column],
    /// The fields that tell one row from another.
    key: &'static [&'static str],
    /// The column that sorts until another is chosen, downwards.
    pub(super) sorted_by: usize,
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// The field of a listing that it shows.
    field: &'static str,
    pub(super) kind: Kind,
}

/// What a column shows of its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Count,
    Bytes,
    /// What it grows by in a second.
    Rate,
    /// The same of a field that counts bytes.
    ByteRate,
}

const fn column(title: &'static str, field: &'static str, kind: Kind) -> Column {
    Column { title, field, kind }
}

/// All queues.
pub(super) const QUEUES: Table = Table {
    title: "queues",
    columns: &[
        column("VHOST", "vhost", Kind::Text),
        column("QUEUE", "name", Kind::Text),
        column("READY", "ready", Kind::Count),
        column("UNSETTLED", "unsettled", Kind::Count),
        column("CONSUMERS", "consumers", Kind::Count),
        column("BYTES", "bytes", Kind::Bytes),
        column("IN/S", "published_total", Kind::Rate),
        column("OUT/S", "delivered_total", Kind::Rate),
        column("ACCEPTED/S", "accepted_total", Kind::Rate),
        column("STATE", "state", Kind::Text),
    ],
    key: &["vhost", "name"],
    sorted_by: 2,
};

/// All connections.
pub(super) const CONNECTIONS: Table = Table {
    title: "connections",
    columns: &[
        column("ID", "id", Kind::Count),
        column("USER", "user", Kind::Text),
        column("VHOST", "vhost", Kind::Text),
        column("PEER", "peer", Kind::Text),
        column("PROTOCOL", "protocol", Kind::Text),
        column("IN/S", "received_messages", Kind::Rate),
        column("OUT/S", "sent_messages", Kind::Rate),
        column("BYTES IN/S", "received_bytes", Kind::ByteRate),
        column("BYTES OUT/S", "sent_bytes", Kind::ByteRate),
        column("UNSENT", "unsent_bytes", Kind::Bytes),
        column("STATE", "state", Kind::Text),
        column("WAITS FOR", "waits_for", Kind::Text),
        column("TOO SLOW", "too_slow", Kind::Text),
    ],
    key: &["id"],
    sorted_by: 6,
};

/// What stands in a row under a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Text(String),
    Number(f64),
    /// It is not known, or there is none.
    Nothing,
}

impl Cell {
    /// What is larger comes behind what is smaller, and what is not known before all.
    fn compare(&self, other: &Cell) -> Ordering {
        let rank = |cell: &Cell| u8::from(*cell != Cell::Nothing);
        match (self, other) {
            (Cell::Text(one), Cell::Text(other)) => one.cmp(other),
            (Cell::Number(one), Cell::Number(other)) => one.total_cmp(other),
            _ => rank(self).cmp(&rank(other)),
        }
    }

    /// As people read it.
    pub(super) fn shown(&self, kind: Kind) -> String {
        match (self, kind) {
            (Cell::Nothing, _) => "-".to_owned(),
            (Cell::Text(text), _) => text.clone(),
            (Cell::Number(number), Kind::Bytes | Kind::ByteRate) => bytes(*number),
            (Cell::Number(number), Kind::Rate) => count(number.round()),
            (Cell::Number(number), _) => count(*number),
        }
    }

    /// For programs.
    pub(super) fn as_json(&self) -> Value {
        match self {
            Cell::Text(text) => text.as_str().into(),
            Cell::Number(number) => (*number).into(),
            Cell::Nothing => Value::Null,
        }
    }
}

/// A whole number with a comma between thousands.
pub(super) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Octets with a unit that leaves four digits at most.
pub(super) fn bytes(number: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut number, mut unit) = (number, 0);
    while number >= 1024.0 && unit + 1 < UNITS.len() {
        number /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && number < 100.0);
    format!("{number:.digits$} {}", UNITS[unit])
}

/// A row of cells, one a column.
pub(super) type Row = Vec<Cell>;

impl Table {
    /// The rows of a listing; `before` is the same listing, these seconds ago.
    pub(super) fn rows(&self, now: &[Value], before: Option<(&[Value], f64)>) -> Vec<Row> {
        let seconds = before.map_or(0.0, |(_, seconds)| seconds);
        let before = before.map_or(&[][..], |(rows, _)| rows);
        let earlier: HashMap<Vec<String>, &Value> =
            before.iter().map(|row| (self.key_of(row), row)).collect();
        let row = |row: &Value| {
            let earlier = earlier.get(&self.key_of(row)).copied();
            self.columns.iter().map(|column| column.cell(row, earlier, seconds)).collect()
        };
        now.iter().map(row).collect()
    }

    fn key_of(&self, row: &Value) -> Vec<String> {
        self.key.iter().map(|field| row[*field].to_string()).collect()
    }
}

impl Column {
    /// What programs call it: a rate is not the field that it is made of.
    pub(super) fn name(&self) -> String {
        match self.kind {
            Kind::Rate | Kind::ByteRate => {
                self.field.trim_end_matches("_total").to_owned() + "_per_second"
            }
            Kind::Text | Kind::Count | Kind::Bytes => self.field.to_owned(),
        }
    }

    /// Whether a cell of it tells of trouble: a queue that has stopped, a client that is too slow or held up.
    pub(super) fn is_trouble(&self, cell: &Cell) -> bool {
        match (self.field, cell) {
            ("too_slow" | "waits_for", cell) => *cell != Cell::Nothing,
            ("state", Cell::Text(state)) => state == "stopped" || state == "blocked",
            _ => false,
        }
    }

    fn cell(&self, row: &Value, earlier: Option<&Value>, seconds: f64) -> Cell {
        let value = &row[self.field];
        let number = match self.kind {
            Kind::Text => return text(value),
            Kind::Count | Kind::Bytes => value.as_f64(),
            Kind::Rate | Kind::ByteRate => {
                earlier.and_then(|earlier| rate(value, &earlier[self.field], seconds))
            }
        };
        number.map_or(Cell::Nothing, Cell::Number)
    }
}

/// A value in words; of an object, its first field says enough.
fn text(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Nothing,
        Value::String(text) => Cell::Text(text.escape_debug().to_string()),
        Value::Object(fields) => {
            let each = fields.iter().map(|(name, value)| match value {
                Value::String(text) => text.clone(),
                other => format!("{name} {other}"),
            });
            Cell::Text(each.collect::<Vec<_>>().join(", "))
        }
        other => Cell::Text(other.to_string()),
    }
}

/// Keeps the rows that have this text in one of their cells, in any case.
pub(super) fn choose(rows: &mut Vec<Row>, wanted: &str) {
    let wanted = wanted.to_lowercase();
    let has =
        |cell: &Cell| matches!(cell, Cell::Text(text) if text.to_lowercase().contains(&wanted));
    rows.retain(|row| wanted.is_empty() || row.iter().any(has));
}

/// Sorts by a column; rows that are equal there keep their order.
pub(super) fn sort(rows: &mut [Row], column: usize, downwards: bool) {
    rows.sort_by(|one, other| {
        let order = one[column].compare(&other[column]);
        if downwards { order.reverse() } else { order }
    });
}
