//! CONNECT, or STOMP, and CONNECTED.

use super::asked::{MAIN, Taken};
use super::codec::{FrameWriter, Headers};
use super::fault::{Fault, refused};
use super::frame::{Version, number};
use super::handler::{Handler, State, Waiting};
use super::writer::put_error;
use crate::login_refusal;
use crate::peer::ClientProperties;
use crate::{Authentication, Close, Context, Credentials, Host, TurnedAway};
use angarium_engine::limits::SUBSCRIPTION_NAME_BYTES_MAX;
use angarium_engine::{RefusalKind, Request};
use std::time::Duration;

/// Letters that tell a connection's message ids from those of others, six random bits each.
const SESSION_LETTERS: usize = 8;
/// The longest time between heart-beats that is kept to: more is no different from none.
const HEART_BEAT_MILLIS_MAX: u64 = 86_400_000;

const NO_CREDENTIALS: &str = "the client has no login header";

impl Handler {
    /// Takes CONNECT or STOMP.
    pub(super) fn connect(
        &mut self,
        context: &mut Context<impl Host>,
        headers: &Headers<'_>,
    ) -> Result<Taken, Fault> {
        let versions = headers.get("accept-version")?;
        self.version = match &versions {
            None => Version::V1_0,
            Some(names) => {
                let known = names.split(',').filter_map(|name| Version::named(name.trim()));
                known.max().ok_or_else(|| {
                    let text = format!(
                        "the client takes versions {names}, and the broker speaks 1.0, 1.1 and 1.2"
                    );
                    Fault::new("Version mismatch", text)
                })?
            }
        };
        self.agree_on_heart_beats(headers)?;
        self.client_id = headers.get("client-id")?.filter(|id| !id.is_empty()).map(Into::into);
        if self.client_id.as_ref().is_some_and(|id| id.len() > SUBSCRIPTION_NAME_BYTES_MAX) {
            let text = format!("client-id is longer than {SUBSCRIPTION_NAME_BYTES_MAX} bytes");
            return Err(Fault::new("Malformed frame", text));
        }
        *self.client = ClientProperties {
            connection_name: self.client_id.as_deref().map(str::to_owned),
            ..ClientProperties::default()
        };
        // A name that is no virtual host is the host's that the client has dialled: those of users without
        // such a name are theirs then.
        let asked = headers.get("host")?.unwrap_or_default();
        if context.engine.list_vhosts().any(|vhost| vhost.name == asked) {
            self.vhost = asked.into_owned();
        }
        let login = headers.get("login")?.filter(|login| !login.is_empty());
        let credentials = match (login, &self.peer.certificate_name, &self.settings.anonymous_user)
        {
            (Some(user), ..) => {
                let (user, password) = (user.into_owned(), headers.get("passcode")?);
                Credentials::Password { user, password: password.unwrap_or_default().into_owned() }
            }
            (None, Some(user), _) => Credentials::Certificate { user: user.clone() },
            (None, None, Some(user)) => Credentials::Anonymous { user: user.clone() },
            (None, None, None) => {
                context.host.login_refused(login_refusal::from(NO_CREDENTIALS, &self.peer));
                return Err(bad_login());
            }
        };
        self.waiting = Some(Waiting::Authentication);
        context.host.authenticate(self.id, credentials);
        Ok(Taken::Done)
    }

    /// Both sides give signs of life as often as the other wants, where they can.
    fn agree_on_heart_beats(&mut self, headers: &Headers<'_>) -> Result<(), Fault> {
        let Some(told) = headers.get("heart-beat")? else { return Ok(()) };
        let millis = |text: &str| {
            let millis = number(text.as_bytes())?.min(HEART_BEAT_MILLIS_MAX);
            let span = Duration::from_millis(millis).max(self.settings.heart_beat_min);
            Some((millis > 0).then_some(span))
        };
        let parsed =
            told.split_once(',').and_then(|(can, wants)| Some((millis(can)?, millis(wants)?)));
        let Some((can, wants)) = parsed else {
            let text = format!("heart-beat is '{told}', and has to be two numbers of milliseconds");
            return Err(Fault::new("Malformed frame", text));
        };
        self.beat_interval = wants.map(|span| span / 2);
        // Twice the time, for slow networks.
        self.silence_max = can.map(|span| span * 2);
        Ok(())
    }

