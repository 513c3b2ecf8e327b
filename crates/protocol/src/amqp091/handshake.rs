//! From the protocol header to connection.open-ok, and the other methods of class connection.

use super::BROWSE_CAPABILITY;
use super::codec::wire::truncated;
use super::codec::{FieldValue, Method, Table, put_table, table};
use super::fault::{Code, Fault};
use super::frame::{self, PROTOCOL_HEADER};
use crate::amqp091::handler::{Capabilities, Handler, State, Waiting};
use crate::amqp091::writer::Writer;
use crate::login_refusal;
use crate::{AnyWriter, ClientProperties, Close, Context, Credentials, Host};
use angarium_engine::RefusalKind;

/// What clients may find us able to do.
const CAPABILITIES: &[&str] = &[
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
    BROWSE_CAPABILITY,
];

impl Capabilities {
    fn read(table: Table<'_>) -> Capabilities {
        let Some(FieldValue::Table(capabilities)) = table.get("capabilities") else {
            return Capabilities::default();
        };
        let has = |name| capabilities.get(name) == Some(FieldValue::Bool(true));
        Capabilities {
            consumer_cancel_notify: has("consumer_cancel_notify"),
            connection_blocked: has("connection.blocked"),
            authentication_failure_close: has("authentication_failure_close"),
        }
    }
}

impl Handler {
    /// Takes the protocol header (spec 4.2.2).
    pub(super) fn greet(
        &mut self,
        context: &mut Context<impl Host>,
        input: &[u8],
    ) -> Result<usize, Close> {
        let seen = input.len().min(PROTOCOL_HEADER.len());
        if input[..seen] != PROTOCOL_HEADER[..seen] {
            context.host.writer(self.id).output.bytes.extend_from_slice(&PROTOCOL_HEADER);
            self.ending = Some("the client does not speak AMQP 0-9-1".into());
            return Err(self.closed());
        }
        if seen < PROTOCOL_HEADER.len() {
            return Ok(0);
        }
        let mut properties = Vec::with_capacity(512);
        self.put_server_properties(&mut properties);
        let mechanisms: &[u8] = match self.peer.certificate_name {
            Some(_) => b"PLAIN AMQPLAIN EXTERNAL",
            None => b"PLAIN AMQPLAIN",
        };
        let method = Method::ConnectionStart {
            version_major: 0,
            version_minor: 9,
            server_properties: table::checked(&properties[4..]).expect("we wrote it"),
            mechanisms,
            locales: b"en_US",
        };
        self.send(context, 0, &method);
        self.state = State::Starting;
        Ok(seen)
    }

    fn put_server_properties(&self, out: &mut Vec<u8>) {
        put_table(out, |table| {
            table.table("capabilities", |capabilities| {
                for name in CAPABILITIES {
                    capabilities.bool(name, true);
                }
            });
            table.text("product", &self.settings.product);
            table.text("version", &self.settings.version);
            table.text("platform", concat!("Angarium ", env!("CARGO_PKG_VERSION")));
            table.text("copyright", "The Angarium authors");
            table.text("information", "Licensed under the Apache License 2.0");
        });
    }

    /// Takes a method on channel 0.
    pub(super) fn connection_method(
        &mut self,
        context: &mut Context<impl Host>,
        method: &Method<'_>,
    ) -> Result<Result<(), Fault>, Close> {
        Ok(match (self.state, *method) {
            (
                State::Starting,
                Method::ConnectionStartOk { client_properties, mechanism, response, .. },
            ) => self.start_ok(context, client_properties, mechanism, response)?,
            (State::Tuning, Method::ConnectionTuneOk { channel_max, frame_max, heartbeat }) => {
                self.tune_ok(context, channel_max, frame_max, heartbeat)
            }
            (State::Opening, Method::ConnectionOpen { virtual_host, .. }) => {
                self.open(context, virtual_host)
            }
            (_, Method::ConnectionClose { .. } | Method::ConnectionUpdateSecret { .. })
                if !self.may_answer(context) =>
            {
                Ok(())
            }
            (_, Method::ConnectionClose { reply_code, reply_text, .. }) => {
                self.leave(context);
                self.ending =
                    Some(format!("closed by the client: {reply_code} {reply_text}").into());
                if !context.host.is_known_to_shards(self.id) {
                    self.state = State::Closing;
                    self.patience = context.now.plus(self.settings.close_timeout);
                    self.waiting = Some(Waiting::ToClose(0));
                    return Ok(Ok(()));
                }
                self.close_ok(context);
                Ok(())
            }
            // A login does not age here, so a fresh secret changes nothing.
            (State::Open, Method::ConnectionUpdateSecret { .. }) => {
                self.send(context, 0, &Method::ConnectionUpdateSecretOk {});
                Ok(())
            }
            (State::Open, _) if self.current.0 != 10 => {
                let text = format!("{} needs a channel other than 0", method.name());
                Err(Fault::new(Code::CHANNEL_ERROR, text))
            }
            (state, _) => {
                let expected = match state {
                    State::Starting => ": connection.start-ok has to come first",
                    State::Tuning => ": connection.tune-ok has to come first",
                    State::Opening => ": connection.open has to come first",
                    _ => "",
                };
                let text = format!("{} cannot come now{expected}", method.name());
                Err(Fault::new(Code::COMMAND_INVALID, text))
            }
        })
    }

