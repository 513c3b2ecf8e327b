//! Connections that the tool begins: those over loopback are not paced.
//!
//! Where the machine's congestion control is BBR, timers pace what is sent, over loopback too. They cost
//! more than messages do, and fire amid whatever runs, at the expense of the broker that is measured. A load
//! is to be the same, and as cheap, whatever the machine does for programs that choose nothing.

use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// The congestion control for loopback: it is always there, and never paces.
const LOCAL: &str = "reno";

/// Opens a connection, which may take so long.
pub(crate) fn connect(address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    if !address.ip().is_loopback() {
        return TcpStream::connect_timeout(&address, patience);
    }
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    do_not_pace(&socket);
    // It bounds the connecting, too.
    sockopt::set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    rustix::net::connect(&socket, &address).map_err(|error| match error {
        Errno::INPROGRESS => io::ErrorKind::TimedOut.into(),
        error => io::Error::from(error),
    })?;
    sockopt::set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(socket.into())
}

/// Listens on a port of this host, for connections that are not paced either.
pub(crate) fn listen() -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    do_not_pace(&listener);
    Ok(listener)
}

/// Before the connection begins: one that was paced stays so.
fn do_not_pace(socket: impl AsFd) {
    // Without it the load costs more, and is the same.
    let _ = sockopt::set_tcp_congestion(socket, LOCAL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_connection_to_this_host_are_not_paced() {
        let listener = listen().unwrap();
        let near = connect(listener.local_addr().unwrap(), Duration::from_secs(5)).unwrap();
        let (far, _) = listener.accept().unwrap();
        for end in [near, far] {
            assert_eq!(sockopt::tcp_congestion(&end).unwrap(), LOCAL);
            assert_eq!(end.write_timeout().unwrap(), None);
        }
    }

    #[test]
    fn nobody_there_is_an_error() {
        let address = listen().unwrap().local_addr().unwrap();
        let error = connect(address, Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
