//! TLS over a non-blocking socket: ciphertext in, plaintext out, and the reverse for whole batches
//! of output.

use super::certificate_user::user_of;
use super::socket::{Sent, Socket};
use crate::settings::CertificateUser;
use rustls::{ServerConfig, ServerConnection};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;

/// Plaintext that may lie encrypted and unsent in a connection.
const BUFFERED_BYTES_MAX: usize = 64 << 10;

/// What TLS connections are accepted with.
#[derive(Clone, Debug)]
pub(crate) struct Acceptance {
    pub(super) config: Arc<ServerConfig>,
    /// What in a client's certificate is the user's name.
    pub(super) user_in: CertificateUser,
}

/// Whether a client that was accepted begins TLS, and with what.
#[derive(Clone, Debug)]
pub(crate) enum MayEncrypt {
    Never,
    /// It begins with the handshake.
    AtOnce(Acceptance),
    /// It may begin with it once it has been greeted.
    Greeted(Acceptance),
}

/// The TLS side of one connection.
#[derive(Debug)]
pub(crate) struct Tls {
    session: ServerConnection,
    user_in: CertificateUser,
    /// The peer has said that nothing more comes.
    pub(crate) is_over: bool,
}

impl Tls {
    pub(crate) fn begin(with: Acceptance) -> Option<Box<Tls>> {
        let Acceptance { config, user_in } = with;
        let session = ServerConnection::new(config)
            .inspect_err(|error| tracing::error!(%error, "cannot begin TLS"));
        let mut session = session.ok()?;
        session.set_buffer_limit(Some(BUFFERED_BYTES_MAX));
        Some(Box::new(Tls { session, user_in, is_over: false }))
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// The user's name in the certificate that the client showed, if it showed one that has such a name.
    pub(crate) fn certificate_name(&self) -> Option<String> {
        user_of(self.session.peer_certificates()?.first()?, self.user_in)
    }

    /// Takes ciphertext and hands the plaintext in it to `plain`. The error says what the client
    /// did wrong; an alert for it waits to be sent then.
    pub(crate) fn receive(
        &mut self,
        mut ciphertext: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), String> {
        while !ciphertext.is_empty() {
            let taken = self.session.read_tls(&mut ciphertext).map_err(|e| e.to_string())?;
            let state = self.session.process_new_packets().map_err(|e| e.to_string())?;
            self.is_over |= state.peer_has_closed();
            let waiting = state.plaintext_bytes_to_read();
            if waiting > 0 {
                let from = plain.len();
                plain.resize(from + waiting, 0);
                let read = self.session.reader().read(&mut plain[from..]);
                plain.truncate(from + read.map_err(|error| error.to_string())?);
            }
            if taken == 0 && waiting == 0 {
                // After close_notify nothing is taken.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Encrypts and sends; says how many bytes of `plain` it has taken over, or that the peer is
    /// gone. With [`Tls::is_flushed`] false, the socket took no more.
    pub(crate) fn send(&mut self, socket: &Socket, plain: &[IoSlice<'_>]) -> Sent {
        let mut rest = plain.to_vec();
        let mut rest = &mut rest[..];
        let mut taken = 0;
        loop {
            if !rest.is_empty() {
                match self.session.writer().write_vectored(rest) {
                    Ok(count) => {
                        taken += count;
                        IoSlice::advance_slices(&mut rest, count);
                    }
                    Err(_) => return Sent::Ended,
                }
            }
            match self.write_ciphertext(socket) {
                Sent::Ended => return Sent::Ended,
                Sent::Full if taken == 0 => return Sent::Full,
                Sent::Full => return Sent::Bytes(taken),
                Sent::Bytes(_) if rest.is_empty() => return Sent::Bytes(taken),
                Sent::Bytes(_) => {}
            }
        }
    }

    fn write_ciphertext(&mut self, mut socket: &Socket) -> Sent {
        while self.session.wants_write() {
            match self.session.write_tls(&mut socket) {
                Ok(0) => return Sent::Ended,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Sent::Full,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Sent::Ended,
            }
        }
        Sent::Bytes(0)
    }

    /// Whether all ciphertext is sent.
    pub(crate) fn is_flushed(&self) -> bool {
        !self.session.wants_write()
    }

    /// Says goodbye as TLS wants it, so that the peer can tell the end from a cut.
    pub(crate) fn end_output(&mut self, socket: &Socket) {
        self.session.send_close_notify();
        self.write_ciphertext(socket);
    }
}
