//! Long lists: filtered, sorted and cut into pages here, so that a tool gets no more than it shows. Works on
//! rows of any kind.

use super::answer::Refused;
use regex::RegexBuilder;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;

/// Rows of a page where the request does not say how many.
const PAGE_SIZE: usize = 100;
const PAGE_SIZE_MAX: usize = 500;
/// Memory that a pattern may take, compiled.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// What a request asks of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// The page, from 1; none: all rows, and no page around them.
    page: Option<usize>,
    page_size: usize,
    name: String,
    is_pattern: bool,
    sort: Option<String>,
    reverse: bool,
    columns: Vec<String>,
}

impl Asked {
    /// Reads what follows an address; unknown parameters mean nothing, as in RabbitMQ.
    pub(super) fn read(parameters: &[(String, String)]) -> Result<Asked, Refused> {
        let mut asked = Asked { page_size: PAGE_SIZE, ..Asked::default() };
        for (name, value) in parameters {
            let number = || {
                let number = value.parse().ok().filter(|number| *number > 0);
                number.ok_or_else(|| Refused::bad(format!("{name}: '{value}' is no page number")))
            };
            match name.as_str() {
                "page" => asked.page = Some(number()?),
                "page_size" => asked.page_size = number()?,
                "name" => asked.name.clone_from(value),
                "use_regex" => asked.is_pattern = value == "true",
                "sort" => asked.sort = Some(value.clone()),
                "sort_reverse" => asked.reverse = value == "true",
                "columns" => asked.columns = value.split(',').map(str::to_owned).collect(),
                _ => {}
            }
        }
        if asked.page_size > PAGE_SIZE_MAX {
            return Err(Refused::bad(format!("page_size: at most {PAGE_SIZE_MAX}")));
        }
        Ok(asked)
    }

    /// What is answered, of all rows.
    pub(super) fn of(&self, rows: Vec<Value>) -> Result<Value, Refused> {
        let total = rows.len();
        let mut rows = self.named(rows)?;
        self.order(&mut rows);
        let Some(page) = self.page else {
            return Ok(rows.into_iter().map(|row| self.shown(row)).collect());
        };
        let filtered = rows.len();
        let pages = filtered.div_ceil(self.page_size).max(1);
        if page > pages {
            return Err(Refused::bad(format!(
                "page_out_of_range: page {page} of {pages}, with {} rows each",
                self.page_size
            )));
        }
        let rows = rows.into_iter().skip((page - 1) * self.page_size).take(self.page_size);
        let items: Vec<Value> = rows.map(|row| self.shown(row)).collect();
        Ok(json!({
            "filtered_count": filtered,
            "item_count": items.len(),
            "items": items,
            "page": page,
            "page_count": pages,
            "page_size": self.page_size,
            "total_count": total,
        }))
    }

    /// Those whose names match.
    fn named(&self, rows: Vec<Value>) -> Result<Vec<Value>, Refused> {
        if self.page.is_none() || self.name.is_empty() {
            return Ok(rows);
        }
        let pattern = if self.is_pattern { self.name.clone() } else { regex::escape(&self.name) };
        let pattern = RegexBuilder::new(&pattern)
            .case_insensitive(true)
            .size_limit(PATTERN_BYTES_MAX)
            .build()
            .map_err(|error| Refused::bad(format!("name: {error}")))?;
        let is_meant = |row: &Value| row["name"].as_str().is_some_and(|it| pattern.is_match(it));
        Ok(rows.into_iter().filter(is_meant).collect())
    }

    fn order(&self, rows: &mut [Value]) {
        let Some(sort) = self.sort.as_deref().filter(|sort| !sort.is_empty()) else { return };
        rows.sort_by(|one, other| {
            let order = compared(field(one, sort), field(other, sort));
            if self.reverse { order.reverse() } else { order }
        });
    }

    /// The columns of a row that are asked for.
    fn shown(&self, row: Value) -> Value {
        if self.columns.is_empty() {
            return row;
        }
        let mut shown = Map::new();
        for column in &self.columns {
            let value = field(&row, column);
            if !value.is_null() {
                set(&mut shown, column, value.clone());
            }
        }
        shown.into()
    }
}

/// A field of a row, and of what is in it: `message_stats.publish_details.rate`.
fn field<'r>(row: &'r Value, path: &str) -> &'r Value {
    path.split('.').fold(row, |value, name| &value[name])
}

fn set(shown: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(shown.insert(path.to_owned(), value)),
        Some((name, rest)) => {
            let inner = shown.entry(name).or_insert_with(|| Map::new().into());
            if let Value::Object(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

/// Numbers by their value, texts by their letters; what is missing comes first.
fn compared(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap_or(0.0), other.as_f64().unwrap_or(0.0));
            one.total_cmp(&other)
        }
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (one, other) => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) | Value::Object(_) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Asked {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let pairs: Vec<_> =
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Asked::read(&pairs).unwrap()
    }

    fn rows() -> Vec<Value> {
        let row =
            |name: &str, messages: u32| json!({ "name": name, "in": { "messages": messages } });
        vec![row("b", 10), row("a", 9), row("Bc", 100)]
    }

    #[track_caller]
    fn check(query: &str, expected: &[&str]) {
        let found = asked(query).of(rows()).unwrap();
        let found = found.get("items").unwrap_or(&found);
        let found: Vec<&str> =
            found.as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
        assert_eq!(found, expected, "{query}");
    }

    #[test]
    fn rows_are_filtered_sorted_and_cut() {
        check("", &["b", "a", "Bc"]);
        check("sort=name", &["Bc", "a", "b"]);
        check("sort=in.messages", &["a", "b", "Bc"]);
        check("sort=in.messages&sort_reverse=true", &["Bc", "b", "a"]);
        check("sort=nothing", &["b", "a", "Bc"]);
        check("page=1&name=b", &["b", "Bc"]);
        check("page=1&name=^b$&use_regex=true", &["b"]);
        check("page=1&name=^b$&use_regex=false", &[]);
        // Without a page nothing is filtered, as in RabbitMQ.
        check("name=b", &["b", "a", "Bc"]);
        check("page=2&page_size=2&sort=name", &["b"]);
    }

    #[test]
    fn a_page_says_how_many_there_are() {
        let page = asked("page=1&page_size=1&name=b").of(rows()).unwrap();
        let names =
            ["filtered_count", "item_count", "page", "page_count", "page_size", "total_count"];
        let counts = names.map(|name| page[name].as_u64().unwrap());
        assert_eq!(counts, [2, 1, 1, 2, 1, 3]);
        assert!(asked("page=4&page_size=1").of(rows()).is_err());
        assert_eq!(asked("page=1").of(Vec::new()).unwrap()["page_count"], 1);
    }

    #[test]
    fn columns_are_cut_out_of_what_is_in_rows() {
        let shown = asked("columns=in.messages,none&sort=name").of(rows()).unwrap();
        assert_eq!(shown[1], json!({ "in": { "messages": 9 } }));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let read = |name: &str, value: &str| Asked::read(&[(name.to_owned(), value.to_owned())]);
        for (name, value) in [("page", "0"), ("page", "x"), ("page_size", "501"), ("page", "-1")] {
            assert!(read(name, value).is_err(), "{name}={value}");
        }
        assert!(asked("page=1&name=(&use_regex=true").of(rows()).is_err());
        assert!(asked("page=1&name=(a{1000}){1000}&use_regex=true").of(rows()).is_err());
    }
}
