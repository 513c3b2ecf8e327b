//! The comparison with Mosquitto and rumqttd: idle subscribers, and loads of QoS 0 to 2, with their targets.

use super::comparison::Comparison;
use super::loads::{self, Idle};
use super::table::Report;

/// Descriptors that a broker and the tool each need for the idle connections.
pub(crate) const DESCRIPTORS: u64 = IDLE.connections as u64 + 200;

const IDLE: Idle = Idle {
    name: "10,000 idle subscribers of one topic",
    connections: 10_000,
    kib_max: 2.0,
    waves: None,
};

/// Runs the selected loads on the sides that each of them is for. Idle subscribers come first: a broker that
/// has served clients keeps memory from before.
pub(super) fn run(comparison: &Comparison<'_>, report: &mut Report) -> Result<(), String> {
    let wanted = |name: &str| comparison.arguments.wants(name);
    if wanted("idle") {
        report.add(comparison.idle(&IDLE)?);
    }
    for load in loads::MQTT.iter().filter(|load| wanted(load.name)) {
        report.add(comparison.load(load, None)?);
    }
    Ok(())
}