    /// The credentials were checked.
    pub(super) fn log_in(
        &mut self,
        context: &mut Context<impl Host>,
        answer: Authentication,
    ) -> Result<(), Close> {
        self.user = match answer {
            Ok(identity) => identity.user,
            Err(why) => {
                self.fail(context, &bad_login(), None);
                return Err(Close { reason: format!("login refused: {why}") });
            }
        };
        if self.vhost.is_empty() {
            let vhost = context.engine.usual_vhost(&self.user, &self.settings.vhost);
            vhost.clone_into(&mut self.vhost);
        }
        if context.engine.has_to_ask(self.id, &self.user, &self.vhost) {
            self.waiting = Some(Waiting::ToEnter);
            context.host.ask_to_enter(self.id, &self.vhost);
            return Ok(());
        }
        self.enter(context)
    }

    /// Enters the virtual host, where that has room.
    pub(super) fn enter(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if let Err(refusal) = context.engine.connect(self.id, &self.user, &self.vhost) {
            let why = login_refusal::refused(&refusal, &self.user, &self.vhost, &self.peer);
            context.host.login_refused(why);
            let fault = match refusal.kind {
                RefusalKind::AccessRefused => {
                    let text = format!(
                        "access to virtual host '{}' refused for user '{}'",
                        self.vhost, self.user
                    );
                    Fault::new("access_refused", text)
                }
                kind => refused(kind, &refusal.text),
            };
            self.fail(context, &fault, None);
            return Err(Close { reason: format!("login refused: {}", refusal.text) });
        }
        self.connected = true;
        self.session = format!("session-{}", context.engine.secret(SESSION_LETTERS)).into();
        // Subscriptions may leave out what the client itself has sent.
        let name = self.client_id.as_deref().unwrap_or(&self.session);
        context.engine.name_client(self.id, name);
        context.engine.open(self.channel_id(MAIN));
        self.ask_aside(context, Request::SelectConfirms { explained: true });
        self.state = State::Open;
        self.last_input = context.now;
        self.beat = context.now.plus(self.beat_interval.unwrap_or_default());
        let (version, session) = (self.version, self.session.clone());
        let (writer, out) = self.outgoing(context);
        (writer.version, writer.session) = (version, session);
        let millis = |span: Option<Duration>, by: u32| span.map_or(0, |it| (it * by).as_millis());
        let beats =
            format!("{},{}", millis(self.beat_interval, 2), millis(self.silence_max, 1) / 2);
        // In CONNECTED nothing is escaped.
        FrameWriter::new(&mut out.bytes, "CONNECTED", Version::V1_0)
            .header("server", &self.settings.server)
            .header("session", &self.session)
            .header("heart-beat", &beats)
            .header("version", version.name())
            .header("host", &self.vhost)
            .end();
        Ok(())
    }

    /// The output for a connection that is refused at once.
    #[must_use]
    pub fn turned_away(&self, why: TurnedAway) -> Vec<u8> {
        let text = match why {
            TurnedAway::TooMany => "the broker has as many connections as it may: try again later",
            TurnedAway::TooFast => "too many connections begin in this second: try again later",
            TurnedAway::NoMemory => {
                "the broker has no memory for another connection: try again later"
            }
        };
        let mut words = Vec::new();
        put_error(&mut words, Version::V1_0, &Fault::new("Connection refused", text), None);
        words
    }
}

fn bad_login() -> Fault {
    Fault::new("Bad CONNECT", "Access refused: the login or passcode is wrong")
}
