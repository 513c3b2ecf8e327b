//! What is shown, and what keys change of it; knows neither the terminal nor how the broker is asked.

use super::sample::{Sample, rate};
use super::table::{CONNECTIONS, Cell, Kind, QUEUES, Row, Table, choose, sort};
use crate::commands::output;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::{Map, Value};

/// The tables, in the order in which Tab shows them.
pub(super) const TABLES: [&Table; 2] = [&QUEUES, &CONNECTIONS];
/// Rows by which Page Up and Page Down move.
const PAGE: usize = 20;

/// What is shown.
#[derive(Debug)]
pub(super) struct View {
    /// The last look at the broker, and the one before.
    now: Sample,
    before: Option<Sample>,
    /// Why there is none newer.
    pub(super) failure: Option<String>,
    /// Which of the tables is shown.
    pub(super) table: usize,
    /// The column that sorts each of them, and whether downwards.
    pub(super) sorted: [(usize, bool); TABLES.len()],
    /// Only rows with this text are shown.
    pub(super) wanted: String,
    /// Keys write that text.
    pub(super) is_writing: bool,
    /// It stands still.
    pub(super) is_paused: bool,
    /// The first row that is shown.
    pub(super) first: usize,
}

/// What follows on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Leave,
}

impl View {
    /// What a first look at the broker shows: no rates yet.
    pub(super) fn new(now: Sample) -> View {
        View {
            now,
            before: None,
            failure: None,
            table: 0,
            sorted: TABLES.map(|table| (table.sorted_by, true)),
            wanted: String::new(),
            is_writing: false,
            is_paused: false,
            first: 0,
        }
    }

    /// Takes a further look, or why there is none.
    pub(super) fn take(&mut self, answer: Result<Sample, String>) {
        if self.is_paused {
            return;
        }
        self.failure = None;
        match answer {
            Ok(sample) => self.before = Some(std::mem::replace(&mut self.now, sample)),
            Err(why) => self.failure = Some(why),
        }
    }

    /// Does what a key says.
    pub(super) fn press(&mut self, key: KeyEvent) -> Next {
        if key.kind == KeyEventKind::Release {
            return Next::Stay;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Next::Leave;
        }
        if self.is_writing {
            self.write(key.code);
            return Next::Stay;
        }
        let columns = TABLES[self.table].columns.len();
        let (column, downwards) = &mut self.sorted[self.table];
        match key.code {
            KeyCode::Char('q') => return Next::Leave,
            KeyCode::Tab => {
                self.table = (self.table + 1) % TABLES.len();
                self.first = 0;
            }
            KeyCode::Char('>') | KeyCode::Right => *column = (*column + 1) % columns,
            KeyCode::Char('<') | KeyCode::Left => *column = (*column + columns - 1) % columns,
            KeyCode::Char('r') => *downwards = !*downwards,
            KeyCode::Char('/') => self.is_writing = true,
            KeyCode::Esc => self.wanted.clear(),
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Up => self.first = self.first.saturating_sub(1),
            KeyCode::Down => self.first += 1,
            KeyCode::PageUp => self.first = self.first.saturating_sub(PAGE),
            KeyCode::PageDown => self.first += PAGE,
            KeyCode::Home => self.first = 0,
            // Drawing it finds the last one.
            KeyCode::End => self.first = usize::MAX / 2,
            _ => {}
        }
        Next::Stay
    }

    /// Takes a key of the text that rows are chosen by.
    fn write(&mut self, key: KeyCode) {
        self.first = 0;
        match key {
            KeyCode::Enter => self.is_writing = false,
            KeyCode::Esc => {
                self.is_writing = false;
                self.wanted.clear();
            }
            KeyCode::Backspace => drop(self.wanted.pop()),
            KeyCode::Char(letter) => self.wanted.push(letter),
            _ => {}
        }
    }

    /// The rows of a table, as chosen and sorted.
    pub(super) fn rows(&self, table: usize) -> Vec<Row> {
        let before = self.before.as_ref();
        let earlier = before.map(|it| (it.listings[table].as_slice(), self.now.seconds_since(it)));
        let mut rows = TABLES[table].rows(&self.now.listings[table], earlier);
        choose(&mut rows, &self.wanted);
        let (column, downwards) = self.sorted[table];
        sort(&mut rows, column, downwards);
        rows
    }

