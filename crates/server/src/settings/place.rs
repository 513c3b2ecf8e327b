//! Where listeners are: TCP ports and Unix sockets, and who may use the files of these.

use super::value::SettingValue;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What a path begins with among the places of a listener.
const UNIX: &str = "unix:";

/// One place where a listener is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A file.
    Unix(PathBuf),
}

/// All places of a listener; none: it is off.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Places(pub Vec<Place>);

impl Places {
    /// One TCP port.
    pub fn tcp(address: SocketAddr) -> Places {
        Places(vec![Place::Tcp(address)])
    }

    /// The TCP ports.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().filter_map(|place| match place {
            Place::Tcp(address) => Some(*address),
            Place::Unix(_) => None,
        })
    }

    /// The files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|place| match place {
            Place::Tcp(_) => None,
            Place::Unix(path) => Some(path.as_path()),
        })
    }
}

impl SettingValue for Place {
    const FORMS: &'static [&'static str] = &["ADDR:PORT", "unix:PATH"];
    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix(UNIX) {
            Some("") => Err("expected a path behind unix:".into()),
            Some(path) => Ok(Place::Unix(path.into())),
            None => SocketAddr::parse(text).map(Place::Tcp),
        }
    }
    fn show(&self) -> String {
        match self {
            Place::Tcp(address) => address.show(),
            Place::Unix(path) => format!("{UNIX}{}", path.display()),
        }
    }
}

impl SettingValue for Places {
    const FORMS: &'static [&'static str] = &["ADDR:PORT|unix:PATH,...", "off"];
    fn parse(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Places::default());
        }
        text.split(',')
            .map(|place| Place::parse(place.trim()))
            .collect::<Result<_, _>>()
            .map(Places)
    }
    fn show(&self) -> String {
        let shown: Vec<String> = self.0.iter().map(Place::show).collect();
        if shown.is_empty() { "off".into() } else { shown.join(",") }
    }
}

/// Who may use a file, as `chmod` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileMode(pub u32);

impl SettingValue for FileMode {
    const FORMS: &'static [&'static str] = &["MODE"];
    fn parse(text: &str) -> Result<Self, String> {
        let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
        mode.map(FileMode).ok_or_else(|| "expected three octal digits such as 660".into())
    }
    fn show(&self) -> String {
        format!("{:03o}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_written() {
        for (text, shown) in [
            ("off", "off"),
            (":5672", "0.0.0.0:5672"),
            ("localhost:1, unix:/run/mq.sock", "127.0.0.1:1,unix:/run/mq.sock"),
            ("unix:a,unix:b,[::1]:7", "unix:a,unix:b,[::1]:7"),
        ] {
            let places = Places::parse(text).unwrap();
            assert_eq!(places.show(), shown);
            assert_eq!(Places::parse(shown).unwrap(), places);
        }
        let places = Places::parse(":1,unix:a,:2").unwrap();
        assert_eq!(places.addresses().map(|it| it.port()).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(places.paths().collect::<Vec<_>>(), [Path::new("a")]);
        for wrong in ["", "unix:", ":1,", ":1,off", "/run/mq.sock", "unix:a,,unix:b"] {
            assert!(Places::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rights_of_a_file_are_octal() {
        for (text, mode) in [("600", 0o600), ("0660", 0o660), ("777", 0o777)] {
            assert_eq!(FileMode::parse(text), Ok(FileMode(mode)));
        }
        assert_eq!(FileMode(0o60).show(), "060");
        for wrong in ["", "1777", "8", "rw", "-600"] {
            assert!(FileMode::parse(wrong).is_err(), "{wrong}");
        }
    }
}
