//! Refuses notes to self, paths of one machine, and large binary files.

use super::{Tree, Violation};

/// Bytes of the largest binary file that may be tracked.
const BLOB_BYTES_MAX: usize = 64 << 10;

/// Notes to self, spelled apart so that this file does not break its own rule.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];
/// The folder in which one machine keeps its files, spelled apart too.
const MACHINE_PATH: &str = concat!("/wo", "rk/");

/// Checks every file.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in &tree.texts {
        for (index, line) in text.lines().enumerate() {
            violations.extend(check_line(line).map(|text| Violation::new(path, index + 1, text)));
        }
    }
    for (path, size) in &tree.blobs {
        if *size > BLOB_BYTES_MAX {
            let text = format!("{size} bytes that are not text, at most {BLOB_BYTES_MAX}");
            violations.push(Violation::new(path, 0, text));
        }
    }
    violations
}

/// What is wrong with a line; `None` if nothing is.
fn check_line(line: &str) -> Option<String> {
    if let Some(note) = NOTES.iter().find(|note| contains_word(line, note)) {
        return Some(format!("'{note}': do it, or open an issue"));
    }
    let at_a_start = |(start, _): (usize, &str)| {
        !line[..start].ends_with(|c: char| c.is_alphanumeric() || "/._-".contains(c))
    };
    line.match_indices(MACHINE_PATH)
        .any(at_a_start)
        .then(|| format!("'{MACHINE_PATH}': a path of one machine"))
}

fn contains_word(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        !line[..start].ends_with(inside) && !line[start + word.len()..].starts_with(inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_one(path: &str, text: &str, lines: &[usize]) {
        let mut tree = Tree::default();
        tree.texts.insert(path.to_string(), text.to_string());
        let found: Vec<usize> = check(&tree).into_iter().map(|v| v.line).collect();
        assert_eq!(found, lines, "{text:?}");
    }

    #[test]
    fn notes_to_self_are_found() {
        let (first, second) = (NOTES[0], NOTES[1]);
        check_one("a.rs", &format!("fine\n// {first}: later\n//{second}"), &[2, 3]);
        check_one("a.rs", &format!("let {first}S = 1; todo lower case"), &[]);
    }

    #[test]
    fn machine_paths_are_found() {
        check_one("a.md", &format!("see `{MACHINE_PATH}main`"), &[1]);
        check_one(
            "a.md",
            &format!("https://example.org{MACHINE_PATH}x and how{MACHINE_PATH}y"),
            &[],
        );
    }

    #[test]
    fn large_blobs_are_found() {
        let mut tree = Tree::default();
        tree.blobs.insert("small.png".to_string(), BLOB_BYTES_MAX);
        tree.blobs.insert("large.png".to_string(), BLOB_BYTES_MAX + 1);
        let found: Vec<String> = check(&tree).into_iter().map(|v| v.path).collect();
        assert_eq!(found, ["large.png"]);
    }
}
