//! Sockets that clients connect to.

use crate::hints;
use crate::settings::{FileMode, LISTENERS, ListenerKind, Networks, Settings, Transport};
use angarium_engine::SlowConsumerPolicy;
use angarium_protocol::{Peer, Protocol};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, acceptfrom_with, sockopt,
};
use std::fs::Permissions;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Connections that wait to be accepted, at most.
const BACKLOG: i32 = 1_024;
/// The congestion control for clients on this machine: loopback is never congested, and the timers by which
/// BBR paces cost a third of the processor time. Every Linux has this one and lets every process use it.
const LOCAL_CONGESTION_CONTROL: &str = "reno";

/// One listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(super) fd: OwnedFd,
    pub(crate) kind: &'static ListenerKind,
    /// Its own policy for slow consumers, if it has one.
    slow_consumer_policy: Option<SlowConsumerPolicy>,
    /// The congestion control for clients elsewhere: the machine's.
    congestion_control: Option<String>,
    /// From where proxies connect.
    proxies: Networks,
    /// A Unix socket's file, removed when the broker stops.
    file: Option<PathBuf>,
    /// For people: `amqp on 0.0.0.0:5672`.
    pub(crate) shown: String,
}

/// A client that has connected.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) fd: OwnedFd,
    pub(crate) peer: Peer,
    /// It is a proxy, which says first for whom it connects.
    pub(crate) is_proxied: bool,
}

/// A port for clients that is taken.
type BoundListener = (&'static ListenerKind, Bound);

/// Takes every TCP port that the settings ask for. Clients cannot connect before [`listen_all`].
pub(crate) fn bind_all(settings: &Settings) -> Result<Vec<BoundListener>, String> {
    let ports = LISTENERS.iter().flat_map(|kind| {
        let addresses = (kind.places)(settings).addresses();
        addresses.map(move |address| bind(kind.name, address).map(|bound| (kind, bound)))
    });
    ports.collect()
}

/// Lets clients connect: to the ports that were taken, and to the Unix sockets of the settings.
pub(crate) fn listen_all(
    bound: Vec<BoundListener>,
    settings: &Settings,
) -> Result<Vec<Listener>, String> {
    let ports = bound.into_iter().map(|(kind, bound)| {
        let congestion_control = expect_local(&bound.fd);
        expect_taking(&bound.fd, kind, settings);
        let socket = bound.listen()?;
        let address = socket.local_addr().map_err(|error| format!("--{}: {error}", kind.name))?;
        Ok(Listener {
            fd: socket.into(),
            kind,
            slow_consumer_policy: (kind.slow_consumer_policy)(settings),
            congestion_control,
            proxies: settings.proxy_protocol_from.clone(),
            file: None,
            shown: format!("{} on {address}", kind.name),
        })
    });
    let sockets = LISTENERS.iter().flat_map(|kind| {
        (kind.places)(settings).paths().map(move |path| {
            unix(Some(kind.name), path, settings.unix_socket_mode).map(|socket| Listener {
                fd: socket.into(),
                kind,
                slow_consumer_policy: (kind.slow_consumer_policy)(settings),
                congestion_control: None,
                proxies: Networks::default(),
                file: Some(path.to_owned()),
                shown: format!("{} on {}", kind.name, path.display()),
            })
        })
    });
    ports.chain(sockets).collect()
}

/// A TCP port that is ours, and refuses connections until it listens.
#[derive(Debug)]
pub(crate) struct Bound {
    fd: OwnedFd,
    name: &'static str,
    address: SocketAddr,
}

/// Takes a TCP port, non-blocking; the error says what an operator can do.
pub(crate) fn bind(name: &'static str, address: SocketAddr) -> Result<Bound, String> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let bound = rustix::net::socket_with(family, SocketType::STREAM, flags, None).and_then(|fd| {
        // Connections of an earlier broker that linger do not keep the port.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        rustix::net::bind(&fd, &address).map(|()| fd)
    });
    let fd = bound.map_err(|error| complaint(name, address, error))?;
    Ok(Bound { fd, name, address })
}

impl Bound {
    /// Lets clients connect.
    pub(crate) fn listen(self) -> Result<TcpListener, String> {
        rustix::net::listen(&self.fd, BACKLOG)
            .map_err(|error| complaint(self.name, self.address, error))?;
        Ok(self.fd.into())
    }
}

