//! INFO: what a server is and allows.

use crate::json::{self, NotJson, ObjectWriter, Value};
use crate::nats::frame;

/// What INFO says. Texts that are empty and flags that are not set are left out, but for `headers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Named as in the protocol; those that need a word have one.
pub struct Info {
    pub server_id: String,
    pub server_name: String,
    /// Clients compare it to tell what a server can do.
    pub version: String,
    /// 1: the server takes `echo` and sends INFO at any time.
    pub proto: usize,
    pub host: String,
    pub port: usize,
    pub headers: bool,
    pub max_payload: usize,
    pub client_id: usize,
    pub client_ip: String,
    /// What an nkey user has to sign.
    pub nonce: String,
    pub auth_required: bool,
    pub tls_required: bool,
    pub tls_available: bool,
    pub tls_verify: bool,
    /// Lame duck mode: the server is about to go.
    pub ldm: bool,
    /// Where else clients may connect.
    pub connect_urls: Vec<String>,
    /// JetStream is offered. Ours never says so.
    pub jetstream: bool,
    /// This INFO answers CONNECT.
    pub connect_info: bool,
    /// The account that the client is in.
    pub remote_account: String,
}

impl Info {
    /// Appends INFO.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"INFO ");
        let mut object = ObjectWriter::new(out);
        object.text("server_id", &self.server_id);
        object.text("server_name", &self.server_name);
        object.text("version", &self.version);
        object.number("proto", self.proto);
        object.text("host", &self.host);
        object.number("port", self.port);
        object.bool("headers", self.headers);
        object.number("max_payload", self.max_payload);
        object.number("client_id", self.client_id);
        for (name, text) in [
            ("client_ip", &self.client_ip),
            ("nonce", &self.nonce),
            ("remote_account", &self.remote_account),
        ] {
            if !text.is_empty() {
                object.text(name, text);
            }
        }
        for (name, flag) in [
            ("auth_required", self.auth_required),
            ("tls_required", self.tls_required),
            ("tls_available", self.tls_available),
            ("tls_verify", self.tls_verify),
            ("ldm", self.ldm),
            ("jetstream", self.jetstream),
            ("connect_info", self.connect_info),
        ] {
            if flag {
                object.bool(name, true);
            }
        }
        if !self.connect_urls.is_empty() {
            object.name("connect_urls");
            for (index, url) in self.connect_urls.iter().enumerate() {
                object.out.push(if index == 0 { b'[' } else { b',' });
                json::put_text(object.out, url);
            }
            object.out.push(b']');
        }
        object.end();
        out.extend_from_slice(frame::END);
    }

    /// Reads the JSON behind INFO, for clients; `connect_urls` are passed over.
    pub fn decode(text: &[u8]) -> Result<Info, NotJson> {
        let mut info = Info::default();
        json::members(text, |name, value| info.set(name, value))?;
        Ok(info)
    }

    fn set(&mut self, name: &str, value: Value<'_>) {
        match value {
            Value::Text(given) => {
                let text = match name {
                    "server_id" => &mut self.server_id,
                    "server_name" => &mut self.server_name,
                    "version" => &mut self.version,
                    "host" => &mut self.host,
                    "client_ip" => &mut self.client_ip,
                    "nonce" => &mut self.nonce,
                    "remote_account" => &mut self.remote_account,
                    _ => return,
                };
                *text = given.into_owned();
            }
            Value::Number(given) => {
                let number = match name {
                    "proto" => &mut self.proto,
                    "port" => &mut self.port,
                    "max_payload" => &mut self.max_payload,
                    "client_id" => &mut self.client_id,
                    _ => return,
                };
                *number = usize::try_from(given).unwrap_or(0);
            }
            Value::Bool(given) => {
                let flag = match name {
                    "headers" => &mut self.headers,
                    "auth_required" => &mut self.auth_required,
                    "tls_required" => &mut self.tls_required,
                    "tls_available" => &mut self.tls_available,
                    "tls_verify" => &mut self.tls_verify,
                    "ldm" => &mut self.ldm,
                    "jetstream" => &mut self.jetstream,
                    "connect_info" => &mut self.connect_info,
                    _ => return,
                };
                *flag = given;
            }
            Value::Null | Value::Other => {}
        }
    }
}
