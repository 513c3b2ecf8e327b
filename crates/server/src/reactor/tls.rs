//! TLS over a non-blocking socket: ciphertext in, plaintext out, and the reverse for whole batches
//! of output. An idle connection has no buffers of its own: the shard's block is what is decrypted from.

use super::certificate_user::user_of;
use super::socket::{Sent, Socket};
use crate::settings::CertificateUser;
use rustls::CertificateError::{BadSignature, Revoked, UnknownIssuer};
use rustls::pki_types::UnixTime;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic,
};
use rustls::{Error, ServerConfig};
use std::fmt;
use std::io::IoSlice;
use std::sync::Arc;

/// Plaintext that may lie encrypted and unsent in a connection.
const BUFFERED_BYTES_MAX: usize = 64 << 10;
/// Plaintext of one record, and what its record has besides, or less.
const RECORD_BYTES: usize = 16 << 10;
const RECORD_EXTRA_BYTES: usize = 64;

/// What TLS connections are accepted with.
#[derive(Clone, Debug)]
pub(crate) struct Acceptance {
    pub(super) config: Arc<ServerConfig>,
    /// What in a client's certificate is the user's name.
    pub(super) user_in: CertificateUser,
    /// Which certificates of clients are trusted; none: they are not asked for any.
    pub(super) trust: Option<Trust>,
}