    fn start_ok(
        &mut self,
        context: &mut Context<impl Host>,
        client: Table<'_>,
        mechanism: &str,
        response: &[u8],
    ) -> Result<Result<(), Fault>, Close> {
        let text = |name| client.text(name).map(|text| truncated(text).to_owned());
        *self.client = ClientProperties {
            connection_name: text("connection_name"),
            product: text("product"),
            version: text("version"),
            platform: text("platform"),
        };
        self.capabilities = Capabilities::read(client);
        let credentials;
        (self.mechanism, credentials) = match (mechanism, &self.peer.certificate_name) {
            ("PLAIN", _) => ("PLAIN", Credentials::of_plain(response)),
            ("AMQPLAIN", _) => ("AMQPLAIN", amqplain(response)),
            ("EXTERNAL", Some(user)) => {
                ("EXTERNAL", Some(Credentials::Certificate { user: user.clone() }))
            }
            _ => {
                let text = format!("unknown authentication mechanism '{mechanism}'");
                context.host.login_refused(login_refusal::from(&text, &self.peer));
                return Ok(Err(Fault::new(Code::COMMAND_INVALID, text)));
            }
        };
        match credentials {
            Some(credentials) => {
                self.waiting = Some(Waiting::Authentication);
                context.host.authenticate(self.id, credentials);
            }
            None => {
                context.host.login_refused(login_refusal::from("malformed response", &self.peer));
                self.refuse_login(context, "malformed response")?;
            }
        }
        Ok(Ok(()))
    }

    /// Says that the login failed to clients that understand it; others see the connection end
    /// (spec 1.4.2.2).
    pub(super) fn refuse_login(
        &mut self,
        context: &mut Context<impl Host>,
        why: &str,
    ) -> Result<(), Close> {
        if self.capabilities.authentication_failure_close {
            self.current = (0, 0);
            let text = format!(
                "Login was refused using authentication mechanism {}. For details see the broker \
                 logfile.",
                self.mechanism
            );
            self.end(context, &Fault::new(Code::ACCESS_REFUSED, text));
        }
        self.ending = Some(format!("login refused: {why}").into());
        if self.state == State::Closing { Ok(()) } else { Err(self.closed()) }
    }

    /// Suggests limits.
    pub(super) fn tune(&mut self, context: &mut Context<impl Host>) {
        let method = Method::ConnectionTune {
            channel_max: self.settings.channels_max,
            frame_max: self.settings.frame_bytes_max,
            heartbeat: self.settings.heartbeat_seconds,
        };
        self.send(context, 0, &method);
        self.state = State::Tuning;
    }

    /// Takes the limits that the client settled on: none may be beyond ours.
    fn tune_ok(
        &mut self,
        context: &mut Context<impl Host>,
        channel_max: u16,
        frame_max: u32,
        heartbeat: u16,
    ) -> Result<(), Fault> {
        let ours = &self.settings;
        within("channel_max", channel_max.into(), ours.channels_max.into(), 0)?;
        within("frame_max", frame_max, ours.frame_bytes_max, frame::MIN_MAX_BYTES)?;
        self.channels_max = if channel_max == 0 { u16::MAX } else { channel_max };
        self.frame_bytes_max = frame_max;
        let writer = Writer::new(frame_max, self.capabilities.consumer_cancel_notify);
        context.host.writer(self.id).protocol = AnyWriter::Amqp091(writer);
        self.heartbeat_seconds = heartbeat;
        self.state = State::Opening;
        Ok(())
    }

    fn open(&mut self, context: &mut Context<impl Host>, vhost: &str) -> Result<(), Fault> {
        if context.engine.has_to_ask(self.id, &self.user, vhost) {
            vhost.clone_into(&mut self.vhost);
            self.waiting = Some(Waiting::ToEnter);
            context.host.ask_to_enter(self.id, vhost);
            return Ok(());
        }
        self.enter(context, vhost)
    }

    /// Enters a virtual host, where that has room.
    pub(super) fn enter(
        &mut self,
        context: &mut Context<impl Host>,
        vhost: &str,
    ) -> Result<(), Fault> {
        context.engine.connect(self.id, &self.user, vhost).map_err(|refusal| {
            let why = login_refusal::refused(&refusal, &self.user, vhost, &self.peer);
            context.host.login_refused(why);
            let text = match refusal.kind {
                RefusalKind::NotFound => format!("vhost {vhost} not found"),
                RefusalKind::AccessRefused => {
                    format!("access to vhost '{vhost}' refused for user '{}'", self.user)
                }
                _ => refusal.text,
            };
            Fault::new(Code::NOT_ALLOWED, text)
        })?;
        self.connected = true;
        context.host.has_entered(self.id);
        vhost.clone_into(&mut self.vhost);
        self.send(context, 0, &Method::ConnectionOpenOk { known_hosts: "" });
        self.state = State::Open;
        self.last_input = context.now;
        self.beat = context.now.plus(self.heartbeat_interval());
        Ok(())
    }
}

/// Zero means "no limit", which is beyond ours unless we have none.
fn within(name: &str, theirs: u32, ours: u32, min: u32) -> Result<(), Fault> {
    let text = if ours != 0 && (theirs == 0 || theirs > ours) {
        let theirs = if theirs == 0 { "no limit".to_owned() } else { theirs.to_string() };
        format!("negotiated {name} = {theirs} is higher than the maximum allowed value ({ours})")
    } else if theirs != 0 && theirs < min {
        format!("negotiated {name} = {theirs} is lower than the minimum allowed value ({min})")
    } else {
        return Ok(());
    };
    Err(Fault::new(Code::NOT_ALLOWED, text))
}

/// The entries of a table with `LOGIN` and `PASSWORD`.
fn amqplain(response: &[u8]) -> Option<Credentials> {
    let table = table::checked(response).ok()?;
    let text = |name| table.text(name).map(str::to_owned);
    Some(Credentials::Password { user: text("LOGIN")?, password: text("PASSWORD")? })
}
