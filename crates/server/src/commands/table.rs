//! Prints listings: aligned columns for people, by comfy-table.

use comfy_table::{Table, presets};
use serde_json::Value;

/// Rows with a column for each field, in that order.
pub(super) fn table(rows: &[Value], columns: &[&str]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.add_row(columns.iter().map(|name| name.to_uppercase()));
    for row in rows {
        table.add_row(columns.iter().map(|name| cell(&row[name])));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if index == 0 { 0 } else { 2 }, 0));
    }
    table.trim_fmt() + "\n"
}

/// A value as a person reads it; what a client chose is escaped. Backslashes stay single: patterns of
/// permissions are shown as they are given.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::String(text) if text.is_empty() => "''".into(),
        Value::String(text) => text.split('\\').map(escaped).collect::<Vec<_>>().join("\\"),
        other => other.to_string(),
    }
}

/// Text without backslashes; quotes need no escape, since no cell is quoted.
fn escaped(text: &str) -> String {
    text.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"")
}
