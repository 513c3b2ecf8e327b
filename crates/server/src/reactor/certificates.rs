//! The broker's certificate and the authorities it trusts: read from files, read again when these
//! change, so that renewing a certificate needs no restart.

use super::tls::{Acceptance, Trust};
use crate::hints;
use crate::settings::{CertificateUser, Encryption, Settings};
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientCertVerifierBuilder, WebPkiClientVerifier};
use rustls::{RootCertStore, crypto::ring};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The files are looked at not more often than this, when a client connects.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// And at least so often where clients' certificates may be taken back.
const REVIEW_INTERVAL: Duration = Duration::from_secs(5);

/// What TLS connections are accepted with.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: Files,
    acceptance: Acceptance,
    /// What open connections are judged by; none: they have not been since it is another.
    judged_by: Option<Trust>,
    /// What it was made from.
    contents: Contents,
    /// When the files had been written that were read last.
    written: Vec<Option<SystemTime>>,
    looked: Instant,
}

/// Which files those are, and how certificates of clients are used.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Files {
    chain: PathBuf,
    key: PathBuf,
    authorities: Option<PathBuf>,
    revocations: Option<PathBuf>,
    verify: Encryption,
    user_in: CertificateUser,
}

/// What is in them.
#[derive(Debug, PartialEq, Eq)]
struct Contents {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// None where there is no file for them.
    authorities: Vec<CertificateDer<'static>>,
    /// The same.
    revocations: Vec<CertificateRevocationListDer<'static>>,
}

/// Whom a shard's clients are judged by.
#[derive(Debug, Default)]
pub(super) struct CertificateReview {
    /// What was trusted last; none: as when the broker started.
    pub(super) trust: Option<Trust>,
    /// The place of the next client to be judged, until all are.
    pub(super) next: Option<usize>,
}

impl CertificateReview {
    /// Whether there are clients still to be judged.
    pub(super) fn is_under_way(&self) -> bool {
        self.next.is_some()
    }
}

impl Files {
    fn of(settings: &Settings) -> Option<Files> {
        Some(Files {
            chain: settings.tls_certificate.clone()?,
            key: settings.tls_key.clone()?,
            authorities: settings.tls_client_authorities.clone(),
            revocations: settings.tls_client_revocations.clone(),
            verify: settings.tls_client_verify,
            user_in: settings.tls_client_user,
        })
    }

    fn written(&self) -> Vec<Option<SystemTime>> {
        let optional = [self.authorities.as_ref(), self.revocations.as_ref()];
        let files = [Some(&self.chain), Some(&self.key)].into_iter().chain(optional);
        let time = |path: &PathBuf| std::fs::metadata(path).and_then(|data| data.modified()).ok();
        files.flatten().map(time).collect()
    }

    fn read(&self) -> Result<Contents, String> {
        Ok(Contents {
            chain: certificates("tls-certificate", &self.chain)?,
            key: PrivateKeyDer::from_pem_file(&self.key).map_err(|error| {
                useless("private key without a password", "tls-key", &self.key, &error)
            })?,
            authorities: match &self.authorities {
                Some(path) => certificates("tls-client-authorities", path)?,
                None => Vec::new(),
            },
            revocations: match &self.revocations {
                Some(path) => revocations("tls-client-revocations", path)?,
                None => Vec::new(),
            },
        })
    }
}

impl Certificates {
    /// Reads the files that the settings name; the error says which is wrong and how.
    pub(crate) fn load(settings: &Settings) -> Result<Certificates, String> {
        let files =
            Files::of(settings).ok_or("amqps needs tls-certificate and tls-key: two PEM files")?;
        let written = files.written();
        let contents = files.read()?;
        let acceptance = accept_by(&files, &contents)?;
        let (judged_by, looked) = (acceptance.trust.clone(), Instant::now());
        Ok(Certificates { files, acceptance, judged_by, contents, written, looked })
    }

    /// What the next connection is accepted with. Files that changed and are wrong are reported,
    /// and the last right ones stay.
    pub(crate) fn acceptance(&mut self, now: Instant) -> Acceptance {
        self.look(now);
        self.acceptance.clone()
    }

    /// Takes over what has changed in the files, where they were not looked at lately.
    pub(crate) fn look(&mut self, now: Instant) {
        if now >= self.looked + LOOK_INTERVAL {
            self.looked = now;
            let written = self.files.written();
            if written != self.written {
                self.written = written;
                self.replace(false);
            }
        }
    }

    /// How long the files need not be looked at if no client connects; none: until one does.
    pub(crate) fn next_look(&self) -> Option<Duration> {
        self.acceptance.trust.is_some().then_some(REVIEW_INTERVAL)
    }

