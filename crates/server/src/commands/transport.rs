//! What the small client talks over: TCP, TLS over it, or a Unix socket.

use crate::amqp_client::Stream;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where systems keep the certificates of the authorities they trust.
const SYSTEM_AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

impl Stream for TcpStream {
    fn limit_reads(&self, timeout: Option<Duration>) -> std::io::Result<()> {
        self.set_read_timeout(timeout)
    }
}

impl Stream for UnixStream {
    fn limit_reads(&self, timeout: Option<Duration>) -> std::io::Result<()> {
        self.set_read_timeout(timeout)
    }
}

impl Stream for StreamOwned<ClientConnection, TcpStream> {
    fn limit_reads(&self, timeout: Option<Duration>) -> std::io::Result<()> {
        self.sock.set_read_timeout(timeout)
    }
}

/// Connects to a Unix socket.
pub(super) fn unix(path: &Path) -> Result<Box<dyn Stream>, String> {
    let stream = UnixStream::connect(path);
    Ok(Box::new(stream.map_err(|error| format!("no broker at '{}': {error}", path.display()))?))
}

/// Connects to `host:port`.
pub(super) fn tcp(address: &str) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(address)
        .map_err(|error| format!("no broker at {address}: {error} (start one with `angarium`)"))?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    Ok(stream)
}

/// Connects to `host:port` with TLS; trusts the authorities in that file, else those of the system.
pub(super) fn tls(address: &str, authorities: Option<&Path>) -> Result<Box<dyn Stream>, String> {
    let mut roots = RootCertStore::empty();
    let path = match authorities {
        Some(path) => path.to_owned(),
        None => system_authorities()?,
    };
    let read = |error| format!("cannot read '{}': {error}", path.display());
    for certificate in CertificateDer::pem_file_iter(&path).map_err(read)? {
        // A system's list may hold what this library does not understand.
        let added = roots.add(certificate.map_err(read)?);
        if let (Err(error), true) = (added, authorities.is_some()) {
            return Err(format!("'{}': {error}", path.display()));
        }
    }
    if roots.is_empty() {
        return Err(format!("'{}' holds no certificate", path.display()));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
        .map_err(|_| format!("'{host}' is no name that a certificate could have"))?;
    let connection =
        ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    Ok(Box::new(StreamOwned::new(connection, tcp(address)?)))
}

fn system_authorities() -> Result<PathBuf, String> {
    let known = SYSTEM_AUTHORITIES.iter().map(PathBuf::from);
    let mut paths = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from).into_iter().chain(known);
    paths
        .find(|path| path.is_file())
        .ok_or_else(|| "amqps needs --authorities FILE: this system has no list of its own".into())
}
