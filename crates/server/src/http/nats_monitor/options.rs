//! The parameters of requests, and what is said of wrong ones, as nats-server does.

use super::super::api::Failure;
use axum::http::StatusCode;
use std::collections::BTreeMap;

/// Most rows in one answer, and the default.
pub(super) const LIMIT: usize = 1_024;

/// The parameters by name; the first of those that are given twice.
#[derive(Debug, Default)]
pub(super) struct Parameters(BTreeMap<String, String>);

/// Which connections are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Those that are open.
    No,
    /// Those that have ended.
    Only,
}

impl Parameters {
    /// Of a query.
    pub(super) fn read(query: Vec<(String, String)>) -> Parameters {
        let mut read = BTreeMap::new();
        for (name, value) in query {
            read.entry(name).or_insert(value);
        }
        Parameters(read)
    }

    /// The text of that name, if there is one.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, Failure> {
        match self.text(name) {
            None | Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
            Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
            Some(_) => Err(wrong(&format!("Error decoding boolean for '{name}'"))),
        }
    }

    /// A number; negative ones are 0.
    pub(super) fn number(&self, name: &str) -> Result<u64, Failure> {
        let Some(text) = self.text(name) else { return Ok(0) };
        let number: i64 =
            text.parse().map_err(|_| wrong(&format!("Error decoding int for '{name}'")))?;
        Ok(number.try_into().unwrap_or(0))
    }

    /// How many rows are skipped, and how many are asked for.
    pub(super) fn page(&self) -> Result<(usize, usize), Failure> {
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (offset, limit) = (count(self.number("offset")?), count(self.number("limit")?));
        Ok((offset, if limit == 0 { LIMIT } else { limit.min(LIMIT) }))
    }

    /// `state`.
    pub(super) fn ended(&self) -> Result<Ended, Failure> {
        let text = self.text("state").unwrap_or("open");
        match text.to_ascii_lowercase().as_str() {
            "open" | "any" | "all" => Ok(Ended::No),
            "closed" => Ok(Ended::Only),
            _ => Err(wrong(&format!("Error decoding state for {text}"))),
        }
    }
}

pub(super) fn wrong(text: &str) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_nats_server_reads_them() {
        let read = |query: &str| {
            let uri = format!("/connz?{query}").parse().unwrap();
            Parameters::read(axum::extract::Query::try_from_uri(&uri).unwrap().0)
        };
        assert_eq!(read("").page().ok(), Some((0, LIMIT)));
        assert_eq!(read("offset=3&limit=5").page().ok(), Some((3, 5)));
        assert_eq!(read("offset=-3&limit=-1").page().ok(), Some((0, LIMIT)));
        assert_eq!(read("limit=99999999").page().ok(), Some((0, LIMIT)));
        assert!(read("limit=x").page().is_err());
        assert_eq!(read("subs=1&subs=0").flag("subs").ok(), Some(true));
        assert_eq!(read("subs=").flag("subs").ok(), Some(false));
        assert!(read("subs=yes").flag("subs").is_err());
        assert_eq!(read("state=CLOSED").ended().ok(), Some(Ended::Only));
        assert_eq!(read("state=all").ended().ok(), Some(Ended::No));
        assert!(read("state=x").ended().is_err());
        assert_eq!(read("acc=a%2Fb").text("acc"), Some("a/b"));
    }
}
