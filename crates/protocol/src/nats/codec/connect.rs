//! CONNECT: a client's credentials and options.

use super::Malformed;
use crate::nats::frame;
use serde::Serialize;
use serde_json::{Map, Value};

/// The options of CONNECT.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // Named as in the protocol; those that need a word have one.
pub struct Connect {
    /// The client wants +OK for everything.
    pub verbose: bool,
    /// The client wants strict checks of its subjects.
    pub pedantic: bool,
    pub tls_required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwt: Option<String>,
    /// The user's public key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nkey: Option<String>,
    /// The signature of the nonce, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sig: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// 1: the client takes INFO at any time.
    pub protocol: i64,
    /// The client wants its own messages back where it has subscribed to them.
    pub echo: bool,
    /// The client wants to hear when nobody takes its request.
    pub no_responders: bool,
    /// The client understands headers.
    pub headers: bool,
    /// What becomes of direct messages for which the client is too slow; an option of this broker alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_consumer_policy: Option<String>,
    /// An account is asked for, which no server grants.
    #[serde(skip)]
    pub account: bool,
    /// It asked for one to be made.
    #[serde(skip)]
    pub new_account: bool,
}

/// What holds where CONNECT says nothing, or before it comes: verbose, for people at a terminal.
impl Default for Connect {
    fn default() -> Connect {
        Connect {
            verbose: true,
            pedantic: true,
            tls_required: false,
            auth_token: None,
            user: None,
            pass: None,
            jwt: None,
            nkey: None,
            sig: None,
            name: None,
            lang: None,
            version: None,
            protocol: 0,
            echo: true,
            no_responders: false,
            headers: false,
            slow_consumer_policy: None,
            account: false,
            new_account: false,
        }
    }
}

/// Secrets are left out.
impl std::fmt::Debug for Connect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connect")
            .field("name", &self.name)
            .field("lang", &self.lang)
            .field("version", &self.version)
            .field("user", &self.user)
            .field("nkey", &self.nkey)
            .finish_non_exhaustive()
    }
}

impl Connect {
    /// Reads the JSON of CONNECT. An option of another type than it should have is refused, an unknown one
    /// ignored; bytes that are not UTF-8 become replacement characters, as with nats-server.
    pub fn decode(text: &[u8]) -> Result<Connect, Malformed> {
        let text = String::from_utf8_lossy(text);
        let options: Map<String, Value> =
            serde_json::from_str(&text).map_err(|_| Malformed::Arguments)?;
        let mut connect = Connect::default();
        for (name, value) in options {
            if !connect.set(&name, value) {
                return Err(Malformed::Arguments);
            }
        }
        Ok(connect)
    }

    /// Sets an option; false: its type is wrong.
    fn set(&mut self, name: &str, value: Value) -> bool {
        if value == Value::Null {
            return true;
        }
        let text = match name {
            "auth_token" => &mut self.auth_token,
            "user" => &mut self.user,
            "pass" => &mut self.pass,
            "jwt" => &mut self.jwt,
            "nkey" => &mut self.nkey,
            "sig" => &mut self.sig,
            "name" => &mut self.name,
            "lang" => &mut self.lang,
            "version" => &mut self.version,
            "slow_consumer_policy" => &mut self.slow_consumer_policy,
            "account" => {
                self.account = value != Value::String(String::new());
                return true;
            }
            "protocol" => {
                let Some(number) = value.as_i64() else { return false };
                self.protocol = number;
                return true;
            }
            _ => return self.set_flag(name, &value),
        };
        let Value::String(given) = value else { return false };
        *text = Some(given).filter(|given| !given.is_empty());
        true
    }

    fn set_flag(&mut self, name: &str, value: &Value) -> bool {
        let flag = match name {
            "verbose" => &mut self.verbose,
            "new_account" => &mut self.new_account,
            "pedantic" => &mut self.pedantic,
            "tls_required" => &mut self.tls_required,
            "echo" => &mut self.echo,
            "no_responders" => &mut self.no_responders,
            "headers" => &mut self.headers,
            // Unknown options change nothing.
            _ => return true,
        };
        let Value::Bool(given) = value else { return false };
        *flag = *given;
        true
    }

    /// Appends CONNECT.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"CONNECT ");
        serde_json::to_writer(&mut *out, self).expect("texts, numbers and flags are JSON");
        out.extend_from_slice(frame::END);
    }
}
