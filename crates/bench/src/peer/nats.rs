//! nats-server: one process in the foreground, without streams, or with streams that are flushed before
//! each acknowledgement.

use super::command::{Foreground, loopback};
use crate::client::Error;
use std::fs;
use std::path::Path;

/// Without streams.
pub(super) fn without_streams(
    program: &str,
    folder: &Path,
    port: u16,
) -> Result<Foreground, Error> {
    let (port_text, log) = (port.to_string(), log(folder));
    let flags = ["-a", "127.0.0.1", "-p", &port_text, "-l", &log];
    let command = std::iter::once(program).chain(flags).map(str::to_owned).collect();
    Ok(Foreground { command, targets: vec![loopback("nats", port)?], files: None })
}

/// With JetStream. By default nats-server flushes every two minutes, whatever it has acknowledged;
/// `sync_interval: always` needs 2.10.
pub(super) fn with_streams(program: &str, folder: &Path, port: u16) -> Result<Foreground, Error> {
    let (data, log) = (folder.join("jetstream"), log(folder));
    let file = format!(
        "listen: \"127.0.0.1:{port}\"\nlog_file: \"{log}\"\njetstream {{\n  store_dir: \"{}\"\n  \
         sync_interval: always\n}}\n",
        data.to_string_lossy()
    );
    let path = folder.join("nats-server.conf");
    fs::write(&path, &file)?;
    let command = [program, "-c", &path.to_string_lossy()].map(str::to_owned).to_vec();
    Ok(Foreground { command, targets: vec![loopback("jetstream", port)?], files: Some(file) })
}

fn log(folder: &Path) -> String {
    folder.join("nats-server.log").to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Protocol;
    use crate::peer::{Kind, Level};

    #[test]
    fn what_it_acknowledges_is_flushed_where_it_has_streams() {
        let folder = std::env::temp_dir().join(format!("bench-jetstream-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("it can be made");
        let with = with_streams("nats-server", &folder, 4222);
        let written = fs::read_to_string(folder.join("nats-server.conf"));
        drop(fs::remove_dir_all(&folder));
        let Foreground { command, targets, files } = with.expect("it is written");
        assert_eq!(written.expect("it is there"), files.expect("it is described"));
        assert_eq!((command.len(), command[1].as_str()), (3, "-c"));
        assert_eq!(targets[0].to_string(), "jetstream://127.0.0.1:4222");
        assert_eq!(Kind::Nats.level(targets[0].protocol()), Level::Flushed);
        let Foreground { command, targets, files } =
            without_streams("nats-server", &folder, 4222).expect("nothing is written");
        assert!(!command.contains(&"-c".to_owned()) && files.is_none());
        assert_eq!(targets[0].protocol(), Protocol::Nats);
        assert_eq!(Kind::Nats.level(Protocol::Nats), Level::AtMostOnce);
    }
}
