//! The broker's certificate and the authorities it trusts: read from files, read again when these
//! change, so that renewing a certificate needs no restart.

use crate::hints;
use crate::settings::Settings;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, crypto::ring};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The files are looked at not more often than this, when a client connects.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What TLS connections are accepted with.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: Files,
    config: Arc<ServerConfig>,
    /// What `config` was made from.
    contents: Contents,
    /// When the files had been written that were read last.
    written: Vec<Option<SystemTime>>,
    looked: Instant,
}

/// Which files those are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Files {
    chain: PathBuf,
    key: PathBuf,
    authorities: Option<PathBuf>,
}

/// What is in them.
#[derive(Debug, PartialEq, Eq)]
struct Contents {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// None where there is no file for them.
    authorities: Vec<CertificateDer<'static>>,
}

impl Files {
    fn of(settings: &Settings) -> Option<Files> {
        Some(Files {
            chain: settings.tls_certificate.clone()?,
            key: settings.tls_key.clone()?,
            authorities: settings.tls_client_authorities.clone(),
        })
    }

    fn written(&self) -> Vec<Option<SystemTime>> {
        let files = [Some(&self.chain), Some(&self.key), self.authorities.as_ref()];
        let time = |path: &PathBuf| std::fs::metadata(path).and_then(|data| data.modified()).ok();
        files.into_iter().flatten().map(time).collect()
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
        let config = Arc::new(configure(&files, &contents)?);
        Ok(Certificates { files, config, contents, written, looked: Instant::now() })
    }

    /// What the next connection is accepted with. Files that changed and are wrong are reported,
    /// and the last right ones stay.
    pub(crate) fn config(&mut self, now: Instant) -> Arc<ServerConfig> {
        if now >= self.looked + LOOK_INTERVAL {
            self.looked = now;
            let written = self.files.written();
            if written != self.written {
                self.written = written;
                self.replace();
            }
        }
        Arc::clone(&self.config)
    }

    /// Takes changed settings over and reads the files anew.
    pub(crate) fn reload(&mut self, settings: &Settings) {
        if let Some(files) = Files::of(settings) {
            self.files = files;
        }
        self.written = self.files.written();
        self.replace();
    }

    /// Takes over what is in the files, if it is something else than before.
    fn replace(&mut self) {
        let replaced = match self.files.read() {
            Ok(contents) if contents == self.contents => return,
            Ok(contents) => configure(&self.files, &contents).map(|config| (config, contents)),
            Err(error) => Err(error),
        };
        match replaced {
            Ok((config, contents)) => {
                (self.config, self.contents) = (Arc::new(config), contents);
                let Files { chain, authorities, .. } = &self.files;
                let authorities = authorities.as_ref().map(tracing::field::debug);
                tracing::info!(?chain, authorities, "changed certificates in use");
            }
            Err(error) => tracing::warn!(%error, "certificates not replaced"),
        }
    }
}

fn configure(files: &Files, contents: &Contents) -> Result<ServerConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?;
    let builder = match &files.authorities {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in &contents.authorities {
                roots.add(certificate.clone()).map_err(|error| wrong(path, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| format!("'{}': {error}", path.display()))?;
            builder.with_client_cert_verifier(verifier)
        }
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
