//! CONNECT: who a client is and what it wants.

use crate::json::{self, NotJson, ObjectWriter, Value};
use crate::nats::frame;

/// The options of CONNECT.
#[derive(Clone, PartialEq, Eq)]
#[allow(missing_docs)] // Named as in the protocol; those that need a word have one.
pub struct Connect {
    /// The client wants +OK for everything.
    pub verbose: bool,
    /// The client wants strict checks of its subjects.
    pub pedantic: bool,
    pub tls_required: bool,
    pub auth_token: Option<String>,
    pub user: Option<String>,
    pub pass: Option<String>,
    pub jwt: Option<String>,
    /// The user's public key.
    pub nkey: Option<String>,
    /// The signature of the nonce, in base64.
    pub sig: Option<String>,
    pub name: Option<String>,
    pub lang: Option<String>,
    pub version: Option<String>,
    /// 1: the client takes INFO at any time.
    pub protocol: i64,
    /// The client wants its own messages back where it has subscribed to them.
    pub echo: bool,
    /// The client wants to hear when nobody takes its request.
    pub no_responders: bool,
    /// The client understands headers.
    pub headers: bool,
    /// What is to become of direct messages for which the client is too slow: no option of NATS's.
    pub slow_consumer_policy: Option<String>,
    /// An account is asked for, which no server grants.
    pub account: bool,
    /// It asked for one to be made.
    pub new_account: bool,
}

/// What holds where CONNECT says nothing, or before it comes: a person at a terminal is told much.
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
    /// Reads the JSON behind CONNECT. An option of another type than it should have is refused; what is no
    /// UTF-8 becomes replacement characters, as with nats-server.
    pub fn decode(text: &[u8]) -> Result<Connect, NotJson> {
        let text = String::from_utf8_lossy(text);
        let mut connect = Connect::default();
        let mut is_right = true;
        json::members(text.as_bytes(), |name, value| is_right &= connect.set(name, value))?;
        if is_right { Ok(connect) } else { Err(NotJson) }
    }

    fn set(&mut self, name: &str, value: Value<'_>) -> bool {
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
                self.account = value != Value::Text("".into());
                return true;
            }
            "protocol" => {
                let Value::Number(number) = value else { return false };
                self.protocol = number;
                return true;
            }
            _ => return self.set_flag(name, &value),
        };
        let Value::Text(given) = value else { return false };
        *text = Some(given.into_owned()).filter(|given| !given.is_empty());
        true
    }

    fn set_flag(&mut self, name: &str, value: &Value<'_>) -> bool {
        let flag = match name {
            "verbose" => &mut self.verbose,
            "new_account" => &mut self.new_account,
            "pedantic" => &mut self.pedantic,
            "tls_required" => &mut self.tls_required,
            "echo" => &mut self.echo,
            "no_responders" => &mut self.no_responders,
            "headers" => &mut self.headers,
            // Options that nobody has heard of change nothing.
            _ => return true,
        };
        let Value::Bool(given) = value else { return false };
        *flag = *given;
        true
    }

    /// Appends CONNECT.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"CONNECT ");
        let mut object = ObjectWriter::new(out);
        for (name, value) in [
            ("verbose", self.verbose),
            ("pedantic", self.pedantic),
            ("tls_required", self.tls_required),
            ("echo", self.echo),
            ("no_responders", self.no_responders),
            ("headers", self.headers),
        ] {
            object.bool(name, value);
        }
        for (name, value) in [
            ("auth_token", &self.auth_token),
            ("user", &self.user),
            ("pass", &self.pass),
            ("jwt", &self.jwt),
            ("nkey", &self.nkey),
            ("sig", &self.sig),
            ("name", &self.name),
            ("lang", &self.lang),
            ("version", &self.version),
            ("slow_consumer_policy", &self.slow_consumer_policy),
        ] {
            if let Some(value) = value {
                object.text(name, value);
            }
        }
        object.number("protocol", usize::try_from(self.protocol).unwrap_or(0));
        object.end();
        out.extend_from_slice(frame::END);
    }
}
