//! Ports that are taken, and clients that come to them; TLS: handshakes over memory, names in certificates,
//! certificates that change.

use super::certificates::Certificates;
use super::listeners::{Accepted, Listener, bind, bind_all, complaint, listen_all};
use super::tls::Tls;
use crate::settings::{Encryption, Settings, Sources};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, date_time_ymd,
};
use rustix::io::Errno;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate for `localhost` whose subject has that common name, and its key.
    fn issue(&self, common_name: Option<&str>) -> (CertificateDer<'static>, KeyPair) {
        self.issue_with(common_name, 1)
    }

    /// The same, with that serial number.
    fn issue_with(
        &self,
        common_name: Option<&str>,
        serial: u64,
    ) -> (CertificateDer<'static>, KeyPair) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.serial_number = Some(serial.into());
        if let Some(name) = common_name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.der().clone(), key)
    }

    /// The list of revoked certificates with this one on it, to be renewed in that year.
    fn revoke(&self, serial: u64, next_update: i32) -> String {
        let revoked = RevokedCertParams {
            serial_number: serial.into(),
            revocation_time: date_time_ymd(2000, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2000, 1, 1),
            next_update: date_time_ymd(next_update, 1, 2),
            crl_number: 1_u64.into(),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.0).unwrap().pem().unwrap()
    }
}

fn pem(certificate: &CertificateDer<'_>) -> String {
    use base64::Engine as _;
    let body = base64::prelude::BASE64_STANDARD.encode(certificate);
    format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
}

fn write(folder: &Path, authority: &Authority, common_name: &str) -> CertificateDer<'static> {
    let (certificate, key) = authority.issue(Some(common_name));
    std::fs::write(folder.join("chain.pem"), pem(&certificate)).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    std::fs::write(folder.join("ca.pem"), pem(authority.0.der())).unwrap();
    certificate
}

/// A folder with a broker's certificate, and who issued it.
fn with_certificate() -> (TempDir, Authority) {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    write(folder.path(), &authority, "broker");
    (folder, authority)
}

/// A file with a list of revoked certificates, and settings that name it.
fn with_revocations(folder: &Path, contents: String) -> (PathBuf, Settings) {
    let list = folder.join("revoked.pem");
    std::fs::write(&list, contents).unwrap();
    let settings = Settings { tls_client_revocations: Some(list.clone()), ..settings(folder) };
    (list, settings)
}

fn settings(folder: &Path) -> Settings {
    let path = |name: &str| folder.join(name).display().to_string();
    let flags = [
        ("tls-certificate", path("chain.pem")),
        ("tls-key", path("key.pem")),
        ("tls-client-authorities", path("ca.pem")),
    ];
    let flags = flags.map(|(name, value)| (name.to_owned(), value));
    Sources { flags: flags.into(), ..Sources::default() }.read().unwrap()
}

fn client(
    authority: &Authority,
    identity: Option<(CertificateDer<'static>, KeyPair)>,
) -> ClientConnection {
    client_of(rustls::ALL_VERSIONS, authority, identity)
}

/// The same, of these versions of TLS.
fn client_of(
    versions: &[&'static rustls::SupportedProtocolVersion],
    authority: &Authority,
    identity: Option<(CertificateDer<'static>, KeyPair)>,
) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(authority.0.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap()
}

/// Runs both sides until neither has more to say; returns what the broker's side read.
fn converse(client: &mut ClientConnection, tls: &mut Tls) -> Result<Vec<u8>, String> {
    converse_in(client, tls, usize::MAX)
}

/// The same where the client's bytes come in pieces of that length.
fn converse_in(
    client: &mut ClientConnection,
    tls: &mut Tls,
    bytes: usize,
) -> Result<Vec<u8>, String> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let socket = super::socket::Socket::new(ours.into());
    let mut plain = Vec::new();
    for _ in 0..10 {
        let mut ciphertext = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut ciphertext).unwrap();
        }
        for piece in ciphertext.chunks_mut(bytes) {
            tls.receive(piece, &mut plain)?;
            tls.send(&socket, &[]);
        }
        tls.send(&socket, &[]);
        while client.read_tls(&mut &theirs).is_ok_and(|count| count > 0) {
            client.process_new_packets().map_err(|error| error.to_string())?;
        }
    }
    Ok(plain)
}

