//! The brokers of a campaign: those that it starts, and those that run already.

use crate::client::{Error, Link, Target};
use crate::measure::process;
use crate::peer::{Kind, Level, Peer, Programs, unknown};
use crate::report::SideInfo;
use std::path::{Path, PathBuf};

/// Where a side's broker comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Origin {
    /// A running broker.
    Running { target: Target, pid: Option<u32>, level: Level },
    /// A broker that is started here, and the scheme that loads use.
    Started { kind: Kind, scheme: &'static str },
}

impl Origin {
    /// Reads `rabbitmq` or `rabbitmq:stomp`.
    pub(super) fn peer(text: &str) -> Result<Origin, String> {
        let (name, scheme) = text.split_once(':').unwrap_or((text, ""));
        let kind = Kind::from_name(name).ok_or_else(|| unknown(name))?;
        let schemes = kind.schemes();
        let found = schemes.iter().find(|it| scheme.is_empty() || *it == scheme);
        let scheme = found.ok_or_else(|| format!("{name} is reached by {}", schemes.join(", ")))?;
        Ok(Origin::Started { kind, scheme })
    }

    /// Fails, with how to install it, if its program is not here.
    pub(super) fn check(&self, programs: &Programs) -> Result<(), String> {
        match self {
            Origin::Started { kind, .. } if kind.find(programs).is_none() => {
                Err(format!("{} is not here; {}", kind.name(), kind.hint()))
            }
            _ => Ok(()),
        }
    }

    fn label(&self) -> String {
        match self {
            Origin::Running { target, .. } => target.to_string(),
            Origin::Started { kind, scheme } if *scheme == kind.schemes()[0] => {
                kind.name().to_owned()
            }
            Origin::Started { kind, scheme } => format!("{}:{scheme}", kind.name()),
        }
    }
}

/// One broker.
#[derive(Debug)]
pub(super) struct Side {
    origin: Origin,
    label: String,
    folder: PathBuf,
    starts: u32,
    peer: Option<Peer>,
    /// Why it can no longer be measured.
    pub(super) dead: Option<String>,
}

impl Side {
    /// A side that is not started yet.
    pub(super) fn new(origin: Origin, label: String, folder: &Path) -> Side {
        let folder = folder.join(label.replace([':', '/', ' ', '\''], "-"));
        Side { origin, label, folder, starts: 0, peer: None, dead: None }
    }

