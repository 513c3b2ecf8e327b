//! Standard output of commands, and tables on it. A reader that closes it, as `head` does, is no error.

use comfy_table::{Table, presets};
use serde_json::Value;
use std::io::{self, ErrorKind, Write};

/// Writes text; `false` if the reader has gone.
pub(super) fn put(text: impl AsRef<[u8]>) -> Result<bool, String> {
    put_to(&mut io::stdout().lock(), text.as_ref())
}

fn put_to(out: &mut impl Write, text: &[u8]) -> Result<bool, String> {
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("standard output: {error}")),
    }
}

/// Writes a line to the standard error, if it can be written to.
pub(super) fn complain(line: &str) {
    let _ = writeln!(io::stderr().lock(), "angarium: {line}");
}

/// A table of rows with a column for each of these fields, which are parted by blanks.
pub(super) fn table(rows: &[Value], columns: &str) -> String {
    let columns: Vec<&str> = columns.split(' ').collect();
    let titles = columns.iter().map(|name| name.to_uppercase()).collect();
    let shown = rows.iter().map(|row| columns.iter().map(|name| cell(&row[name])).collect());
    aligned(std::iter::once(titles).chain(shown))
}

/// Lines of cells, one below the other.
pub(super) fn aligned(lines: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for line in lines {
        table.add_row(line);
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
        Value::Object(fields) if fields.is_empty() => "-".into(),
        Value::Object(fields) => {
            let each =
                fields.iter().map(|(name, value)| format!("{}={}", escaped(name), cell(value)));
            each.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// Text without backslashes; quotes need no escape, since no cell is quoted.
pub(super) fn escaped(text: &str) -> String {
    text.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Output that fails so.
    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_mistake() {
        assert_eq!(put_to(&mut Vec::new(), b"text"), Ok(true));
        assert_eq!(put_to(&mut Failing(ErrorKind::BrokenPipe), b"text"), Ok(false));
        let full = put_to(&mut Failing(ErrorKind::StorageFull), b"text");
        assert_eq!(full, Err("standard output: no storage space".to_owned()));
    }

    #[test]
    fn what_has_parts_is_told_by_name() {
        let rows = [
            json!({ "name": "a", "parts": {} }),
            json!({ "name": "b", "parts": { "x": 1, "y": null } }),
        ];
        assert_eq!(table(&rows, "name parts"), "NAME  PARTS\na     -\nb     x=1 y=-\n");
    }
}
