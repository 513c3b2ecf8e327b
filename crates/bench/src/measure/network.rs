//! The kernel's TCP counters: segments of all sockets of the machine, bytes over loopback.

use serde::{Deserialize, Serialize};
use std::fs;

/// Counts since the machine started, or between two moments.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segments {
    /// TCP segments sent.
    pub sent: u64,
    /// Packets over loopback.
    pub loopback_packets: u64,
    /// Bytes over loopback.
    pub loopback_bytes: u64,
}

impl Segments {
    /// The difference to an earlier moment.
    pub fn since(&self, before: &Segments) -> Segments {
        Segments {
            sent: self.sent.saturating_sub(before.sent),
            loopback_packets: self.loopback_packets.saturating_sub(before.loopback_packets),
            loopback_bytes: self.loopback_bytes.saturating_sub(before.loopback_bytes),
        }
    }

    /// Mean bytes of a loopback packet; 0 without any.
    pub fn mean_bytes(&self) -> f64 {
        match self.loopback_packets {
            0 => 0.0,
            packets => self.loopback_bytes as f64 / packets as f64,
        }
    }
}

/// The counts now; zeros where the system does not provide them.
pub fn segments() -> Segments {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (packets, bytes) = parse_loopback(&read("/proc/net/dev")).unwrap_or_default();
    Segments {
        sent: parse_sent(&read("/proc/net/snmp")).unwrap_or(0),
        loopback_packets: packets,
        loopback_bytes: bytes,
    }
}

/// `OutSegs` of the two `Tcp:` lines, of which the first has the names.
fn parse_sent(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let column = lines.next()?.split_whitespace().position(|name| name == "OutSegs")?;
    lines.next()?.split_whitespace().nth(column)?.parse().ok()
}

/// Packets and bytes sent over `lo`.
fn parse_loopback(table: &str) -> Option<(u64, u64)> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix("lo:"))?;
    let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
    Some((*fields.get(9)?, *fields.get(8)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_by_name() {
        let snmp = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm InSegs OutSegs\nTcp: 1 20 30\n";
        assert_eq!(parse_sent(snmp), Some(30));
        assert_eq!(parse_sent("Tcp: InSegs\nTcp: 5\n"), None);
        let dev = "Inter-| Receive\n face |bytes\n    lo: 1 2 0 0 0 0 0 0 70 8 0 0 0 0 0 0\n";
        assert_eq!(parse_loopback(dev), Some((8, 70)));
    }
}