#[test]
fn plaintext_comes_out_of_ciphertext() {
    let (folder, authority) = with_certificate();
    let mut certificates = Certificates::load(&settings(folder.path())).unwrap();
    let mut tls = Tls::begin(certificates.acceptance(Instant::now())).unwrap();
    let mut client = client(&authority, None);
    let sent = vec![7; 100_000];
    let mut received = converse(&mut client, &mut tls).unwrap();
    assert!(!tls.is_handshaking());
    assert_eq!(tls.certificate_name(), None);
    for part in sent.chunks(10_000) {
        client.writer().write_all(part).unwrap();
        received.extend(converse(&mut client, &mut tls).unwrap());
    }
    assert_eq!(received, sent);
}

#[test]
fn a_clients_bytes_may_come_in_any_pieces() {
    let (folder, authority) = with_certificate();
    let mut certificates = Certificates::load(&settings(folder.path())).unwrap();
    let versions = [&rustls::version::TLS12, &rustls::version::TLS13];
    let cases = versions.iter().flat_map(|version| [1, 2, 5, 100, 1_000].map(|it| (version, it)));
    for (version, bytes) in cases {
        let mut tls = Tls::begin(certificates.acceptance(Instant::now())).unwrap();
        let identity = authority.issue(Some("ada"));
        let mut client = client_of(&[version], &authority, Some(identity));
        let mut received = converse_in(&mut client, &mut tls, bytes).unwrap();
        for text in ["first", "second"] {
            client.writer().write_all(text.as_bytes()).unwrap();
            received.extend(converse_in(&mut client, &mut tls, bytes).unwrap());
        }
        assert_eq!(String::from_utf8_lossy(&received), "firstsecond", "{bytes}");
        client.send_close_notify();
        converse_in(&mut client, &mut tls, bytes).unwrap();
        assert!(tls.is_over, "{bytes}");
    }
}

#[test]
fn what_is_sent_arrives_however_little_the_client_takes() {
    let (folder, authority) = with_certificate();
    let mut certificates = Certificates::load(&settings(folder.path())).unwrap();
    let mut tls = Tls::begin(certificates.acceptance(Instant::now())).unwrap();
    let mut client = client(&authority, None);
    converse(&mut client, &mut tls).unwrap();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let socket = super::socket::Socket::new(ours.into());
    let whole: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    let (mut taken, mut received) = (0, Vec::new());
    while received.len() < whole.len() {
        // Small pieces, one that is larger than a record, and one that is larger than what is buffered.
        let rest = &whole[taken..];
        let ends = [10, 20, 5_000, 40_000, 200_000].map(|end| rest.len().min(end));
        let pieces =
            [0..ends[0], ends[0]..ends[1], ends[1]..ends[2], ends[2]..ends[3], ends[3]..ends[4]];
        let pieces = pieces.map(|piece| std::io::IoSlice::new(&rest[piece]));
        match tls.send(&socket, &pieces) {
            super::socket::Sent::Bytes(count) => taken += count,
            super::socket::Sent::Full => assert!(!tls.is_flushed()),
            super::socket::Sent::Ended => panic!("it has ended"),
        }
        while client.read_tls(&mut (&theirs).take(30_000)).is_ok_and(|count| count > 0) {
            client.process_new_packets().unwrap();
            let from = received.len();
            received.resize(from + 100_000, 0);
            let read = client.reader().read(&mut received[from..]).unwrap_or(0);
            received.truncate(from + read);
        }
    }
    assert!(received == whole && tls.is_flushed());
    tls.end_output(&socket);
    client.read_tls(&mut &theirs).unwrap();
    assert!(client.process_new_packets().unwrap().peer_has_closed());
}

