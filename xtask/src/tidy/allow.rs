//! The list of known offenders. It can only shrink: an entry must match what is found exactly, and an
//! entry that is not needed is an error. [`lower`] rewrites it.

use super::Violation;
use std::collections::BTreeMap;
use std::fmt::Write;

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
}

/// Counts the findings of each rule under each path. Only the list allows any.
pub(super) fn count(findings: &[Finding]) -> Vec<Excess> {
    let mut counts: BTreeMap<(&str, &str), Excess> = BTreeMap::new();
    for finding in findings {
        let first = || Excess {
            path: finding.listed.clone(),
            line: if finding.listed == finding.path { finding.line } else { 0 },
            rule: finding.rule.to_string(),
            found: 0,
            limit: 0,
        };
        counts.entry((&finding.listed, finding.rule)).or_insert_with(first).found += 1;
    }
    counts.into_values().collect()
}

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

/// The excesses that the list does not cover, and what is wrong with the list.
pub(super) fn settle(list: &str, entries: &[Entry], excesses: &[Excess]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut used = vec![false; entries.len()];
    for excess in excesses {
        let same = |entry: &Entry| entry.path == excess.path && entry.rule == excess.rule;
        let Some(index) = entries.iter().position(same) else {
            violations.push(unlisted(excess, excess.limit));
            continue;
        };
        used[index] = true;
        let entry = &entries[index];
        if excess.found > entry.count {
            violations.push(unlisted(excess, entry.count));
        } else if excess.found < entry.count {
            let text = format!("{} {}: lower it to {}", entry.path, entry.rule, excess.found);
            violations.push(Violation::new(list, entry.line, text));
        }
    }
    for (entry, _) in entries.iter().zip(&used).filter(|(_, used)| !**used) {
        let text = format!("{} {}: not needed, remove it", entry.path, entry.rule);
        violations.push(Violation::new(list, entry.line, text));
    }
    violations
}

fn unlisted(excess: &Excess, allowed: usize) -> Violation {
    let text = format!("{}: {}, at most {allowed}", excess.rule, excess.found);
    Violation::new(&excess.path, excess.line, text)
}

/// The list with lower counts where less is found. Counts move between the files of a crate as long as the
/// crate's sum for the rule does not grow.
pub(super) fn lower(text: &str, entries: &[Entry], excesses: &[Excess]) -> String {
    let mut sums: BTreeMap<(&str, &str), [usize; 2]> = BTreeMap::new();
    for entry in entries {
        sums.entry((&entry.rule, group(&entry.path))).or_default()[0] += entry.count;
    }
    for excess in excesses {
        sums.entry((&excess.rule, group(&excess.path))).or_default()[1] += excess.found;
    }
    let mut lines = BTreeMap::new();
    for excess in excesses {
        let [listed, found] = sums[&(excess.rule.as_str(), group(&excess.path))];
        let same = |entry: &&Entry| entry.path == excess.path && entry.rule == excess.rule;
        let count = if found <= listed {
            excess.found
        } else {
            entries.iter().find(same).map_or(0, |entry| entry.count.min(excess.found))
        };
        if count > 0 {
            lines.insert((&excess.rule, &excess.path), count);
        }
    }
    let mut lowered = String::new();
    for comment in text.lines().filter(|line| line.starts_with('#')) {
        writeln!(lowered, "{comment}").expect("a String takes any text");
    }
    for ((rule, path), count) in lines {
        writeln!(lowered, "{path} {rule} {count}").expect("a String takes any text");
    }
    lowered
}

/// The first two parts of a path: of `crates/engine/src/a.rs`, `crates/engine`.
pub(super) fn group(path: &str) -> &str {
    let end = path.match_indices('/').nth(1).map_or(path.len(), |(at, _)| at);
    &path[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excess(path: &str, found: usize) -> Excess {
        let (path, rule) = (path.to_string(), "file-lines".to_string());
        Excess { path, line: 7, rule, found, limit: 600 }
    }

    #[track_caller]
    fn check(list: &str, found: Option<usize>, expected: &[&str]) {
        let found: Vec<Excess> = found.map(|found| excess("a.rs", found)).into_iter().collect();
        let (entries, mut violations) = parse("allow.txt", list);
        violations.extend(settle("allow.txt", &entries, &found));
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
        let (entries, _) = parse("allow.txt", list);
        assert_eq!(lower(list, &entries, &found), expected);
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
