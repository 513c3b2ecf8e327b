//! Draws a view on a terminal: the summary, one of the tables, and what keys do.

use super::table::{Kind, Row, Table};
use super::view::{TABLES, View};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell as Drawn, Paragraph, Row as DrawnRow, Table as DrawnTable};

/// Columns of the terminal that a text may take at most.
const TEXT_WIDTH_MAX: usize = 40;

/// Draws it. Moves the first row back where there are fewer rows than keys have asked for.
pub(super) fn draw(view: &mut View, frame: &mut Frame<'_>) {
    let summary = view.summary();
    let heights = [
        Constraint::Length(summary.len() as u16),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ];
    let [above, tabs, table, below] = Layout::vertical(heights).areas(frame.area());
    frame.render_widget(Paragraph::new(summary_lines(&summary)), above);
    let rows = view.rows(view.table);
    frame.render_widget(Paragraph::new(tab_line(view, rows.len())), tabs);
    // One line is the titles'.
    let room = usize::from(table.height).saturating_sub(1);
    view.first = view.first.min(rows.len().saturating_sub(room));
    let shown = &rows[view.first..(view.first + room).min(rows.len())];
    draw_table(view, shown, frame, table);
    frame.render_widget(Paragraph::new(key_line(view)), below);
}

fn summary_lines(summary: &[Vec<(&'static str, String)>]) -> Text<'static> {
    let line = |figures: &Vec<(&'static str, String)>| {
        let spans = figures.iter().flat_map(|(name, value)| {
            [Span::from(*name).dim(), Span::from(format!(" {value}   "))]
        });
        Line::from_iter(spans)
    };
    Text::from_iter(summary.iter().map(line))
}

/// The tables' names, that of the one below marked.
fn tab_line(view: &View, shown: usize) -> Line<'static> {
    let mut spans = Vec::new();
    for (number, table) in TABLES.iter().enumerate() {
        let all = view.rows_in(number);
        let is_shown = number == view.table;
        let text = match is_shown && shown != all {
            true => format!(" {} {shown} of {all} ", table.title),
            false => format!(" {} {all} ", table.title),
        };
        let span = Span::from(text);
        spans.push(if is_shown { span.add_modifier(Modifier::REVERSED) } else { span });
        spans.push(Span::from(" "));
    }
    Line::from(spans)
}

fn draw_table(view: &View, rows: &[Row], frame: &mut Frame<'_>, area: Rect) {
    let table = TABLES[view.table];
    let (sorted_by, downwards) = view.sorted[view.table];
    let titles: Vec<String> = (0..table.columns.len())
        .map(|number| {
            let mark = match (number == sorted_by, downwards) {
                (false, _) => "",
                (true, true) => "\u{25be}",
                (true, false) => "\u{25b4}",
            };
            format!("{}{mark}", table.columns[number].title)
        })
        .collect();
    let shown: Vec<Vec<String>> = rows.iter().map(|row| shown_cells(table, row)).collect();
    let widths = (0..table.columns.len()).map(|number| {
        let cells = shown.iter().map(|row| row[number].chars().count());
        let widest = cells.chain([titles[number].chars().count()]).max().unwrap_or(0);
        Constraint::Length(widest.min(TEXT_WIDTH_MAX) as u16)
    });
    let head = DrawnRow::new(aligned(table, titles.clone())).style(Style::new().bold());
    let body = shown.iter().zip(rows).map(|(cells, row)| {
        let drawn = DrawnRow::new(aligned(table, cells.clone()));
        if needs_attention(table, row) { drawn.fg(Color::Red) } else { drawn }
    });
    frame.render_widget(DrawnTable::new(body, widths).header(head).column_spacing(2), area);
}

fn shown_cells(table: &Table, row: &Row) -> Vec<String> {
    row.iter().zip(table.columns).map(|(cell, column)| cell.shown(column.kind)).collect()
}

/// Numbers stand on the right.
fn aligned(table: &Table, cells: Vec<String>) -> impl Iterator<Item = Drawn<'static>> {
    cells.into_iter().zip(table.columns).map(|(text, column)| {
        let side = if column.kind == Kind::Text { Alignment::Left } else { Alignment::Right };
        Drawn::from(Text::from(text).alignment(side))
    })
}

/// Whether a row tells of trouble: a queue that has stopped, a client that is too slow or held up.
fn needs_attention(table: &Table, row: &Row) -> bool {
    row.iter().zip(table.columns).any(|(cell, column)| column.is_trouble(cell))
}

fn key_line(view: &View) -> Line<'static> {
    let keys = "Tab other table   < > column   r reverse   / choose   space stop   q leave";
    match &view.failure {
        Some(why) => Line::from(why.replace('\n', " ")).fg(Color::Red),
        None if view.is_writing => Line::from(format!("rows with: {}_", view.wanted)),
        None if view.is_paused => Line::from(format!("stopped   {keys}")).bold(),
        None if !view.wanted.is_empty() => {
            Line::from(format!("rows with: {}   Esc all   {keys}", view.wanted))
        }
        None => Line::from(keys).dim(),
    }
}
