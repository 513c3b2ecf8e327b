//! The lists of known offenders. They can only shrink: an entry must match what is found exactly, and an
//! entry that is not needed is an error. [`List::lower`] rewrites them.

use super::{Tree, Violation};
use std::collections::BTreeMap;

/// One place that breaks a rule of which known offenders are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The rule.
    pub(super) rule: &'static str,
    /// The file.
    pub(super) path: String,
    /// The line, counted from 1; 0 for the whole file.
    pub(super) line: usize,
    /// What is wrong.
    pub(super) text: String,
    /// The path that it is listed under: the file's, or its crate's.
    pub(super) listed: String,
}

impl Finding {
    /// One that counts for its file.
    pub(super) fn in_file(rule: &'static str, path: &str, line: usize, text: String) -> Finding {
        Finding { rule, path: path.to_string(), line, text, listed: path.to_string() }
    }
}

/// More of something than a rule allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Excess {
    /// The file.
    pub(super) path: String,
    /// The first line concerned, counted from 1.
    pub(super) line: usize,
    /// The rule as the list has it: `file-lines`, `long-lines`, `function-lines:name`.
    pub(super) rule: String,
    /// The count or length that was found.
    pub(super) found: usize,
    /// The largest that is allowed.
    pub(super) limit: usize,
    /// More about it.
    pub(super) detail: String,
}

impl Excess {
    pub(super) fn new(path: &str, line: usize, rule: &str, found: usize, limit: usize) -> Excess {
        let (path, rule, detail) = (path.to_string(), rule.to_string(), String::new());
        Excess { path, line, rule, found, limit, detail }
    }

    fn beyond(&self, allowed: usize) -> Violation {
        let text = format!("{}: {}, at most {allowed}{}", self.rule, self.found, self.detail);
        Violation::new(&self.path, self.line, text)
    }
}

/// Counts the findings of each rule under each path. Only the list allows any.
pub(super) fn count(findings: &[Finding]) -> Vec<Excess> {
    let mut counts: BTreeMap<(&str, &str), Excess> = BTreeMap::new();
    for finding in findings {
        let line = if finding.listed == finding.path { finding.line } else { 0 };
        let first = || Excess::new(&finding.listed, line, finding.rule, 0, 0);
        counts.entry((&finding.listed, finding.rule)).or_insert_with(first).found += 1;
    }
    counts.into_values().collect()
}

/// One line of a list: `path rule count`, or `path count  # reason` where all lines are of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    line: usize,
    pub(super) path: String,
    rule: String,
    count: usize,
    reason: String,
}

/// A file with known offenders.
pub(super) struct List {
    /// The file.
    pub(super) path: &'static str,
    /// The rule of all lines, which then have reasons.
    pub(super) rule: Option<&'static str>,
}

impl List {
    pub(super) fn text<'a>(&self, tree: &'a Tree) -> &'a str {
        tree.texts.get(self.path).map_or("", String::as_str)
    }

    /// Reads the list; lines that start with `#` say why.
    pub(super) fn parse(&self, text: &str) -> (Vec<Entry>, Vec<Violation>) {
        let (mut entries, mut malformed) = (Vec::new(), Vec::new());
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            match self.entry(index + 1, line) {
                Some(entry) => entries.push(entry),
                None => {
                    let form = self.rule.map_or("path rule count", |_| "path count  # reason");
                    malformed.push(Violation::new(self.path, index + 1, format!("not '{form}'")));
                }
            }
        }
        (entries, malformed)
    }

    fn entry(&self, line: usize, text: &str) -> Option<Entry> {
        let (row, reason) = text.split_once('#').unwrap_or((text, ""));
        let reason = reason.trim().to_string();
        let parts: Vec<&str> = row.split_whitespace().collect();
        let (path, rule, count) = match (parts.as_slice(), self.rule) {
            ([path, count], Some(rule)) if !reason.is_empty() => (path, rule, count),
            ([path, rule, count], None) => (path, *rule, count),
            _ => return None,
        };
        let count = count.parse().ok()?;
        Some(Entry { line, path: (*path).to_string(), rule: rule.to_string(), count, reason })
    }

    /// The excesses that the list does not cover, and what is wrong with the list.
    pub(super) fn settle(&self, entries: &[Entry], excesses: &[Excess]) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut used = vec![false; entries.len()];
        for excess in excesses {
            let Some(index) = entries.iter().position(|entry| entry.is_of(excess)) else {
                violations.push(excess.beyond(excess.limit));
                continue;
            };
            used[index] = true;
            let entry = &entries[index];
            if excess.found > entry.count {
                violations.push(excess.beyond(entry.count));
            } else if excess.found < entry.count {
                let text = format!("{} {}: lower it to {}", entry.path, entry.rule, excess.found);
                violations.push(Violation::new(self.path, entry.line, text));
            }
        }
        for (entry, _) in entries.iter().zip(&used).filter(|(_, used)| !**used) {
            let text = format!("{} {}: not needed, remove it", entry.path, entry.rule);
            violations.push(Violation::new(self.path, entry.line, text));
        }
        violations
    }

    /// The list with lower counts where less is found. Counts move between the files of a crate as long as
    /// the crate's sum for the rule does not grow.
    pub(super) fn lower(&self, text: &str, excesses: &[Excess]) -> String {
        let (entries, _) = self.parse(text);
        let mut sums: BTreeMap<(&str, &str), [usize; 2]> = BTreeMap::new();
        for entry in &entries {
            sums.entry((&entry.rule, group(&entry.path))).or_default()[0] += entry.count;
        }
        for excess in excesses {
            sums.entry((&excess.rule, group(&excess.path))).or_default()[1] += excess.found;
        }
        let mut lines = BTreeMap::new();
        for excess in excesses {
            let Excess { path, rule, found, .. } = excess;
            let entry = entries.iter().find(|entry| entry.is_of(excess));
            let [sum_listed, sum_found] = sums[&(rule.as_str(), group(path))];
            let count = match entry {
                _ if sum_found <= sum_listed => *found,
                entry => entry.map_or(0, |entry| entry.count.min(*found)),
            };
            let reason = entry.map_or("not undone yet", |entry| &entry.reason);
            if count > 0 {
                lines.insert(
                    (rule, path),
                    match self.rule {
                        Some(_) => format!("{path} {count}  # {reason}\n"),
                        None => format!("{path} {rule} {count}\n"),
                    },
                );
            }
        }
        let comments = text.lines().filter(|line| line.starts_with('#'));
        let comments = comments.map(|line| format!("{line}\n"));
        comments.chain(lines.into_values()).collect()
    }
}

