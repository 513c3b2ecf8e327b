//! Transcripts: lines that clients send (`>`) and lines that they must get (`<`), against the real
//! engine.
//!
//! A letter in front names the connection; without one it is `a`. Some lines are not sent but happen:
//! `wait` and milliseconds, `told` (by the broker of itself: clients, seconds), `cut`, `blocked`,
//! `unblocked` and `shutdown`, each with why; `nothing`.
//! After what clients get comes what the log says of refused logins (`log:`).

use super::host::TestHost;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the lines of a transcript stand for, with bytes of some protocol.
pub(crate) trait Speech {
    /// Accepts the connection of that name, and has it say what transcripts leave out.
    fn connect(&self, host: &mut TestHost, name: char) -> usize;
    /// Gives a connection what a line stands for.
    fn send(&self, host: &mut TestHost, name: char, number: usize, line: &str);
    /// What a connection got, as lines.
    fn lines(&self, name: char, output: &[u8]) -> Vec<String>;
    /// A line of the log, without what is random.
    fn shown(&self, line: String) -> String {
        line
    }
}

/// A transcript that is being played.
pub(crate) struct Play<S> {
    host: TestHost,
    speech: S,
    numbers: BTreeMap<char, usize>,
}

impl<S: Speech> Play<S> {
    pub(crate) fn new(host: TestHost, speech: S) -> Play<S> {
        Play { host, speech, numbers: BTreeMap::new() }
    }

    /// Has a connection send a line.
    pub(crate) fn send(&mut self, name: char, line: &str) {
        let Play { host, speech, numbers } = self;
        let number = *numbers.entry(name).or_insert_with(|| speech.connect(host, name));
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "nothing" => {}
            "wait" => host.wait(Duration::from_millis(rest.parse().unwrap())),
            "told" => {
                let (connected, seconds) = rest.split_once(' ').unwrap();
                let uptime = Duration::from_secs(seconds.parse().unwrap());
                host.tell_broker_topics(connected.parse().unwrap(), uptime);
            }
            "cut" => host.cut(number),
            "blocked" => host.blocked(Some(rest)),
            "unblocked" => host.blocked(None),
            "shutdown" => host.shut_down(number, rest),
            _ => speech.send(host, name, number, line),
        }
        host.turn_ends();
    }

    /// What all connections got since the last call.
    pub(crate) fn got(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for (&name, &number) in &self.numbers {
            let prefix = if name == 'a' { String::new() } else { name.to_string() };
            let mut got = self.speech.lines(name, &self.host.output(number));
            let closed = self.host.closed(number).map(|reason| format!("closed: {reason}"));
            got.extend(closed.map(|line| self.speech.shown(line)));
            lines.extend(got.into_iter().map(|line| format!("{prefix}< {line}")));
        }
        lines.extend(self.host.refused_logins().into_iter().map(|why| format!("log: {why}")));
        lines
    }
}

/// Plays a transcript: all connections must get what it says, when it says so.
pub(crate) fn check<S: Speech>(transcript: &str, mut play: Play<S>) {
    let mut seen = Vec::new();
    for line in transcript.lines().map(str::trim) {
        if let Some((name, sent)) = line.split_once("> ")
            && name.len() <= 1
        {
            seen.push(line.to_owned());
            play.send(name.chars().next().unwrap_or('a'), sent);
            seen.extend(play.got());
        }
    }
    let expected: Vec<_> =
        transcript.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(seen.join("\n"), expected.join("\n"));
}
