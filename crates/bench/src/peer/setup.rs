//! How a broker in the foreground is configured: an entry of `brokers.toml` with the places of one start.

use super::command::Foreground;
use super::configuration;
use super::port::free_port;
use crate::client::Error;
use serde::Deserialize;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// A way to start a broker.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setup {
    /// The scheme of the loads that it is for; all others if it has none.
    pub(super) scheme: Option<String>,
    /// A command line to run first.
    #[serde(default)]
    create: Vec<String>,
    /// The configuration file in the broker's folder, and its text, or what is changed in what `create` made.
    #[serde(default)]
    file: String,
    text: Option<String>,
    #[serde(default)]
    changes: Vec<Change>,
    command: Vec<String>,
    /// Its addresses, the one that loads use first.
    targets: Vec<String>,
}

/// A text of a file, whose first place is changed.
#[derive(Debug, Deserialize)]
struct Change {
    from: String,
    to: String,
}

/// A placeholder, and what stands for it.
type Place = (&'static str, String);

/// Configures a broker on free ports, with its data in `folder`.
pub(super) fn foreground(
    setup: &Setup,
    program: &Path,
    folder: &Path,
) -> Result<Foreground, Error> {
    let path = folder.join(&setup.file);
    let mut places: Vec<Place> = vec![
        ("{program}", text(program)),
        ("{folder}", text(folder)),
        ("{file}", text(&path)),
        ("{port}", free_port()?.to_string()),
        ("{port2}", free_port()?.to_string()),
        ("{port3}", free_port()?.to_string()),
        ("{port4}", free_port()?.to_string()),
    ];
    if setup.command.iter().any(|word| word == "{jar}") {
        places.extend(of_script(program)?);
    }
    let filled = |template: &String| {
        places.iter().fold(template.clone(), |text, (name, place)| text.replace(name, place))
    };
    let lines = |templates: &[String]| templates.iter().map(filled).collect::<Vec<String>>();
    let mut files = None;
    if let Some(text) = setup.text.as_ref().map(filled) {
        fs::write(&path, &text)?;
        files = Some(text);
    }
    if !setup.create.is_empty() {
        let create = lines(&setup.create);
        run(&create)?;
        let file = changed(fs::read_to_string(&path)?, &setup.changes)?;
        fs::write(&path, &file)?;
        let created = configuration::line(&create);
        files = Some(format!("# made by\n{created}\n# {}\n{file}", setup.file));
    }
    let targets: Result<_, String> = lines(&setup.targets).iter().map(|it| it.parse()).collect();
    let targets = targets.map_err(io::Error::other)?;
    Ok(Foreground { command: lines(&setup.command), targets, files })
}

fn changed(mut file: String, changes: &[Change]) -> io::Result<String> {
    for Change { from, to } in changes {
        if !file.contains(from) {
            return Err(io::Error::other(format!(
                "the configuration that was made has no '{from}'"
            )));
        }
        file = file.replacen(from, to, 1);
    }
    Ok(file)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn run(command: &[String]) -> io::Result<()> {
    let output = Command::new(&command[0]).args(&command[1..]).output()?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{} {}: {stderr}", command[0], command[1])))
}

/// The folder and the program in Java that a start script is for.
fn of_script(script: &Path) -> io::Result<[Place; 2]> {
    let script = script.canonicalize()?;
    let home = script.ancestors().nth(2).unwrap_or(&script);
    let jar = script.with_extension("jar");
    if !jar.is_file() {
        return Err(io::Error::other(format!("{} is not there", jar.display())));
    }
    Ok([("{home}", text(home)), ("{jar}", text(&jar))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Protocol;
    use crate::peer::{Kind, Level};

    #[test]
    fn what_nats_acknowledges_is_flushed_where_it_has_streams() {
        let folder = std::env::temp_dir().join(format!("bench-jetstream-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("it can be made");
        let nats = |scheme| foreground(Kind::Nats.setup(scheme), Path::new("nats-server"), &folder);
        let with = nats("jetstream");
        let written = fs::read_to_string(folder.join("nats-server.conf"));
        drop(fs::remove_dir_all(&folder));
        let Foreground { command, targets, files } = with.expect("it is written");
        let written = written.expect("it is there");
        assert!(written.contains("store_dir: \"/") && !written.contains("{f"), "{written}");
        assert_eq!(written, files.expect("it is described"));
        assert_eq!((command.len(), command[1].as_str()), (3, "-c"));
        assert_eq!(targets[0].scheme(), "jetstream");
        assert_eq!(Kind::Nats.level(targets[0].protocol()), Level::Flushed);
        let Foreground { command, targets, files } = nats("nats").expect("nothing is written");
        assert!(!command.contains(&"-c".to_owned()) && files.is_none());
        assert_eq!(targets[0].protocol(), Protocol::Nats);
        assert_eq!(Kind::Nats.level(Protocol::Nats), Level::AtMostOnce);
    }

    #[test]
    fn what_was_made_is_changed_or_the_setup_says_why_not() {
        let changes = &Kind::Artemis.setup("amqp10").changes;
        let made = "<max-disk-usage>90</max-disk-usage> <a>tcp://h:1?protocols=AMQP</a>".to_owned();
        let changed = super::changed(made, changes).expect("all of it is there");
        assert!(changed.contains("<max-disk-usage>99<") && changed.contains(";protocols=AMQP"));
        let why = super::changed("<configuration/>".to_owned(), changes).expect_err("it is not");
        assert!(why.to_string().contains("protocols="), "{why}");
    }

    #[test]
    fn every_broker_has_a_setup_and_targets_of_its_schemes() {
        for kind in Kind::all().filter(|kind| *kind != Kind::RabbitMq) {
            for scheme in kind.schemes() {
                let setup = kind.setup(scheme);
                let prefix = format!("{scheme}://");
                let is_there = setup.targets.iter().any(|target| target.starts_with(&prefix));
                assert!(is_there && !setup.command.is_empty(), "{} {scheme}", kind.name());
            }
        }
    }
}
