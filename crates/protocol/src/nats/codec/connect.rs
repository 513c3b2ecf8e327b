//! CONNECT: a client's credentials and options.

use super::Malformed;
use crate::nats::frame;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The options of CONNECT.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
#[allow(missing_docs)] // Named as in the protocol; those that need a word have one.
pub struct Connect {
    /// The client wants +OK for everything.
    pub verbose: bool,
    /// The client wants strict checks of its subjects.
    pub pedantic: bool,
    pub tls_required: bool,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub auth_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub pass: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub jwt: Option<String>,
    /// The user's public key.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub nkey: Option<String>,
    /// The signature of the nonce, in base64.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub sig: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub lang: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub version: Option<String>,
    /// 1: the client takes INFO at any time.
    pub protocol: i64,
    /// The client wants its own messages back where it has subscribed to them.
    pub echo: bool,
    /// The client wants to hear when its request has no responders.
    pub no_responders: bool,
    /// The client understands headers.
    pub headers: bool,
    /// What becomes of direct messages for which the client is too slow; an option of this broker alone.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub slow_consumer_policy: Option<String>,
    /// An account is asked for, which no server grants.
    #[serde(skip_serializing, deserialize_with = "is_named")]
    pub account: bool,
    /// It asked for one to be made.
    #[serde(skip_serializing)]
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
    /// Reads the JSON of CONNECT; what it does not name is as in `before`. An option of another type than it
    /// should have is refused, an unknown one or null ignored; names in any case are taken, and bytes that
    /// are not UTF-8 become replacement characters, all as with nats-server.
    pub fn decode(text: &[u8], before: &Connect) -> Result<Connect, Malformed> {
        let text = String::from_utf8_lossy(text);
        let named: Map<String, Value> =
            serde_json::from_str(&text).map_err(|_| Malformed::Arguments)?;
        let Ok(Value::Object(mut options)) = serde_json::to_value(before) else {
            return Err(Malformed::Arguments);
        };
        let named = named.into_iter().filter(|(_, value)| !value.is_null());
        options.extend(named.map(|(name, value)| (name.to_ascii_lowercase(), value)));
        serde_json::from_value(options.into()).map_err(|_| Malformed::Arguments)
    }

    /// Whether it says who the client is.
    #[must_use]
    pub fn has_credentials(&self) -> bool {
        let texts = [&self.user, &self.pass, &self.auth_token, &self.nkey, &self.jwt];
        texts.iter().any(|text| text.is_some()) || self.account || self.new_account
    }

    /// Appends CONNECT.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"CONNECT ");
        serde_json::to_writer(&mut *out, self).expect("texts, numbers and flags are JSON");
        out.extend_from_slice(frame::END);
    }
}

/// An empty text stands for none.
fn text<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    Ok(Some(String::deserialize(value)?).filter(|text| !text.is_empty()))
}

/// Whether an account is named; the name may have any type.
fn is_named<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    Ok(Value::deserialize(value)? != "")
}