#[test]
fn wrong_bytes_of_a_handshake_end_it_and_nothing_else() {
    let (folder, authority) = with_certificate();
    let mut certificates = Certificates::load(&settings(folder.path())).unwrap();
    let mut hello = Vec::new();
    client(&authority, None).write_tls(&mut hello).unwrap();
    let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let socket = super::socket::Socket::new(ours.into());
    for at in 0..hello.len() {
        for (flip, bytes) in [(0x80, usize::MAX), (0x01, 7), (0xff, 60)] {
            let mut wrong = hello.clone();
            wrong[at] ^= flip;
            // What follows is of another kind.
            wrong.extend_from_slice(&[22, 3, 3, 0, 3, 1, 0, 0, 23, 3, 3, 0, 1, 0]);
            let mut tls = Tls::begin(certificates.acceptance(Instant::now())).unwrap();
            for piece in wrong.chunks_mut(bytes) {
                let _ = tls.receive(piece, &mut Vec::new());
                tls.send(&socket, &[]);
            }
            tls.send(&socket, &[std::io::IoSlice::new(b"x")]);
            tls.end_output(&socket);
            assert!(tls.is_handshaking());
        }
    }
}

#[test]
fn a_certificate_says_who_a_client_is() {
    let (folder, authority) = with_certificate();
    let mut certificates = Certificates::load(&settings(folder.path())).unwrap();
    for (common_name, expected) in [(Some("ada"), Some("ada")), (None, None)] {
        let mut tls = Tls::begin(certificates.acceptance(Instant::now())).unwrap();
        let mut client = client(&authority, Some(authority.issue(common_name)));
        converse(&mut client, &mut tls).unwrap();
        assert_eq!(tls.certificate_name().as_deref(), expected);
    }
}

#[test]
fn a_certificate_of_a_stranger_is_refused() {
    let (folder, authority) = with_certificate();
    let mut certificates = Certificates::load(&settings(folder.path())).unwrap();
    let mut tls = Tls::begin(certificates.acceptance(Instant::now())).unwrap();
    let mut client = client(&authority, Some(Authority::new().issue(Some("eve"))));
    assert!(converse(&mut client, &mut tls).is_err());
    let mut tls = Tls::begin(certificates.acceptance(Instant::now())).unwrap();
    assert!(
        tls.receive(&mut b"AMQP\0\0\x09\x01 is no TLS at all".to_owned(), &mut Vec::new()).is_err()
    );
}

#[test]
fn a_certificate_can_be_demanded() {
    let (folder, authority) = with_certificate();
    let settings = Settings { tls_client_verify: Encryption::Required, ..settings(folder.path()) };
    let mut certificates = Certificates::load(&settings).unwrap();
    for (identity, is_taken) in [(None, false), (Some(authority.issue(Some("ada"))), true)] {
        let mut tls = Tls::begin(certificates.acceptance(Instant::now())).unwrap();
        let mut client = client(&authority, identity);
        assert_eq!(converse(&mut client, &mut tls).is_ok(), is_taken);
    }
}

#[test]
fn a_revoked_certificate_is_refused_and_the_list_is_read_again() {
    let (folder, authority) = with_certificate();
    let (list, settings) = with_revocations(folder.path(), authority.revoke(7, 4000));
    let mut certificates = Certificates::load(&settings).unwrap();
    let mut now = Instant::now();
    let mut talk = |serial: Option<u64>| {
        now += Duration::from_secs(2);
        let mut tls = Tls::begin(certificates.acceptance(now)).unwrap();
        let identity = serial.map(|serial| authority.issue_with(Some("ada"), serial));
        converse(&mut client(&authority, identity), &mut tls).map(drop)
    };
    for (serial, is_taken) in [(Some(6), true), (Some(7), false), (None, true)] {
        assert_eq!(talk(serial).is_ok(), is_taken, "{serial:?}");
    }
    std::fs::write(&list, authority.revoke(8, 4000)).unwrap();
    assert_eq!([7, 8].map(|serial| talk(Some(serial)).is_ok()), [true, false]);
    // What a list says that should have been renewed is not known to hold; nor is anything without one.
    std::fs::write(&list, authority.revoke(8, 2000)).unwrap();
    let error = talk(Some(7)).unwrap_err();
    assert!(error.contains("expired"), "{error}");
    std::fs::write(&list, Authority::new().revoke(8, 4000)).unwrap();
    assert!(talk(Some(7)).is_err());
    std::fs::write(&list, "nothing").unwrap();
    assert!(talk(Some(7)).is_err(), "the last list that was right stays");
    let error = Certificates::load(&settings).unwrap_err();
    assert!(error.contains("no list of revoked certificates in "), "{error}");
}

