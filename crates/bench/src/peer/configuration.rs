//! How a broker was started, as text that allows to repeat it, without secrets. Independent of
//! processes.

use std::ffi::OsString;
use std::fmt::Write;

/// Replaces secrets.
const HIDDEN: &str = "***";
/// Parts of the names of variables and flags whose values are secret.
const SECRETS: [&str; 6] = ["PASS", "SECRET", "TOKEN", "COOKIE", "CREDENTIAL", "KEY"];

/// What a broker was started with.
#[derive(Debug, Clone, Default)]
pub(super) struct Start<'a> {
    /// Variables set for it, and inherited ones that it reads.
    pub(super) environment: Vec<(String, String)>,
    /// The command line that started it.
    pub(super) command: &'a [String],
    /// The command line of its process, which a start script may have extended.
    pub(super) running: &'a [String],
    /// Its configuration files and how they were created.
    pub(super) files: Option<&'a str>,
}

impl Start<'_> {
    /// In shell syntax: one variable per line and the command; then the process's command line, and the
    /// files.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.environment {
            writeln!(text, "{name}={}", quoted(value)).expect("a String takes everything");
        }
        text += &line(self.command);
        if !self.running.is_empty() && self.running != self.command {
            text += &format!("\n# which runs as\n{}", line(self.running));
        }
        if let Some(files) = self.files {
            text += &format!("\n{files}");
        }
        text
    }
}

/// The variables among `all` that any broker reads, and those whose names begin with one of `own`, sorted.
pub(super) fn inherited(
    own: &[String],
    all: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(String, String)> {
    let mut prefixes: Vec<&str> = own.iter().map(String::as_str).collect();
    prefixes.extend(["MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD", "LD_LIBRARY_PATH"]);
    let is_looked_at = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let text = |it: OsString| it.to_string_lossy().into_owned();
    let mut found: Vec<(String, String)> = all
        .map(|(name, value)| (text(name), text(value)))
        .filter(|(name, _)| is_looked_at(name))
        .map(|(name, value)| {
            let secret = is_secret(&name) || value.contains("://") && value.contains('@');
            (name, if secret { HIDDEN.to_owned() } else { value })
        })
        .collect();
    found.sort();
    found
}

/// A command line in shell syntax.
pub(super) fn line(words: &[String]) -> String {
    let mut hidden = false;
    let shown = words.iter().map(|word| {
        let is_flag = word.starts_with('-');
        if std::mem::replace(&mut hidden, false) && !is_flag {
            return HIDDEN.to_owned();
        }
        match word.split_once('=') {
            Some((name, _)) if is_flag && is_secret(name) => format!("{name}={HIDDEN}"),
            _ => {
                hidden = is_flag && is_secret(word);
                quoted(word)
            }
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn is_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    SECRETS.iter().any(|secret| name.contains(secret))
}

fn quoted(word: &str) -> String {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(&octet);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Kind;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_start_is_told_as_a_shell_takes_it() {
        let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let (command, running) = (words("/bin/server -c a.conf"), words("beam -s boot"));
        let mut start = Start { command: &command, ..Start::default() };
        assert_eq!(start.describe(), "/bin/server -c a.conf");
        start.running = &command;
        assert_eq!(start.describe(), "/bin/server -c a.conf");
        start.files = Some("port 1\n");
        assert_eq!(start.describe(), "/bin/server -c a.conf\nport 1\n");
        start.environment = vec![set("A", "1"), set("B", "it's {1,2}"), set("C", "")];
        start.running = &running;
        assert_eq!(
            start.describe(),
            "A=1\nB='it'\\''s {1,2}'\nC=''\n/bin/server -c a.conf\n# which runs as\nbeam -s boot\nport 1\n"
        );
    }

    #[test]
    fn a_broker_has_those_of_our_variables_that_it_looks_at() {
        let ours = [
            ("RABBITMQ_IO_THREAD_POOL_SIZE", "4"),
            ("HOME", "/root"),
            ("ERL_FLAGS", "+S 1"),
            ("RABBITMQ_DEFAULT_PASS", "p"),
            ("LD_PRELOAD", "libjemalloc.so"),
            ("GOGC", "50"),
            ("JAVA_OPTS", "-Xmx2G"),
            ("ANGARIUM_SHARDS", "1"),
            ("NATS_URL", "nats://u:p@h"),
        ];
        let check = |kind: Kind, wanted: &[(&str, &str)]| {
            let all = ours.map(|(name, value)| (name.into(), value.into()));
            let found = inherited(kind.environment(), all.into_iter());
            let found: Vec<(&str, &str)> =
                found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found, wanted, "{}", kind.name());
        };
        let preload = ("LD_PRELOAD", "libjemalloc.so");
        check(
            Kind::RabbitMq,
            &[
                ("ERL_FLAGS", "+S 1"),
                preload,
                ("RABBITMQ_DEFAULT_PASS", "***"),
                ("RABBITMQ_IO_THREAD_POOL_SIZE", "4"),
            ],
        );
        check(Kind::Nats, &[("GOGC", "50"), preload, ("NATS_URL", "***")]);
        check(Kind::Angarium, &[("ANGARIUM_SHARDS", "1"), preload]);
        check(Kind::Artemis, &[("JAVA_OPTS", "-Xmx2G"), preload]);
        check(Kind::ActiveMq, &[("JAVA_OPTS", "-Xmx2G"), preload]);
        check(Kind::Redis, &[preload]);
        check(Kind::Mosquitto, &[preload]);
    }

    #[test]
    fn what_is_secret_is_hidden() {
        let check = |text: &str, wanted: &str| assert_eq!(line(&words(text)), wanted);
        check("create --user a --password b --host c", "create --user a --password *** --host c");
        check("create --password --host c", "create --password --host c");
        check("java -Dstore.password=b -Xmx1G", "java -Dstore.password=*** -Xmx1G");
        check("beam -setcookie abc -s boot", "beam -setcookie *** -s boot");
        check("redis-server --requirepass b", "redis-server --requirepass ***");
    }
}