/// Which certificates of clients are trusted, whether or not the lists of revoked ones are renewed in time.
#[derive(Clone, Debug)]
pub(crate) struct Trust(pub(super) Arc<dyn ClientCertVerifier>);

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
pub(crate) struct Tls {
    session: UnbufferedServerConnection,
    /// The ciphertext of a record that has not come whole.
    partial: Vec<u8>,
    /// Ciphertext for the socket, and how much of it the socket has taken.
    unsent: Vec<u8>,
    sent: usize,
    /// Plaintext that waits for the end of the handshake.
    early: Vec<u8>,
    user_in: CertificateUser,
    /// By which it was accepted.
    trust: Option<Trust>,
    /// The peer has said that nothing more comes.
    pub(crate) is_over: bool,
    /// The peer did something wrong: the session takes neither input nor output any more.
    has_failed: bool,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

/// What is said to the peer.
#[derive(Clone, Copy)]
enum Output<'a> {
    Plain(&'a [u8]),
    /// That nothing more comes.
    Goodbye,
}

/// How far the session has come with its input.
struct Progress {
    /// Bytes of it that are not needed any more.
    done: usize,
    /// It has taken the output.
    has_written: bool,
}

impl Tls {
    pub(crate) fn begin(with: Acceptance) -> Option<Box<Tls>> {
        let Acceptance { config, user_in, trust } = with;
        let session = UnbufferedServerConnection::new(config)
            .inspect_err(|error| tracing::error!(%error, "cannot begin TLS"));
        Some(Box::new(Tls {
            session: session.ok()?,
            partial: Vec::new(),
            unsent: Vec::new(),
            sent: 0,
            early: Vec::new(),
            user_in,
            trust,
            is_over: false,
            has_failed: false,
        }))
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// The user's name in the certificate that the client showed, if it showed one that has such a name.
    pub(crate) fn certificate_name(&self) -> Option<String> {
        user_of(self.session.peer_certificates()?.first()?, self.user_in)
    }

    /// Whether the client showed a certificate, and was accepted by it when others were trusted.
    pub(crate) fn is_to_be_judged(&self, trust: &Trust) -> bool {
        let is_same = self.trust.as_ref().is_some_and(|by| Arc::ptr_eq(&by.0, &trust.0));
        !is_same && self.session.peer_certificates().is_some()
    }

    /// Why the certificate that the client showed is not trusted any more: it was revoked, or its authority
    /// is not trusted. That time has passed since is not such a reason.
    pub(crate) fn distrusted(&self, trust: &Trust) -> Option<String> {
        let (certificate, chain) = self.session.peer_certificates()?.split_first()?;
        let verified = trust.0.verify_client_cert(certificate, chain, UnixTime::now());
        match verified.err()? {
            Error::InvalidCertificate(why @ (Revoked | UnknownIssuer | BadSignature)) => {
                Some(why.to_string())
            }
            _ => None,
        }
    }

    /// Takes ciphertext and hands the plaintext in it to `plain`. The error says what the client
    /// did wrong; an alert for it waits to be sent then.
    pub(crate) fn receive(
        &mut self,
        ciphertext: &mut [u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), String> {
        if self.is_over {
            return Ok(());
        }
        let mut partial = std::mem::take(&mut self.partial);
        let rest = if partial.is_empty() {
            let done = self.go_on(ciphertext, plain, Output::Plain(&[]))?.done;
            &ciphertext[done..]
        } else {
            partial.extend_from_slice(ciphertext);
            let done = self.go_on(&mut partial, plain, Output::Plain(&[]))?.done;
            &partial[done..]
        };
        if !self.is_over {
            self.partial = rest.to_vec();
        }
        Ok(())
    }

    /// Encrypts and sends; says how many bytes of `plain` it has taken over, or that the peer is
    /// gone. With [`Tls::is_flushed`] false, the socket took no more.
    pub(crate) fn send(&mut self, socket: &Socket, plain: &[IoSlice<'_>]) -> Sent {
        match self.write_ciphertext(socket) {
            Sent::Bytes(_) => {}
            other => return other,
        }
        let (mut taken, mut room) = (0, Vec::new());
        let mut rest =
            plain.iter().map(|slice| &**slice).filter(|slice| !slice.is_empty()).peekable();
        while let Some(first) = rest.next() {
            // Small pieces share records.
            room.clear();
            let mut together = first.len();
            while let Some(next) = rest.next_if(|next| together + next.len() <= RECORD_BYTES) {
                if room.is_empty() {
                    room.extend_from_slice(first);
                }
                room.extend_from_slice(next);
                together = room.len();
            }
            let piece = if room.is_empty() { first } else { &room };
            for part in piece.chunks(BUFFERED_BYTES_MAX) {
                match self.write(socket, part) {
                    Sent::Bytes(count) => taken += count,
                    Sent::Full if taken == 0 => return Sent::Full,
                    Sent::Full => return Sent::Bytes(taken),
                    Sent::Ended => return Sent::Ended,
                }
                if !self.is_flushed() {
                    return Sent::Bytes(taken);
                }
            }
        }
        Sent::Bytes(taken)
    }

    /// Encrypts a piece of output, all of it, and sends what the socket takes. Until the handshake is
    /// complete, it waits.
    fn write(&mut self, socket: &Socket, plain: &[u8]) -> Sent {
        if !self.say(Output::Plain(plain)) {
            if self.has_failed || !self.session.is_handshaking() {
                return Sent::Ended;
            }
            if self.early.len() + plain.len() > BUFFERED_BYTES_MAX {
                return Sent::Full;
            }
            self.early.extend_from_slice(plain);
        }
        match self.write_ciphertext(socket) {
            Sent::Ended => Sent::Ended,
            _ => Sent::Bytes(plain.len()),
        }
    }

    /// Has the session encrypt output; says whether it can.
    fn say(&mut self, output: Output<'_>) -> bool {
        // What has come of a record is part of what the session knows.
        let mut partial = std::mem::take(&mut self.partial);
        let Ok(Progress { done, has_written }) = self.go_on(&mut partial, &mut Vec::new(), output)
        else {
            return false;
        };
        partial.drain(..done);
        self.partial = partial;
        has_written
    }

    /// Has the session work off its input, and encrypt output if it can.
    fn go_on(
        &mut self,
        input: &mut [u8],
        plain: &mut Vec<u8>,
        output: Output<'_>,
    ) -> Result<Progress, String> {
        let Tls { session, unsent, early, is_over, has_failed, .. } = self;
        if *has_failed {
            return Err("the session has failed before".to_owned());
        }
        let mut done = 0;
        loop {
            let UnbufferedStatus { mut discard, state } =
                session.process_tls_records(&mut input[done..]);
            let mut has_written = None;
            match state {
                Ok(ConnectionState::ReadTraffic(mut records)) => {
                    while let Some(record) = records.next_record() {
                        let record = record.map_err(|error| error.to_string())?;
                        discard += record.discard;
                        plain.extend_from_slice(record.payload);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode(&mut data, unsent),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => *is_over = true,
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    encrypt(&mut traffic, Output::Plain(&std::mem::take(early)), unsent)?;
                    encrypt(&mut traffic, output, unsent)?;
                    has_written = Some(true);
                }
                Ok(_) => has_written = Some(false),
                Err(error) => {
                    *has_failed = true;
                    // The alert for it. With something to write, input is not looked at.
                    while session.wants_write()
                        && let Ok(ConnectionState::EncodeTlsData(mut data)) =
                            session.process_tls_records(&mut []).state
                    {
                        encode(&mut data, unsent);
                    }
                    return Err(error.to_string());
                }
            }
            done += discard;
            if let Some(has_written) = has_written {
                return Ok(Progress { done, has_written });
            }
        }
    }

    fn write_ciphertext(&mut self, socket: &Socket) -> Sent {
        while self.sent < self.unsent.len() {
            match socket.send(&self.unsent[self.sent..]) {
                Sent::Bytes(count) => self.sent += count,
                other => return other,
            }
        }
        (self.unsent, self.sent) = (Vec::new(), 0);
        Sent::Bytes(0)
    }

    /// Whether all ciphertext is sent.
    pub(crate) fn is_flushed(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Says goodbye as TLS wants it, so that the peer can tell the end from a cut.
    pub(crate) fn end_output(&mut self, socket: &Socket) {
        self.say(Output::Goodbye);
        self.write_ciphertext(socket);
    }
}

/// Appends a record of the handshake.
fn encode(data: &mut EncodeTlsData<'_, ServerConnectionData>, unsent: &mut Vec<u8>) {
    if let Err(EncodeError::InsufficientSize(error)) = data.encode(&mut []) {
        let at = unsent.len();
        unsent.resize(at + error.required_size, 0);
        // It has just as much room as it asked for.
        let _ = data.encode(&mut unsent[at..]);
    }
}

/// Appends encrypted output.
fn encrypt(
    traffic: &mut WriteTraffic<'_, ServerConnectionData>,
    output: Output<'_>,
    unsent: &mut Vec<u8>,
) -> Result<(), String> {
    let at = unsent.len();
    let bytes = match output {
        Output::Plain([]) => return Ok(()),
        Output::Plain(plain) => plain.len() + (plain.len() / RECORD_BYTES + 2) * RECORD_EXTRA_BYTES,
        Output::Goodbye => RECORD_EXTRA_BYTES,
    };
    unsent.resize(at + bytes, 0);
    let mut write = |room: &mut [u8]| match output {
        Output::Plain(plain) => traffic.encrypt(plain, room),
        Output::Goodbye => traffic.queue_close_notify(room),
    };
    let mut written = write(&mut unsent[at..]);
    if let Err(EncryptError::InsufficientSize(error)) = &written {
        unsent.resize(at + error.required_size, 0);
        written = write(&mut unsent[at..]);
    }
    unsent.truncate(at + *written.as_ref().unwrap_or(&0));
    written.map(drop).map_err(|error| error.to_string())
}