#[test]
fn who_shows_a_certificate_that_is_revoked_later_is_not_trusted_any_more() {
    let (folder, authority) = with_certificate();
    let (list, settings) = with_revocations(folder.path(), authority.revoke(7, 4000));
    let mut certificates = Certificates::load(&settings).unwrap();
    assert!(certificates.take_changed_trust().is_none());
    let connected: Vec<Box<Tls>> = [Some(8), Some(9), None]
        .into_iter()
        .map(|serial| {
            let mut tls = Tls::begin(certificates.acceptance(Instant::now())).unwrap();
            let identity = serial.map(|serial| authority.issue_with(Some("ada"), serial));
            converse(&mut client(&authority, identity), &mut tls).unwrap();
            tls
        })
        .collect();
    let stranger = Authority::new();
    for (contents, authority, is_distrusted) in [
        (authority.revoke(8, 4000), &authority, [true, false, false]),
        // That it should have been renewed is no reason.
        (authority.revoke(9, 2000), &authority, [false, true, false]),
        (stranger.revoke(7, 4000), &authority, [false, false, false]),
        (authority.revoke(7, 4000), &stranger, [true, true, false]),
    ] {
        std::fs::write(&list, contents).unwrap();
        std::fs::write(folder.path().join("ca.pem"), pem(authority.0.der())).unwrap();
        certificates.reload(&settings);
        let trust = certificates.take_changed_trust().unwrap();
        let found = connected.iter().map(|tls| tls.distrusted(&trust).is_some());
        assert_eq!(found.collect::<Vec<_>>(), is_distrusted);
        assert!(certificates.take_changed_trust().is_none(), "they are judged once");
    }
}

#[test]
fn a_changed_certificate_is_used_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let first = write(folder.path(), &authority, "first");
    let mut certificates = Certificates::load(&settings(folder.path())).unwrap();
    let mut now = Instant::now();
    let mut shown = |certificates: &mut Certificates| {
        now += Duration::from_secs(2);
        let mut tls = Tls::begin(certificates.acceptance(now)).unwrap();
        let mut client = client(&authority, None);
        converse(&mut client, &mut tls).unwrap();
        client.peer_certificates().unwrap()[0].clone().into_owned()
    };
    assert_eq!(shown(&mut certificates), first);
    std::fs::write(folder.path().join("chain.pem"), "broken").unwrap();
    assert_eq!(shown(&mut certificates), first);
    let second = write(folder.path(), &authority, "second");
    assert_eq!(shown(&mut certificates), second);
}

#[test]
fn what_has_not_changed_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    write(folder.path(), &authority, "first");
    let settings = settings(folder.path());
    let mut certificates = Certificates::load(&settings).unwrap();
    let mut now = Instant::now();
    let mut used = certificates.acceptance(now);
    let mut is_replaced = |certificates: &mut Certificates| {
        now += Duration::from_secs(2);
        let before = std::mem::replace(&mut used, certificates.acceptance(now));
        !Arc::ptr_eq(&before.config, &used.config)
    };
    certificates.reload(&settings);
    assert!(!is_replaced(&mut certificates));
    let chain = folder.path().join("chain.pem");
    let text = std::fs::read(&chain).unwrap();
    std::fs::write(&chain, text).unwrap();
    assert!(!is_replaced(&mut certificates));
    let authorities = [pem(authority.0.der()), pem(Authority::new().0.der())].concat();
    std::fs::write(folder.path().join("ca.pem"), authorities).unwrap();
    certificates.reload(&settings);
    assert!(is_replaced(&mut certificates));
    write(folder.path(), &authority, "second");
    certificates.reload(&settings);
    assert!(is_replaced(&mut certificates));
}

