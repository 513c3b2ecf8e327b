//! Phrases that comments and docs avoid: they say what a thing is, in plain English.

use super::Tree;
use super::allow::Finding;
use super::source;

/// The rule's name in the list of known offenders, which counts by crate.
pub(super) const RULE: &str = "comment-style";

/// Phrases to avoid.
const PHRASES: &[&str] = &[
    "so many",
    "knows not",
    "knows nothing",
    "know nothing of whom",
    "for want of",
    "but for",
    "has it that",
    "of whom",
    "whoever",
    "somebody who",
    "nobody who",
    "what comes of",
    "is told",
    "are told",
    "was tried",
];

/// Every comment line with such a phrase.
pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.rust() {
        let Some(folder) = folder(path) else { continue };
        for (index, line) in source::split(text).comments.lines().enumerate() {
            if let Some(phrase) = phrase(line) {
                let text = format!("'{phrase}': say it plainly");
                let finding = Finding::in_file(RULE, path, index + 1, text);
                found.push(Finding { listed: folder.to_string(), ..finding });
            }
        }
    }
    found
}

fn phrase(comment: &str) -> Option<&'static str> {
    let comment = comment.to_lowercase();
    let is_word = |(start, phrase): (usize, &str)| {
        let inside = |c: char| c.is_alphanumeric();
        !comment[..start].ends_with(inside) && !comment[start + phrase.len()..].starts_with(inside)
    };
    let found = PHRASES.iter().find(|phrase| comment.match_indices(**phrase).any(is_word));
    found.copied()
}

/// The crate's folder.
fn folder(path: &str) -> Option<&str> {
    if path.starts_with("xtask/") {
        return Some("xtask");
    }
    let inner = path.strip_prefix("crates/")?;
    let end = inner.find('/')?;
    Some(&path[.."crates/".len() + end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_counted_by_crate() {
        let mut tree = Tree::default();
        let text =
            "//! So many of them.\nlet x = \"so many\"; // for want of a word\n// so manyfold\n";
        tree.texts.insert("crates/a/src/b.rs".to_string(), text.to_string());
        tree.texts.insert("docs/b.rs".to_string(), text.to_string());
        let found: Vec<_> = find(&tree).into_iter().map(|it| (it.listed, it.line)).collect();
        assert_eq!(found, [("crates/a".to_string(), 1), ("crates/a".to_string(), 2)]);
    }
}