    /// What open connections' certificates are to be judged by, if that has changed since the last call.
    pub(crate) fn take_changed_trust(&mut self) -> Option<Trust> {
        if self.judged_by.is_some() {
            return None;
        }
        self.judged_by.clone_from(&self.acceptance.trust);
        self.judged_by.clone()
    }

    /// Takes changed settings over and reads the files anew.
    pub(crate) fn reload(&mut self, settings: &Settings) {
        let files = Files::of(settings).unwrap_or_else(|| self.files.clone());
        let are_others = files != self.files;
        self.files = files;
        self.written = self.files.written();
        self.replace(are_others);
    }

    /// Takes over what is in the files, if it is something else than before, or used otherwise.
    fn replace(&mut self, are_others: bool) {
        let replaced = match self.files.read() {
            Ok(contents) if contents == self.contents && !are_others => return,
            Ok(contents) => accept_by(&self.files, &contents).map(|made| (made, contents)),
            Err(error) => Err(error),
        };
        match replaced {
            Ok((acceptance, contents)) => {
                (self.acceptance, self.contents) = (acceptance, contents);
                self.judged_by = None;
                let Files { chain, authorities, .. } = &self.files;
                let chain = chain.display().to_string();
                let authorities = authorities.as_ref().map(|path| path.display().to_string());
                tracing::info!(chain, authorities, "changed certificates in use");
            }
            Err(error) => tracing::warn!(%error, "certificates not replaced"),
        }
    }
}

fn accept_by(files: &Files, contents: &Contents) -> Result<Acceptance, String> {
    let config = Arc::new(configure(files, contents)?);
    let trust = verifier(files, contents, |lists| lists)?.map(Trust);
    Ok(Acceptance { config, user_in: files.user_in, trust })
}

/// Who verifies certificates of clients, if any are asked for; `lists`: how lists of revoked ones are used.
fn verifier(
    files: &Files,
    contents: &Contents,
    lists: fn(ClientCertVerifierBuilder) -> ClientCertVerifierBuilder,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, String> {
    let Some(path) = &files.authorities else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    for certificate in &contents.authorities {
        roots.add(certificate.clone()).map_err(|error| wrong(path, &error))?;
    }
    let provider = Arc::new(ring::default_provider());
    let mut verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    if files.verify == Encryption::Optional {
        verifier = verifier.allow_unauthenticated();
    }
    if !contents.revocations.is_empty() {
        verifier = lists(verifier.with_crls(contents.revocations.iter().cloned()));
    }
    let verifier = verifier.build().map_err(|error| format!("'{}': {error}", path.display()))?;
    Ok(Some(verifier))
}

fn configure(files: &Files, contents: &Contents) -> Result<ServerConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?;
    let expiring = ClientCertVerifierBuilder::enforce_revocation_expiration;
    let builder = match verifier(files, contents, expiring)? {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(verifier),
    };
    let mut config = builder
        .with_single_cert(contents.chain.clone(), contents.key.clone_key())
        .map_err(|error| wrong(&files.chain, &error))?;
    config.alpn_protocols = vec![b"amqp".to_vec()];
    Ok(config)
}

fn certificates(setting: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let some = read.and_then(|chain: Vec<_>| match chain.is_empty() {
        true => Err(pem::Error::NoItemsFound),
        false => Ok(chain),
    });
    some.map_err(|error| useless("certificate", setting, path, &error))
}

fn revocations(
    setting: &str,
    path: &Path,
) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let read = CertificateRevocationListDer::pem_file_iter(path).and_then(Iterator::collect);
    let some = read.and_then(|lists: Vec<_>| match lists.is_empty() {
        true => Err(pem::Error::NoItemsFound),
        false => Ok(lists),
    });
    some.map_err(|error| useless("list of revoked certificates", setting, path, &error))
}

/// Why a file does not have what it should.
fn useless(what: &str, setting: &str, path: &Path, error: &pem::Error) -> String {
    let shown = path.display();
    match error {
        pem::Error::Io(error) => hints::unreadable(setting, path, error),
        pem::Error::NoItemsFound => {
            format!("no {what} in '{shown}' ({setting}): a PEM file with one is needed")
        }
        error => format!(
            "no {what} in '{shown}' ({setting}), which is not the PEM it should be: {error}"
        ),
    }
}

fn wrong(path: &Path, error: &rustls::Error) -> String {
    let hint = match error {
        rustls::Error::InconsistentKeys(_) => "; tls-key has to be the key of tls-certificate",
        _ => "",
    };
    format!("the certificate in '{}' cannot be used: {error}{hint}", path.display())
}