#[test]
fn wrong_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = |parts: &[&str]| {
        let error = Certificates::load(&settings(folder.path())).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
    };
    wrong(&["cannot read '", "chain.pem' (tls-certificate)", "put it there"]);
    write(folder.path(), &Authority::new(), "broker");
    let key = folder.path().join("key.pem");
    std::fs::write(&key, "").unwrap();
    wrong(&["no private key without a password in '", "key.pem' (tls-key)", "PEM"]);
    let other = KeyPair::generate().unwrap().serialize_pem();
    std::fs::write(&key, other).unwrap();
    wrong(&["chain.pem' cannot be used", "tls-key has to be the key of tls-certificate"]);
    // A file that is there and cannot be read is no file without a key.
    std::fs::remove_file(&key).unwrap();
    std::fs::create_dir(&key).unwrap();
    wrong(&["cannot read '", "key.pem' (tls-key)"]);
}

#[test]
fn a_port_that_cannot_be_had_has_a_way_out() {
    let address = "127.0.0.1:80".parse().unwrap();
    for (error, hint) in [
        (Errno::ACCESS, "CAP_NET_BIND_SERVICE"),
        (Errno::ADDRINUSE, "another program listens there"),
        (Errno::ADDRNOTAVAIL, "does not have that address"),
    ] {
        let said = complaint("nats", address, error);
        for part in ["127.0.0.1:80 (nats)", hint, "--nats ADDR:PORT", "--nats off"] {
            assert!(said.contains(part), "{said}");
        }
    }
}

#[test]
fn a_port_refuses_clients_until_it_listens() {
    // A free port: one that was listened on a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    assert!(bind("amqp", address).unwrap_err().contains("another program listens"));
    drop(free);
    let bound = bind("amqp", address).unwrap();
    assert!(TcpStream::connect(address).is_err());
    let listener = bound.listen().unwrap();
    assert_eq!(listener.local_addr().unwrap(), address);
    TcpStream::connect(address).unwrap();
}

/// The listener for AMQP by these further flags, a client that connected to it, and its end here.
fn accept_one(flags: &[(&str, &str)]) -> (Listener, TcpStream, OwnedFd) {
    let flags =
        [&[("amqp", "127.0.0.1:0"), ("nats", "off"), ("stomp", "off"), ("mqtt", "off")], flags]
            .concat();
    let flags = flags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let settings = Sources { flags: flags.collect(), ..Sources::default() }.read().unwrap();
    let mut listeners = listen_all(bind_all(&settings).unwrap(), &settings).unwrap();
    let listener = listeners.remove(0);
    let client = TcpStream::connect(listener.shown.strip_prefix("amqp on ").unwrap()).unwrap();
    loop {
        match listener.accept() {
            Ok(Some(Accepted { fd, peer, .. })) => {
                assert!(peer.local);
                return (listener, client, fd);
            }
            Ok(None) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn what_is_sent_to_clients_on_this_machine_is_not_paced() {
    let (listener, _client, accepted) = accept_one(&[]);
    // Set after a connection has begun, it would leave the pacing on.
    assert_eq!(rustix::net::sockopt::tcp_congestion(&listener.fd).unwrap(), "reno");
    assert_eq!(rustix::net::sockopt::tcp_congestion(&accepted).unwrap(), "reno");
}

#[test]
fn a_client_that_takes_nothing_of_what_the_machine_holds_for_it_is_ended() {
    let (_listener, _client, accepted) = accept_one(&[("send-timeout", "1s")]);
    let mut written = 0;
    let start = Instant::now();
    let end = loop {
        match rustix::io::write(&accepted, &[0; 1 << 16]) {
            Ok(count) => written += count,
            Err(Errno::AGAIN) if start.elapsed() < Duration::from_secs(20) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => break other,
        }
    };
    assert_eq!(end, Err(Errno::TIMEDOUT), "{written} bytes written");
    assert!(start.elapsed() >= Duration::from_millis(900));
}
