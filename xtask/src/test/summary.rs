//! The table of outcomes, and the last line, which says whether all steps passed.

use super::count::Count;

/// How a step ended.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// The step.
    pub(super) name: &'static str,
    /// Its tests.
    pub(super) count: Count,
    /// How long it took.
    pub(super) seconds: f64,
    /// Why it failed; `None` if it passed.
    pub(super) error: Option<String>,
}

impl Outcome {
    /// One row of the table.
    pub(super) fn line(&self) -> String {
        let Count { passed, failed, skipped } = self.count;
        let verdict = if self.error.is_none() { "ok" } else { "FAILED" };
        let mut line = format!("{:11} {verdict:6} {:8.1} s", self.name, self.seconds);
        if passed + failed + skipped > 0 {
            line += &format!("  {passed} passed");
        }
        if failed > 0 {
            line += &format!(", {failed} failed");
        }
        if skipped > 0 {
            line += &format!(", {skipped} skipped");
        }
        if let Some(error) = &self.error {
            line += &format!("  ({error})");
        }
        line
    }
}

/// Prints the table and the last line; that is the error if a step failed.
pub(super) fn report(outcomes: &[Outcome]) -> Result<(), String> {
    println!();
    for outcome in outcomes {
        println!("{}", outcome.line());
    }
    println!("{}", verdict(outcomes)?);
    Ok(())
}

fn verdict(outcomes: &[Outcome]) -> Result<String, String> {
    let total = outcomes.iter().fold(Count::default(), |sum, outcome| sum.plus(outcome.count));
    let seconds: f64 = outcomes.iter().map(|outcome| outcome.seconds).sum();
    let failed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| outcome.error.is_some())
        .map(|outcome| outcome.name)
        .collect();
    let tests = format!("{} tests passed in {seconds:.0} s", total.passed);
    if failed.is_empty() {
        Ok(format!("PASSED: {} steps, {tests}", outcomes.len()))
    } else {
        let (failed_tests, steps) = (total.failed, failed.join(", "));
        Err(format!("FAILED: {steps}; {failed_tests} tests failed, {tests}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &'static str, passed: usize, failed: usize) -> Outcome {
        let error = (failed > 0).then(|| format!("{failed} tests failed"));
        Outcome { name, count: Count { passed, failed, skipped: 0 }, seconds: 1.25, error }
    }

    #[test]
    fn the_tests_pass_only_if_every_step_does() {
        let good = [outcome("unit", 10, 0), outcome("go", 5, 0)];
        assert_eq!(verdict(&good).unwrap(), "PASSED: 2 steps, 15 tests passed in 2 s");
        let bad = [outcome("unit", 10, 0), outcome("go", 5, 2)];
        assert_eq!(
            verdict(&bad).unwrap_err(),
            "FAILED: go; 2 tests failed, 15 tests passed in 2 s"
        );
    }

    #[test]
    fn a_row_shows_verdict_time_and_tests() {
        assert_eq!(outcome("tidy", 0, 0).line(), "tidy        ok          1.2 s");
        let row = outcome("go", 5, 2).line();
        assert_eq!(row, "go          FAILED      1.2 s  5 passed, 2 failed  (2 tests failed)");
    }
}
