//! INFO: what a server is and allows.

use super::Malformed;
use crate::nats::frame;
use serde::{Deserialize, Serialize};
use std::ops::Not;

/// The fields of INFO. Empty texts and flags that are not set are left out where clients take that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
#[allow(missing_docs)] // Named as in the protocol; those that need a word have one.
pub struct Info {
    pub server_id: String,
    pub server_name: String,
    /// Clients compare it to tell what a server can do.
    pub version: String,
    /// nats-server's compiler; empty in ours. nats-core (Python) does without none of the fields up to
    /// `max_payload`.
    pub go: String,
    /// 1: the server takes `echo` and sends INFO at any time.
    pub proto: usize,
    pub host: String,
    pub port: usize,
    pub headers: bool,
    pub max_payload: usize,
    pub client_id: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_ip: String,
    /// What an nkey user has to sign.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    #[serde(skip_serializing_if = "Not::not")]
    pub auth_required: bool,
    #[serde(skip_serializing_if = "Not::not")]
    pub tls_required: bool,
    #[serde(skip_serializing_if = "Not::not")]
    pub tls_available: bool,
    /// Clients have to show a certificate.
    #[serde(skip_serializing_if = "Not::not")]
    pub tls_verify: bool,
    /// Lame duck mode: the server is about to go.
    #[serde(skip_serializing_if = "Not::not")]
    pub ldm: bool,
    /// Where else clients may connect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connect_urls: Vec<String>,
    /// JetStream is offered. Ours never says so.
    #[serde(skip_serializing_if = "Not::not")]
    pub jetstream: bool,
    /// This INFO answers CONNECT.
    #[serde(skip_serializing_if = "Not::not")]
    pub connect_info: bool,
    /// The account that the client is in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_account: String,
}

impl Info {
    /// Appends INFO.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"INFO ");
        serde_json::to_writer(&mut *out, self).expect("texts, numbers and flags are JSON");
        out.extend_from_slice(frame::END);
    }

    /// Reads the JSON of INFO, for clients.
    pub fn decode(text: &[u8]) -> Result<Info, Malformed> {
        serde_json::from_slice(text).map_err(|_| Malformed::Arguments)
    }
}
