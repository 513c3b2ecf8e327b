//! Scenarios as text.
//!
//! ```text
//! ## queue.declare passive, missing      a name begins a scenario
//! = a reason why the brokers may differ  optional
//! @ option                               optional: how connections begin
//! each: b 1 | B 1 | s 1                  optional: a scenario for each; `%` stands for it
//! queue.declare queue=$q passive         a step on connection `a`
//! b: queue.delete queue=$q               a step on another connection
//! wait 500                               milliseconds
//! b: disconnect                          closes the socket
//! # a comment
//! ```
//!
//! `$name` is a name of this scenario alone, such as `d17-name`.

/// Frames to send, and what to compare.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scenario {
    /// Its file and name.
    pub(super) name: String,
    /// Why the brokers' answers may differ.
    pub(super) reason: Option<String>,
    /// How its connections begin, in the protocol's words.
    pub(super) options: Vec<String>,
    pub(super) steps: Vec<Step>,
}

/// One step of a scenario.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The connection's name.
    pub(super) connection: char,
    /// What it does.
    pub(super) action: Action,
    /// The step as it is written.
    pub(super) text: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Sends this, in the protocol's words.
    Send(String),
    /// Waits for this many milliseconds.
    Wait(u64),
    Disconnect,
}

/// All scenarios of a file.
pub(super) fn parse(file: &str, text: &str) -> Result<Vec<Scenario>, String> {
    let mut scenarios = Vec::new();
    let mut blocks = text.split("\n## ");
    blocks.next();
    for block in blocks {
        let values = block.lines().skip(1).find_map(|line| line.strip_prefix("each:"));
        for value in values.map_or(vec![""], |values| values.split(" | ").collect()) {
            scenarios.push(one(file, block, value.trim())?);
        }
    }
    Ok(scenarios)
}

/// The scenario of a block, with this value for `%`.
fn one(file: &str, block: &str, value: &str) -> Result<Scenario, String> {
    let name = block.lines().next().unwrap_or_default().replace('%', value);
    let mut scenario = Scenario { name: format!("{file}: {name}"), ..Scenario::default() };
    for line in block.lines().skip(1) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("each:") {
            continue;
        }
        let line = &line.replace('%', value);
        if let Some(reason) = line.strip_prefix("= ") {
            scenario.reason = Some(reason.to_owned());
        } else if let Some(option) = line.strip_prefix("@ ") {
            scenario.options.push(option.to_owned());
        } else {
            let step =
                step(line).ok_or_else(|| format!("{}: '{line}' is no step", scenario.name))?;
            scenario.steps.push(step);
        }
    }
    Ok(scenario)
}

fn step(line: &str) -> Option<Step> {
    let (connection, rest) = match line.as_bytes() {
        [name @ b'a'..=b'z', b':', b' ', ..] => (char::from(*name), line[3..].trim()),
        _ => ('a', line),
    };
    let action = match rest.split_once(' ') {
        Some(("wait", millis)) => Action::Wait(millis.parse().ok()?),
        None if rest == "disconnect" => Action::Disconnect,
        _ => Action::Send(rest.to_owned()),
    };
    Some(Step { connection, action, text: line.to_owned() })
}
