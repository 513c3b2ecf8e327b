//! Counts the instructions of a message by valgrind, which gives the same number on a busy machine as on an
//! idle one, and compares them with bounds.

use super::count::Count;
use crate::layout;
use std::path::Path;
use std::process::Command;

/// Messages of the shorter of two runs; the longer one has twice that number.
const MESSAGES: u64 = 1_280;

/// Kinds of traffic of `crates/instructions`, with the most instructions of a message of
/// each: a tenth above what it took when the bound was set. Lower them when something becomes cheaper.
const BOUNDS: &[(&str, u64)] = &[
    ("nats", 300),
    ("nats-fanout-10", 640),
    ("nats-among-1000", 300),
    ("nats-among-1000000", 300),
    // One bound for all three: flat within a tenth of the first.
    ("nats-spread", 8_300),
    ("nats-spread-among-1000", 8_300),
    ("nats-spread-among-1000000", 8_300),
    ("nats-across", 590),
    ("amqp", 2_050),
    ("amqp-away", 5_050),
    // One bound for both: a thousand selectors on one property cost what one does.
    ("amqp-selector", 3_200),
    ("amqp-selectors-1000", 3_200),
    ("amqp10", 7_200),
    // As above.
    ("amqp10-selector", 8_600),
    ("amqp10-selectors-1000", 8_600),
];

/// Counts the instructions of each kind and compares them with its bound.
pub(super) fn run(root: &Path, count: &mut Count) -> Result<(), String> {
    let program = layout::target_folder(root)?.join("release/angarium-instructions");
    for (kind, bound) in BOUNDS {
        // In parallel: a million subscriptions take half a minute.
        let (shorter, longer) = std::thread::scope(|scope| {
            let shorter = scope.spawn(|| executed(&program, kind, MESSAGES));
            let longer = executed(&program, kind, 2 * MESSAGES);
            (shorter.join().expect("it does not panic"), longer)
        });
        let (shorter, longer) = (shorter?, longer?);
        let each = longer.saturating_sub(shorter) / MESSAGES;
        let verdict = if each <= *bound && each > 0 { "pass" } else { "FAIL" };
        let line = format!("{verdict} {kind}: {each} instructions a message, at most {bound}");
        println!("{line}");
        count.suite_line(&line);
    }
    Ok(())
}

/// The instructions of one run.
fn executed(program: &Path, kind: &str, messages: u64) -> Result<u64, String> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    let output = valgrind.args([kind, &messages.to_string()]).output();
    let output = output.map_err(|error| format!("cannot start 'valgrind': {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("valgrind failed ({}): {said}", output.status));
    }
    collected(&said).ok_or_else(|| format!("valgrind does not say what it counted: {said}"))
}

/// Reads a line such as `==42== Collected : 123456`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::collected;

    #[test]
    fn what_was_counted_is_found() {
        let said = "==42== Events    : Ir\n==42== Collected : 123456\n==42== \n";
        assert_eq!(collected(said), Some(123_456));
        assert_eq!(collected("==42== nothing\n"), None);
        assert_eq!(collected("==42== Collected : many\n"), None);
    }
}