    /// Sides with distinct labels: the second of two equal ones has a `'`.
    pub(super) fn all(origins: Vec<Origin>, folder: &Path) -> Vec<Side> {
        let mut sides: Vec<Side> = Vec::new();
        for origin in origins {
            let mut label = origin.label();
            while sides.iter().any(|side| side.label == label) {
                label.push('\'');
            }
            sides.push(Side::new(origin, label, folder));
        }
        sides
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Starts it if it is not running; if `fresh`, restarts it on an empty folder.
    pub(super) fn ready(&mut self, programs: &Programs, fresh: bool) -> Result<(), String> {
        let was_dead = self.dead.take().is_some();
        let (kind, scheme) = match &self.origin {
            Origin::Started { kind, scheme } => (kind, scheme),
            Origin::Running { target, .. } => {
                return Link::open(target).and_then(Link::close).map_err(|error| error.to_string());
            }
        };
        let (kind, scheme) = (*kind, *scheme);
        if fresh || was_dead {
            self.stop();
        }
        if self.peer.is_some() {
            return Ok(());
        }
        self.starts += 1;
        let folder = self.folder.join(self.starts.to_string());
        let peer = Peer::start_for(kind, scheme, programs, &folder);
        self.peer = Some(peer.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Stops it if it was started here, and removes its data.
    pub(super) fn stop(&mut self) {
        if self.peer.take().is_some() {
            let folder = self.folder.join(self.starts.to_string());
            if let Err(error) = std::fs::remove_dir_all(&folder) {
                eprintln!("{}: {error}", folder.display());
            }
        }
    }

    /// The address that loads use; `None` before it is started.
    pub(super) fn target(&self) -> Option<&Target> {
        match &self.origin {
            Origin::Running { target, .. } => Some(target),
            Origin::Started { scheme, .. } => {
                self.peer.as_ref()?.targets().iter().find(|target| target.scheme() == *scheme)
            }
        }
    }

    /// Its addresses, one for each protocol.
    pub(super) fn targets(&self) -> &[Target] {
        match (&self.origin, &self.peer) {
            (Origin::Running { target, .. }, _) => std::slice::from_ref(target),
            (Origin::Started { .. }, Some(peer)) => peer.targets(),
            (Origin::Started { .. }, None) => &[],
        }
    }

    /// Its process, if it is on this machine.
    pub(super) fn pid(&self) -> Option<u32> {
        match (&self.origin, &self.peer) {
            (Origin::Running { target, pid, .. }, _) => pid.or_else(|| listener_of(target)),
            (_, Some(peer)) => Some(peer.pid()),
            _ => None,
        }
    }

    /// What its confirms of persistent messages mean.
    pub(super) fn level(&self) -> Level {
        match (&self.origin, self.target()) {
            (Origin::Running { level, .. }, _) => *level,
            (Origin::Started { kind, .. }, Some(target)) => kind.level(target.protocol()),
            (Origin::Started { .. }, None) => Level::Unknown,
        }
    }

    /// Arguments that its durable queues need.
    pub(super) fn durable_queue_arguments(&self) -> &'static [(&'static str, &'static str)] {
        match (&self.origin, self.target()) {
            (Origin::Started { kind, .. }, Some(target)) => {
                kind.durable_queue_arguments(target.protocol())
            }
            _ => &[],
        }
    }

    fn means(&self) -> &'static str {
        match (&self.origin, self.target()) {
            (Origin::Started { kind, .. }, Some(target)) => kind.means(target.protocol()),
            _ => "",
        }
    }

    /// Turns flushing of persistent messages on or off, if it was started here and is slower with it even for
    /// direct messages. Returns whether that makes a difference.
    pub(super) fn set_durable(&mut self, durable: bool) -> Result<bool, Error> {
        self.peer.as_mut().map_or(Ok(false), |peer| peer.set_durable(durable))
    }

    /// The broker, if it was started here.
    pub(super) fn peer_mut(&mut self) -> Option<&mut Peer> {
        self.peer.as_mut()
    }

    /// Whether the process that the tool started has ended.
    pub(super) fn has_ended(&self) -> bool {
        let pid = self.peer.as_ref().map(Peer::pid);
        pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists() || is_zombie(pid))
    }

    /// Its entry in the report.
    pub(super) fn info(&self) -> SideInfo {
        let peer = self.peer.as_ref();
        SideInfo {
            label: self.label.clone(),
            version: peer.map_or("", Peer::version).to_owned(),
            target: self.target().map_or(String::new(), ToString::to_string),
            level: self.level(),
            means: self.means().to_owned(),
            configuration: peer.map_or("as it runs", Peer::configuration).to_owned(),
        }
    }
}

/// The process that listens at an address on this machine.
pub(crate) fn listener_of(target: &Target) -> Option<u32> {
    let is_local = matches!(target.host(), "127.0.0.1" | "localhost" | "::1" | "[::1]");
    process::listener_pid(target.port()).filter(|_| is_local)
}

fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_named_and_told_apart() {
        let origins = ["angarium", "angarium", "rabbitmq:stomp", "nats", "nats:jetstream"];
        let origins = origins.map(|text| Origin::peer(text).expect("it is one")).to_vec();
        let sides = Side::all(origins, Path::new("data"));
        let labels: Vec<&str> = sides.iter().map(Side::label).collect();
        let wanted = ["angarium", "angarium'", "rabbitmq:stomp", "nats", "nats:jetstream"];
        assert_eq!(labels, wanted);
        assert!(Origin::peer("nats:amqp").is_err_and(|why| why.contains("nats")));
        assert!(Origin::peer("kafka").is_err_and(|why| why.contains("mosquitto")));
    }
}