/// Why a TCP port cannot be taken, and what to do.
pub(super) fn complaint(name: &str, address: SocketAddr, error: Errno) -> String {
    let elsewhere =
        format!("choose another with --{name} ADDR:PORT, or leave it out with --{name} off");
    let hint = match error {
        Errno::ADDRINUSE => format!("; another program listens there: {elsewhere}"),
        Errno::ACCESS | Errno::PERM => format!(
            "; ports below 1024 are not for every user: {elsewhere}, or give the broker the right \
             (AmbientCapabilities=CAP_NET_BIND_SERVICE of the service)"
        ),
        Errno::ADDRNOTAVAIL => {
            let all = "0.0.0.0 is all it has";
            format!("; this machine does not have that address ({all}): {elsewhere}")
        }
        _ => format!("; {elsewhere}"),
    };
    format!("cannot listen on {address} ({name}): {error}{hint}")
}

/// Binds a Unix socket, non-blocking, for that setting, if it is for one. A socket file that nobody listens
/// to, because a process has left it behind, is replaced.
pub(crate) fn unix(
    setting: Option<&str>,
    path: &Path,
    mode: FileMode,
) -> Result<UnixListener, String> {
    listen_unix(path, mode).map_err(|error| hints::no_socket(setting, path, &error))
}

fn listen_unix(path: &Path, mode: FileMode) -> std::io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let new = || {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
    };
    match rustix::net::connect(&new()?, &address) {
        // More wait to be accepted than may.
        Ok(()) | Err(Errno::AGAIN) => {
            let text = "another program listens there";
            return Err(std::io::Error::new(ErrorKind::ResourceBusy, text));
        }
        Err(Errno::CONNREFUSED) if is_socket(path) => std::fs::remove_file(path)?,
        // What is the matter is said when it is bound.
        Err(_) => {}
    }
    let socket = new()?;
    rustix::net::bind(&socket, &address)?;
    // Nobody can connect before it listens.
    std::fs::set_permissions(path, Permissions::from_mode(mode.0))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket())
}

impl Listener {
    /// Takes the next client that waits, if one does. An error: the process or the machine has no descriptor
    /// or memory left.
    pub(crate) fn accept(&self) -> Result<Option<Accepted>, Errno> {
        loop {
            match acceptfrom_with(&self.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((fd, address)) => {
                    let address = address.and_then(|address| SocketAddr::try_from(address).ok());
                    let is_proxied = address.is_some_and(|it| self.proxies.have(it.ip()));
                    let peer = self.peer(address);
                    if self.file.is_none() {
                        self.tune(&fd, peer.local);
                    }
                    return Ok(Some(Accepted { fd, peer, is_proxied }));
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    return Err(Errno::MFILE);
                }
                Err(_) => return Ok(None),
            }
        }
    }

    fn peer(&self, address: Option<SocketAddr>) -> Peer {
        let (shown, local) = match address {
            Some(address) => (address.to_string(), address.ip().to_canonical().is_loopback()),
            None => ("unix".into(), true),
        };
        Peer {
            protocol: self.kind.protocol,
            address: shown,
            local,
            encrypted: self.kind.transport == Transport::Tls,
            is_framed: false,
            certificate_name: None,
            slow_consumer_policy: self.slow_consumer_policy,
        }
    }

    /// Sets options that the connection also works without.
    fn tune(&self, fd: &OwnedFd, is_local: bool) {
        let _ = sockopt::set_tcp_nodelay(fd, true);
        let _ = sockopt::set_socket_keepalive(fd, true);
        if let Some(name) = &self.congestion_control
            && !is_local
        {
            let _ = sockopt::set_tcp_congestion(fd, name);
        }
    }
}

/// Gives accepted connections the congestion control that is best for clients on this machine, and returns
/// the one that they would have had. A connection that began under BBR stays paced, so that this one is set
/// on the listener and the other one later.
fn expect_local(listener: &OwnedFd) -> Option<String> {
    let usual = sockopt::tcp_congestion(listener).ok()?;
    sockopt::set_tcp_congestion(listener, LOCAL_CONGESTION_CONTROL).ok()?;
    Some(usual)
}

/// Has the machine end accepted connections whose clients take nothing for too long of what lies in its own
/// buffers, megabytes for each, of which the node does not know. NATS clients may be kept by their policy.
fn expect_taking(listener: &OwnedFd, kind: &ListenerKind, settings: &Settings) {
    let waits = matches!(kind.protocol, Protocol::Amqp | Protocol::Stomp);
    if let (true, Some(timeout)) = (waits, &settings.send_timeout) {
        let millis = u32::try_from(timeout.0.as_millis()).unwrap_or(u32::MAX);
        // Without it they stay, as long as that is little.
        let _ = sockopt::set_tcp_user_timeout(listener, millis);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // A file that stays is replaced at the next start.
            let _ = std::fs::remove_file(file);
        }
    }
}
