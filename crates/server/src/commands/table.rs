//! Prints lists: aligned columns for people, JSON for programs.

use serde_json::Value;

/// Rows with a column for each field, in the order of the first row's fields.
pub(super) fn table(rows: &[Value], columns: &[&str]) -> String {
    let mut lines = vec![columns.iter().map(|name| name.to_uppercase()).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| columns.iter().map(|name| cell(&row[name])).collect()));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns.len()).map(|c| width(c).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in &lines {
        let padded = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
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
