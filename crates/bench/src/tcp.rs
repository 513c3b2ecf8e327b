//! TCP connections of the tool, without pacing over loopback.
//!
//! With BBR as the machine's congestion control, timers pace segments over loopback too. They cost more CPU
//! than the messages, at the expense of the measured broker. Setting the congestion control makes a load the
//! same on all machines.

use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// The congestion control for loopback: always available, and without pacing.
const LOCAL: &str = "reno";

/// Opens a connection within `patience`.
pub(crate) fn connect(address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    if !address.ip().is_loopback() {
        return TcpStream::connect_timeout(&address, patience);
    }
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    do_not_pace(&socket);
    // The send timeout also bounds connect.
    sockopt::set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    rustix::net::connect(&socket, &address).map_err(|error| match error {
        Errno::INPROGRESS => io::ErrorKind::TimedOut.into(),
        error => io::Error::from(error),
    })?;
    sockopt::set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(socket.into())
}

/// Listens on a free loopback port; accepted connections are not paced either.
pub(crate) fn listen() -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    do_not_pace(&listener);
    Ok(listener)
}

/// Works only before the connection is established: pacing, once begun, stays.
fn do_not_pace(socket: impl AsFd) {
    // Where it fails, the load costs more and is otherwise the same.
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
