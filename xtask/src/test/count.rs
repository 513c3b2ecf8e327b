//! Counts tests from what test programs print.

/// Tests that passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Passed.
    pub(crate) passed: usize,
    /// Failed.
    pub(crate) failed: usize,
    /// Skipped by the test itself.
    pub(crate) skipped: usize,
}

impl Count {
    /// A line of `cargo test`: `test result: ok. 3 passed; 0 failed; 1 ignored; ...`. Ignored tests belong to
    /// another step and are not counted.
    pub(super) fn cargo_line(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        let rest = rest.split_once(". ").map_or("", |(_, rest)| rest);
        for part in rest.split("; ") {
            match part.split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    /// A line of a client suite: `pass NAME`, `FAIL NAME: why` or `skip NAME: why`.
    pub(super) fn suite_line(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("pass", _)) => self.passed += 1,
            Some(("FAIL", _)) => self.failed += 1,
            Some(("skip", _)) => self.skipped += 1,
            _ => {}
        }
    }

    /// A line of `go test -v`; tests within tests are indented and not counted.
    pub(super) fn go_line(&mut self, line: &str) {
        match line.split_once(": ") {
            Some(("--- PASS", _)) => self.passed += 1,
            Some(("--- FAIL", _)) => self.failed += 1,
            Some(("--- SKIP", _)) => self.skipped += 1,
            _ => {}
        }
    }

    /// The error if tests failed.
    pub(super) fn complaint(&self) -> Option<String> {
        (self.failed > 0).then(|| format!("{} tests failed", self.failed))
    }

    /// The sum of both.
    pub(super) fn plus(self, other: Count) -> Count {
        Count {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(read: fn(&mut Count, &str), text: &str, expected: [usize; 3]) {
        let mut count = Count::default();
        text.lines().for_each(|line| read(&mut count, line));
        assert_eq!([count.passed, count.failed, count.skipped], expected);
        assert_eq!(count.complaint().is_some(), count.failed > 0);
    }

    #[test]
    fn cargo_results_are_added() {
        let text = "running 3 tests\ntest a ... ok\n\
            test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0s\n\
            test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        check(Count::cargo_line, text, [15, 2, 0]);
    }

    #[test]
    fn suite_lines_are_counted() {
        check(
            Count::suite_line,
            "pass a b\nFAIL c: passed\nskip d: no\nnote pass\npass",
            [1, 1, 1],
        );
    }

    #[test]
    fn go_lines_are_counted() {
        let text = "=== RUN A\n--- PASS: A (0.1s)\n    --- PASS: A/b (0s)\n\
            --- FAIL: B (1s)\n--- SKIP: C (0s)\nPASS";
        check(Count::go_line, text, [1, 1, 1]);
    }
}
