//! Which broker `publish` and `consume` are clients of: its address, and how they log in.

use super::transport;
pub(super) use crate::amqp_client::{Client, Event, Message};
use crate::amqp_client::{Login, Stream};
use angarium_bench::secrets;
use clap::Args;

const DEFAULT_URI: &str = "amqp://guest:guest@127.0.0.1:5672/";

/// Which broker to talk to.
#[derive(Args, Clone, Debug)]
pub(super) struct Target {
    /// The broker: amqp://USER@HOST:PORT/VHOST, or amqps:// for TLS
    #[arg(long, value_name = "URI", default_value = DEFAULT_URI)]
    #[arg(env = "ANGARIUM_URI", hide_env_values = true)]
    pub(super) uri: String,
    /// Has the user's password in its first line; else ANGARIUM_PASSWORD
    #[arg(long, value_name = "FILE")]
    pub(super) password_file: Option<std::path::PathBuf>,
    /// Its Unix socket, instead of host and port
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<std::path::PathBuf>,
    /// For amqps: certificates of the authorities to trust (PEM), instead of the system's
    #[arg(long, value_name = "FILE", env = "ANGARIUM_AUTHORITIES")]
    pub(super) authorities: Option<std::path::PathBuf>,
}

/// The parts of an AMQP URI.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Uri {
    pub(super) tls: bool,
    pub(super) address: String,
    pub(super) user: String,
    /// None: it is to be had elsewhere.
    pub(super) password: Option<String>,
    pub(super) vhost: String,
}

impl Uri {
    /// Reads `amqp://user:password@host:port/vhost`; every part but the scheme may be missing. An
    /// empty virtual host is the default one, although in RabbitMQ's URI specification `amqp://host/` names
    /// the virtual host "".
    pub(super) fn parse(text: &str) -> Result<Uri, String> {
        let (tls, rest) = match (text.strip_prefix("amqp://"), text.strip_prefix("amqps://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => {
                let form = "amqp://USER:PASSWORD@HOST:PORT/VHOST (or amqps://)";
                return Err(format!("expected {form}, not '{text}'"));
            }
        };
        let port = if tls { 5671 } else { 5672 };
        let (authority, path) = rest.split_once('/').map_or((rest, None), |(a, p)| (a, Some(p)));
        let (login, host) = authority.rsplit_once('@').unwrap_or(("guest:guest", authority));
        let (user, password) =
            login.split_once(':').map_or((login, None), |(user, it)| (user, Some(it)));
        let host = if host.is_empty() { "127.0.0.1" } else { host };
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Ok(Uri {
            tls,
            address: if has_port { host.to_owned() } else { format!("{host}:{port}") },
            user: unescaped(user)?,
            password: password.map(unescaped).transpose()?,
            vhost: match path {
                None | Some("") => "/".to_owned(),
                Some(path) => unescaped(path)?,
            },
        })
    }
}

/// Undoes percent-encoding (RFC 3986 2.1).
fn unescaped(text: &str) -> Result<String, String> {
    let wrong = || format!("'{text}': wrong percent-encoding");
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).ok_or_else(wrong)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

impl Client {
    /// Connects, logs in and opens a channel.
    pub(super) fn connect(target: &Target) -> Result<Client, String> {
        let uri = Uri::parse(&target.uri)?;
        let password = match (&target.password_file, &uri.password) {
            (None, Some(password)) => password.clone(),
            (file, _) => secrets::password(file.as_deref())?.unwrap_or_default(),
        };
        let stream: Box<dyn Stream> = match &target.socket {
            Some(path) => transport::unix(path)?,
            None if uri.tls => transport::tls(&uri.address, target.authorities.as_deref())?,
            None => Box::new(transport::tcp(&uri.address)?),
        };
        let response = format!("\0{}\0{password}", uri.user);
        let (mechanism, response) = ("PLAIN", response.as_bytes());
        let login = Login { mechanism, response, vhost: &uri.vhost };
        Client::over(stream, &login).map_err(|error| match &*uri.user {
            _ if !error.starts_with("the broker closed") => error,
            "guest" => {
                "cannot log in as 'guest': wrong name or password, or from another host than \
                        the broker's?"
                    .to_owned()
            }
            user => format!("cannot log in as '{user}': wrong name or password?"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_have_defaults_for_every_part() {
        let uri = |text: &str| {
            let uri = Uri::parse(text).unwrap();
            [uri.address, uri.user, uri.password.unwrap_or_default(), uri.vhost]
        };
        assert_eq!(uri("amqp://"), ["127.0.0.1:5672", "guest", "guest", "/"]);
        assert_eq!(uri("amqp://h/%2Fv"), ["h:5672", "guest", "guest", "/v"]);
        assert_eq!(uri("amqp://u:p%40@h:1/v"), ["h:1", "u", "p@", "v"]);
        assert_eq!(uri("amqp://h/"), ["h:5672", "guest", "guest", "/"]);
        assert_eq!(uri("amqps://h/"), ["h:5671", "guest", "guest", "/"]);
        assert!(Uri::parse("amqps://h").unwrap().tls && !Uri::parse("amqp://h").unwrap().tls);
        for wrong in ["http://h", "amqp://u:%zz@h", "amqp://h/%f"] {
            assert!(Uri::parse(wrong).is_err(), "{wrong}");
        }
    }
}
