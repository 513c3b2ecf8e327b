//! TCP connections to brokers.

use crate::tcp;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Timeout of connecting, of answers and of writes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Connects with TCP_NODELAY and timeouts.
pub(super) fn dial(host: &str, port: u16) -> io::Result<TcpStream> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{host}:{port}: {error}"));
    let mut opened = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in (host, port).to_socket_addrs().map_err(named)? {
        opened = tcp::connect(address, PATIENCE);
        if opened.is_ok() {
            break;
        }
    }
    let stream = opened.map_err(named)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}
