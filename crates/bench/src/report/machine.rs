//! Description of the machine of a measurement, and how two machines differ.

use serde::{Deserialize, Serialize};
use std::fs;

/// The properties of a machine that figures depend on.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The processor's name.
    pub(crate) processor: String,
    /// Cores.
    pub(crate) cores: u64,
    /// Memory in MiB.
    pub(crate) memory_mib: u64,
    /// The kernel's version.
    pub(crate) kernel: String,
    /// The system's name.
    pub(crate) system: String,
    /// TCP's default congestion control: BBR costs more CPU over loopback.
    #[serde(default)]
    pub(crate) tcp: String,
    /// The file system below the brokers' data.
    pub(crate) file_system: String,
    /// Load average before the measurement.
    pub(crate) load_before: String,
}

impl Machine {
    /// This machine; `folder` is where brokers keep their data.
    pub(crate) fn here(folder: &std::path::Path) -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            let (_, value) = line.split_once([':', '=']).unwrap_or_default();
            value.trim().trim_matches('"').to_owned()
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let memory_kib: u64 =
            memory.split_whitespace().next().and_then(|it| it.parse().ok()).unwrap_or(0);
        Machine {
            processor: field(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, |it| it.get() as u64),
            memory_mib: memory_kib / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            system: field(&read("/etc/os-release"), "PRETTY_NAME"),
            tcp: read("/proc/sys/net/ipv4/tcp_congestion_control").trim().to_owned(),
            file_system: file_system(&read("/proc/self/mounts"), folder),
            load_before: read("/proc/loadavg").trim().to_owned(),
        }
    }

    /// All properties in one line.
    pub(crate) fn describe(&self) -> String {
        format!(
            "{} x {}, {} MiB, Linux {}, {}, {}, TCP {}",
            self.cores,
            self.processor,
            self.memory_mib,
            self.kernel,
            self.system,
            self.file_system,
            self.tcp
        )
    }

    /// Differences to `other`, except load.
    pub(crate) fn differences(&self, other: &Machine) -> Vec<String> {
        let pairs = [
            ("processor", &self.processor, &other.processor),
            ("kernel", &self.kernel, &other.kernel),
            ("system", &self.system, &other.system),
            ("TCP's congestion control", &self.tcp, &other.tcp),
            ("file system", &self.file_system, &other.file_system),
        ];
        let mut found: Vec<String> = pairs
            .iter()
            .filter(|(_, one, two)| one != two)
            .map(|(what, one, two)| format!("{what}: {one} / {two}"))
            .collect();
        if (self.cores, self.memory_mib) != (other.cores, other.memory_mib) {
            found.push(format!(
                "cores and memory: {}, {} MiB / {}, {} MiB",
                self.cores, self.memory_mib, other.cores, other.memory_mib
            ));
        }
        found
    }
}

/// The type of the file system whose mount point is the longest above `folder`.
fn file_system(mounts: &str, folder: &std::path::Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut found = ("", "unknown");
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [_, point, kind, ..] = fields.as_slice()
            && folder.starts_with(point)
            && point.len() >= found.0.len()
        {
            found = (point, kind);
        }
    }
    found.1.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_that_of_the_nearest_mount() {
        let mounts = "a / ext4 rw\nb /nowhere/data xfs rw\nc /nowhere/datum tmpfs rw\n";
        let of = |path: &str| file_system(mounts, std::path::Path::new(path));
        assert_eq!(of("/nowhere/data/x"), "xfs");
        assert_eq!(of("/nowhere/else"), "ext4");
    }
}
