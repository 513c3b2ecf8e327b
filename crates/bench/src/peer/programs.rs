//! Where the brokers' programs are, and which versions they have.

use super::kind::{Kind, unknown};
use super::rabbitmq::{self, RabbitMq};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

impl Kind {
    /// Its program, if it is installed.
    pub fn find(self, programs: &Programs) -> Option<PathBuf> {
        if let Some(path) = programs.of(self) {
            return Some(path.to_owned());
        }
        match self {
            Kind::Angarium => {
                let own = env::current_exe().ok()?;
                if own.file_stem()?.to_str()? == "angarium" {
                    return Some(own);
                }
                let beside = own.with_file_name("angarium");
                beside.exists().then_some(beside).or_else(|| on_path("angarium"))
            }
            Kind::RabbitMq => RabbitMq::is_installed().then(|| PathBuf::from(rabbitmq::SCRIPT)),
            _ => on_path(&self.broker().program),
        }
    }

    /// The version that it reports.
    pub fn version(self, program: &Path) -> String {
        let output = match self {
            Kind::RabbitMq => Command::new("dpkg-query")
                .args(["--show", "--showformat=${Version}", "rabbitmq-server"])
                .output(),
            _ => Command::new(program).arg(&self.broker().version).output(),
        };
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        first_version(&text.unwrap_or_default()).unwrap_or_else(|| "of unknown version".to_owned())
    }
}

/// The first word that begins with a digit, after an optional `v` or `v=`.
pub(super) fn first_version(text: &str) -> Option<String> {
    // ActiveMQ Classic prints its Java version first; Artemis does not.
    let classic =
        text.rsplit("\nActiveMQ ").find(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let text = classic.unwrap_or(text);
    let bare = |word: &'_ str| word.trim_start_matches(['v', '=']).to_owned();
    let is_version = |word: &String| word.starts_with(|c: char| c.is_ascii_digit());
    text.split_whitespace().map(bare).find(is_version)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let home = env::var_os("HOME").map(|home| Path::new(&home).join("go/bin"));
    let more = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(more).chain(home).map(|it| it.join(name)).find(|it| it.is_file())
}

/// Programs given on the command line.
#[derive(Debug, Clone, Default)]
pub struct Programs(Vec<(Kind, PathBuf)>);

impl Programs {
    /// Parses `name=path` texts.
    pub fn parse(texts: &[String]) -> Result<Programs, String> {
        let one = |text: &String| {
            let (name, path) = text.split_once('=').ok_or("a program is NAME=PATH")?;
            let kind = Kind::from_name(name).ok_or_else(|| unknown(name))?;
            Ok::<_, String>((kind, PathBuf::from(path)))
        };
        Ok(Programs(texts.iter().map(one).collect::<Result<_, _>>()?))
    }

    /// Only this program; others are searched for.
    pub fn of_one(kind: Kind, program: &Path) -> Programs {
        Programs(vec![(kind, program.to_owned())])
    }

    fn of(&self, kind: Kind) -> Option<&Path> {
        self.0.iter().find(|(it, _)| *it == kind).map(|(_, path)| path.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (text, version) in [
            ("nats-server: v2.15.2\n", Some("2.15.2")),
            ("mosquitto version 2.0.11\n\nmosquitto is", Some("2.0.11")),
            ("angarium 0.1.0", Some("0.1.0")),
            ("3.10.8-1.1+deb12u1", Some("3.10.8-1.1+deb12u1")),
            ("Java Runtime: Debian 17.0.15 /usr\n\nActiveMQ 5.18.3\nFor help", Some("5.18.3")),
            ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", Some("7.0.15")),
            (
                "Apache ActiveMQ Artemis 2.40.0\nActiveMQ Artemis home: /opt/a\nActiveMQ Artemis \
                 instance: null\n",
                Some("2.40.0"),
            ),
            ("nothing of that kind", None),
        ] {
            assert_eq!(first_version(text).as_deref(), version);
        }
    }

    #[test]
    fn programs_are_named() {
        let programs = Programs::parse(&["nats=/opt/nats".to_owned()]).expect("it is one");
        assert_eq!(Kind::Nats.find(&programs), Some(PathBuf::from("/opt/nats")));
        assert!(Programs::parse(&["nats".to_owned()]).is_err());
        assert!(Programs::parse(&["x=y".to_owned()]).is_err_and(|why| why.contains("rabbitmq")));
        assert!(unknown("kafka").contains("of its own"), "{}", unknown("kafka"));
    }
}
