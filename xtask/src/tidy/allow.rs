//! The list of known excesses. It can only shrink: an entry must match what is there exactly, and an
//! entry that is no longer needed is an error.

use super::Violation;
use super::shape::Excess;

/// One line of the list: `path rule count`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    line: usize,
    path: String,
    rule: String,
    count: usize,
}

/// Reads the list; lines that start with `#` say why.
pub(super) fn parse(list: &str, text: &str) -> (Vec<Entry>, Vec<Violation>) {
    let (mut entries, mut malformed) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let parts: Vec<&str> = line.split_whitespace().collect();
        match parts.as_slice() {
            [path, rule, count] if count.parse::<usize>().is_ok() => entries.push(Entry {
                line: line_number,
                path: (*path).to_string(),
                rule: (*rule).to_string(),
                count: count.parse().unwrap_or_default(),
            }),
            _ => malformed.push(Violation::new(list, line_number, "not 'path rule count'")),
        }
    }
    (entries, malformed)
}

/// What remains of the excesses after the list, and what is wrong with the list.
pub(super) fn settle(list: &str, entries: &[Entry], excesses: Vec<Excess>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut used = vec![false; entries.len()];
    for excess in excesses {
        let same = |entry: &Entry| entry.path == excess.path && entry.rule == excess.rule;
        let Some(index) = entries.iter().position(same) else {
            violations.push(unlisted(&excess));
            continue;
        };
        used[index] = true;
        let entry = &entries[index];
        if excess.found > entry.count {
            violations.push(unlisted(&excess));
        } else if excess.found < entry.count {
            let text = format!("{} {}: lower it to {}", entry.path, entry.rule, excess.found);
            violations.push(Violation::new(list, entry.line, text));
        }
    }
    for (entry, _) in entries.iter().zip(&used).filter(|(_, used)| !**used) {
        let text = format!("{} {}: no longer needed, remove it", entry.path, entry.rule);
        violations.push(Violation::new(list, entry.line, text));
    }
    violations
}

fn unlisted(excess: &Excess) -> Violation {
    let text = format!("{}: {}, at most {}", excess.rule, excess.found, excess.limit);
    Violation::new(&excess.path, excess.line, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, found: Option<usize>, expected: &[&str]) {
        let excess = |found| Excess {
            path: "a.rs".to_string(),
            line: 7,
            rule: "file-lines".to_string(),
            found,
            limit: 600,
        };
        let (entries, mut violations) = parse("allow.txt", list);
        violations.extend(settle("allow.txt", &entries, found.map(excess).into_iter().collect()));
        let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_listed_excess_passes_and_an_unlisted_one_does_not() {
        check("# reason\na.rs file-lines 700\n", Some(700), &[]);
        check("", Some(700), &["a.rs:7: file-lines: 700, at most 600"]);
        check(
            "b.rs file-lines 9",
            None,
            &["allow.txt:1: b.rs file-lines: no longer needed, remove it"],
        );
    }

    #[test]
    fn the_list_only_shrinks() {
        check("a.rs file-lines 700", Some(701), &["a.rs:7: file-lines: 701, at most 600"]);
        check("a.rs file-lines 700", Some(699), &["allow.txt:1: a.rs file-lines: lower it to 699"]);
    }

    #[test]
    fn a_malformed_line_is_found() {
        check("a.rs 700", None, &["allow.txt:1: not 'path rule count'"]);
        check("a.rs file-lines many", None, &["allow.txt:1: not 'path rule count'"]);
    }
}
