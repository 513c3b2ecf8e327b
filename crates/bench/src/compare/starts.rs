//! From a broker's start on an empty store until its first message is delivered.

use super::side::{OURS, our_command, text};
use super::table::{Check, Section, median, spread};
use crate::client::Protocol;
use crate::load::first_message;
use crate::peer::{Kind, Peer, Programs, RabbitMq};
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest start until the first message.
const START_MS_MAX: f64 = 25.0;
const PATIENCE: Duration = Duration::from_secs(20);

/// What is started.
#[derive(Debug)]
pub(super) struct Starts<'a> {
    /// Our program, if ours is measured.
    pub(super) ours: Option<&'a Path>,
    /// The protocol, and with it the peer.
    pub(super) protocol: Protocol,
    /// The peer's program, or the one that is installed.
    pub(super) peer: Option<&'a Path>,
    /// The peer's name in the report; none if it is left out.
    pub(super) theirs: Option<&'a str>,
}

/// Measures the start of each side, ours several times.
pub(super) fn measure(
    starts: &Starts<'_>,
    folder: &Path,
    rounds: usize,
) -> Result<Section, String> {
    let mut section = Section::new("start to first message, empty store");
    if let Some(program) = starts.ours {
        let mut times = Vec::new();
        for attempt in 0..rounds.max(2) * 2 + 1 {
            let data = folder.join(format!("start-{attempt}"));
            let launch = our_command(program, starts.protocol, &data)?;
            let time = first_message::measure_start(&launch.command, &launch.uri, PATIENCE);
            times.push(time.map_err(text)?.first_message_ms);
        }
        section.value(OURS, "first message", format!("{} ms", spread(times.clone(), 1)));
        section.check(Check::at_most("ms", median(times), START_MS_MAX));
    }
    if let Some(theirs) = starts.theirs {
        let folder = folder.join("start-peer");
        std::fs::create_dir_all(&folder).map_err(text)?;
        let began = Instant::now();
        let elapsed_ms = || began.elapsed().as_secs_f64() * 1e3;
        let first_ms = match starts.protocol {
            Protocol::Amqp091 => {
                let broker = RabbitMq::start(starts.peer, &folder, false).map_err(text)?;
                first_message::deliver_first(broker.uri()).map_err(text)?;
                elapsed_ms()
            }
            protocol => {
                let is_mqtt = protocol == Protocol::Mqtt;
                let kind = if is_mqtt { Kind::Mosquitto } else { Kind::Nats };
                let programs = starts.peer.map(|program| Programs::of_one(kind, program));
                let programs = programs.unwrap_or_default();
                let broker = Peer::start(kind, &programs, &folder).map_err(text)?;
                first_message::deliver_first(&broker.targets()[0]).map_err(text)?;
                elapsed_ms()
            }
        };
        section.value(theirs, "first message", format!("{first_ms:.0} ms"));
    }
    Ok(section)
}
