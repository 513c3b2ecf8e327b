//! nats-server: one process in the foreground, without streams as most run it, or with streams that are
//! flushed before it acknowledges.

use super::catalog::Foreground;
use crate::client::Error;
use std::fs;
use std::io;
use std::path::Path;

/// Its command line and its address, where nothing is kept.
pub(super) fn without_streams(
    program: &str,
    folder: &Path,
    port: u16,
) -> Result<Foreground, Error> {
    let (port_text, log) = (port.to_string(), log(folder));
    let flags = ["-a", "127.0.0.1", "-p", &port_text, "-l", &log];
    let command = std::iter::once(program).chain(flags).map(str::to_owned).collect();
    let target = format!("nats://127.0.0.1:{port}").parse().map_err(io::Error::other)?;
    Ok((command, vec![target], None))
}

/// Its command line, its address and its file, with JetStream. Left to itself it flushes every two
/// minutes, whatever it has acknowledged; 2.10 is the first that can be told otherwise.
pub(super) fn with_streams(program: &str, folder: &Path, port: u16) -> Result<Foreground, Error> {
    let (data, log) = (folder.join("jetstream"), log(folder));
    let file = format!(
        "listen: \"127.0.0.1:{port}\"\nlog_file: \"{log}\"\njetstream {{\n  store_dir: \"{}\"\n  \
         sync_interval: always\n}}\n",
        data.to_string_lossy()
    );
    let path = folder.join("nats-server.conf");
    fs::write(&path, &file)?;
    let target = format!("jetstream://127.0.0.1:{port}").parse().map_err(io::Error::other)?;
    let command = [program, "-c", &path.to_string_lossy()].map(str::to_owned).to_vec();
    Ok((command, vec![target], Some(file)))
}

fn log(folder: &Path) -> String {
    folder.join("nats-server.log").to_string_lossy().into_owned()
}
