//! Ports that are taken, and clients that come to them; TLS: handshakes over memory, names in certificates,
//! certificates that change.

use super::certificates::Certificates;
use super::listeners::{bind, bind_all, complaint, listen_all};
use super::tls::Tls;
use crate::settings::{Encryption, Settings, Sources};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, date_time_ymd,
};
use rustix::io::Errno;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    let mut roots = RootCertStore::empty();
    roots.add(authority.0.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
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
        tls.receive(&ciphertext, &mut plain)?;
        tls.send(&socket, &[]);
        while client.read_tls(&mut &theirs).is_ok_and(|count| count > 0) {
            client.process_new_packets().map_err(|error| error.to_string())?;
        }
    }
    Ok(plain)
}

#[test]
fn plaintext_comes_out_of_ciphertext() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    write(folder.path(), &authority, "broker");
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
fn a_certificate_says_who_a_client_is() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    write(folder.path(), &authority, "broker");
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
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    write(folder.path(), &authority, "broker");
    let mut certificates = Certificates::load(&settings(folder.path())).unwrap();
    let mut tls = Tls::begin(certificates.acceptance(Instant::now())).unwrap();
    let mut client = client(&authority, Some(Authority::new().issue(Some("eve"))));
    assert!(converse(&mut client, &mut tls).is_err());
    let mut tls = Tls::begin(certificates.acceptance(Instant::now())).unwrap();
    assert!(tls.receive(b"AMQP\0\0\x09\x01 is no TLS at all", &mut Vec::new()).is_err());
}

#[test]
fn a_certificate_can_be_demanded() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    write(folder.path(), &authority, "broker");
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
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    write(folder.path(), &authority, "broker");
    let list = folder.path().join("revoked.pem");
    std::fs::write(&list, authority.revoke(7, 4000)).unwrap();
    let settings =
        Settings { tls_client_revocations: Some(list.clone()), ..settings(folder.path()) };
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
    assert!(std::net::TcpStream::connect(address).is_err());
    let listener = bound.listen().unwrap();
    assert_eq!(listener.local_addr().unwrap(), address);
    std::net::TcpStream::connect(address).unwrap();
}

#[test]
fn what_is_sent_to_clients_on_this_machine_is_not_paced() {
    let flags = [("amqp", "127.0.0.1:0"), ("nats", "off")];
    let flags = flags.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let settings = Sources { flags, ..Sources::default() }.read().unwrap();
    let listeners = listen_all(bind_all(&settings).unwrap(), &settings).unwrap();
    // Set after a connection has begun, it would leave the pacing on.
    assert_eq!(rustix::net::sockopt::tcp_congestion(&listeners[0].fd).unwrap(), "reno");
    let address = listeners[0].shown.strip_prefix("amqp on ").unwrap();
    let _client = std::net::TcpStream::connect(address).unwrap();
    let accepted = loop {
        match listeners[0].accept() {
            Ok(Some(client)) => break client,
            Ok(None) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    assert!(accepted.1.local);
    assert_eq!(rustix::net::sockopt::tcp_congestion(&accepted.0).unwrap(), "reno");
}