impl Entry {
    fn is_of(&self, excess: &Excess) -> bool {
        self.path == excess.path && self.rule == excess.rule
    }
}

/// The first two parts of a path: of `crates/engine/src/a.rs`, `crates/engine`.
fn group(path: &str) -> &str {
    let end = path.match_indices('/').nth(1).map_or(path.len(), |(at, _)| at);
    &path[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: List = List { path: "allow.txt", rule: None };

    fn excess(path: &str, found: usize) -> Excess {
        Excess::new(path, 7, "file-lines", found, 600)
    }

    #[track_caller]
    fn check(list: &str, found: Option<usize>, expected: &[&str]) {
        let found: Vec<Excess> = found.map(|found| excess("a.rs", found)).into_iter().collect();
        let (entries, mut violations) = LIST.parse(list);
        violations.extend(LIST.settle(&entries, &found));
        let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_listed_excess_passes_and_an_unlisted_one_does_not() {
        check("# reason\na.rs file-lines 700\n", Some(700), &[]);
        check("", Some(700), &["a.rs:7: file-lines: 700, at most 600"]);
        check("b.rs file-lines 9", None, &["allow.txt:1: b.rs file-lines: not needed, remove it"]);
    }

    #[test]
    fn the_list_only_shrinks() {
        check("a.rs file-lines 700", Some(701), &["a.rs:7: file-lines: 701, at most 700"]);
        check("a.rs file-lines 700", Some(699), &["allow.txt:1: a.rs file-lines: lower it to 699"]);
    }

    #[test]
    fn a_malformed_line_is_found() {
        check("a.rs 700", None, &["allow.txt:1: not 'path rule count'"]);
        check("a.rs file-lines many", None, &["allow.txt:1: not 'path rule count'"]);
    }

    #[track_caller]
    fn check_lowered(list: &str, found: &[(&str, usize)], expected: &str) {
        let found: Vec<Excess> = found.iter().map(|(path, found)| excess(path, *found)).collect();
        assert_eq!(LIST.lower(list, &found), expected);
    }

    #[test]
    fn entries_are_lowered_and_removed() {
        let list = "# why\ncrates/a/x.rs file-lines 9\ncrates/a/y.rs file-lines 8\n";
        let lowered = "# why\ncrates/a/x.rs file-lines 7\n";
        check_lowered(list, &[("crates/a/x.rs", 7)], lowered);
        check_lowered(list, &[], "# why\n");
    }

    #[test]
    fn entries_move_with_their_files_and_never_grow() {
        let list = "crates/a/x.rs file-lines 9\n";
        check_lowered(list, &[("crates/a/z.rs", 9)], "crates/a/z.rs file-lines 9\n");
        check_lowered(list, &[("crates/a/z.rs", 10)], "");
        check_lowered(list, &[("crates/b/z.rs", 9)], "");
        check_lowered(
            list,
            &[("crates/a/x.rs", 8), ("crates/a/z.rs", 2)],
            "crates/a/x.rs file-lines 8\n",
        );
    }

    #[test]
    fn findings_are_counted_by_what_they_are_listed_under() {
        let finding = |line| Finding::in_file("style", "crates/a/x.rs", line, String::new());
        let counted = count(&[finding(3), finding(5)]);
        assert_eq!((counted[0].line, counted[0].found), (3, 2));
        let of_crate = Finding { listed: "crates/a".to_string(), ..finding(3) };
        let counted = count(&[of_crate, finding(5)]);
        let found: Vec<_> = counted.iter().map(|it| (it.path.as_str(), it.line)).collect();
        assert_eq!(found, [("crates/a", 0), ("crates/a/x.rs", 5)]);
    }
}