    /// How many rows a table has, before any are chosen.
    pub(super) fn rows_in(&self, table: usize) -> usize {
        self.now.listings[table].len()
    }

    /// What the whole broker does: lines of names and values.
    pub(super) fn summary(&self) -> Vec<Vec<(&'static str, String)>> {
        let line = |figures: &[Figure]| {
            figures.iter().map(|figure| (figure.name, self.figure(figure))).collect()
        };
        SUMMARY.iter().map(|figures| line(figures)).collect()
    }

    fn figure(&self, figure: &Figure) -> String {
        let value = &self.now.overview[figure.field];
        let before = self.before.as_ref();
        let growth = || {
            let before = before?;
            rate(value, &before.overview[figure.field], self.now.seconds_since(before))
        };
        let cell = match figure.kind {
            Kind::Text => return value.as_str().unwrap_or("-").escape_debug().to_string(),
            Kind::Count | Kind::Bytes => value.as_f64(),
            Kind::Rate | Kind::ByteRate => growth(),
        };
        cell.map_or(Cell::Nothing, Cell::Number).shown(figure.kind)
    }

    /// All of it as text: the summary, and both tables.
    pub(super) fn as_text(&self) -> String {
        let mut text = String::new();
        for line in self.summary() {
            let figures = line.iter().map(|(name, value)| format!("{name} {value}"));
            text += &figures.collect::<Vec<_>>().join("   ");
            text.push('\n');
        }
        for (number, table) in TABLES.iter().enumerate() {
            let shown = self.rows(number).into_iter().map(|row| {
                let cells = row.iter().zip(table.columns);
                cells.map(|(cell, column)| cell.shown(column.kind)).collect()
            });
            let titles = table.columns.iter().map(|column| column.title.to_owned()).collect();
            let lines: Vec<Vec<String>> = std::iter::once(titles).chain(shown).collect();
            text += &format!("\n{}", output::aligned(lines));
        }
        text
    }

    /// The same for programs: fields by the names that the broker gives them, rates as numbers.
    pub(super) fn as_json(&self) -> Value {
        let mut whole = Map::from_iter([("overview".to_owned(), self.now.overview.clone())]);
        for (number, table) in TABLES.iter().enumerate() {
            let row = |row: Row| -> Value {
                let cells = row.into_iter().zip(table.columns);
                cells.map(|(cell, column)| (column.name(), cell.as_json())).collect()
            };
            whole.insert(table.title.to_owned(), self.rows(number).into_iter().map(row).collect());
        }
        whole.into()
    }
}

/// A figure of the whole broker.
struct Figure {
    name: &'static str,
    /// Its field in the broker's overview.
    field: &'static str,
    kind: Kind,
}

const fn figure(name: &'static str, field: &'static str, kind: Kind) -> Figure {
    Figure { name, field, kind }
}

/// The lines above the tables.
const SUMMARY: [&[Figure]; 3] = [
    &[
        figure("Angarium", "version", Kind::Text),
        figure("journal", "journal", Kind::Text),
        figure("connections", "connections", Kind::Count),
        figure("too slow", "slow_consumers", Kind::Count),
        figure("queues", "queues", Kind::Count),
        figure("ready", "messages_ready", Kind::Count),
        figure("unsettled", "messages_unsettled", Kind::Count),
    ],
    &[
        figure("in/s", "published_total", Kind::Rate),
        figure("out/s", "delivered_total", Kind::Rate),
        figure("accepted/s", "accepted_total", Kind::Rate),
        figure("direct in/s", "direct_published_total", Kind::Rate),
        figure("direct out/s", "direct_delivered_total", Kind::Rate),
        figure("missed/s", "direct_missed_total", Kind::Rate),
        figure("discarded/s", "discarded_total", Kind::Rate),
    ],
    &[
        figure("flushes/s", "flushes_total", Kind::Rate),
        figure("written/s", "flushed_bytes_total", Kind::ByteRate),
        figure("journal on disk", "journal_bytes", Kind::Bytes),
        figure("memory", "memory_resident_bytes", Kind::Bytes),
        figure("held for clients", "memory_held_bytes", Kind::Bytes),
        figure("of", "memory_max_bytes", Kind::Bytes),
    ],
];
