//! From the first byte to the open frame: protocol headers, the SASL dialogue, the limits of both sides
//! (part 2, 2.2 and 2.4; part 5, 5.3).

use super::codec::{
    Condition, Map, Open, OwnedValue, SaslChallenge, SaslCode, SaslInit, SaslMechanisms,
    SaslOutcome, SaslPerformative, SaslResponse, Symbol, Symbols, Value,
};
use super::fault::Fault;
use super::frame::{self, FrameError, ProtocolHeader};
use super::handler::{Claim, Handler, NAMING_CHANNEL, State, Waiting};
use crate::login_refusal;
use crate::scram::{self, Dialogue, Verifier};
use crate::{ClientProperties, Close, Context, Credentials, Host};
use angarium_engine::{Refusal, RefusalKind, Reply, Request};
use std::time::Duration;

/// What clients may find us able to do.
const CAPABILITIES: &[Symbol<'static>] = &[
    Symbol("ANONYMOUS-RELAY"),
    Symbol("SHARED-SUBS"),
    Symbol("DELAYED_DELIVERY"),
    Symbol(SOLE_CONNECTION),
];

/// The capability of connections whose container id no other connection may have.
const SOLE_CONNECTION: &str = "sole-connection-for-container";
/// The property of an open frame that a close follows immediately.
const ESTABLISHMENT_FAILED: &str = "amqp:connection-establishment-failed";
/// The prefix of a hostname that names a virtual host.
const VHOST_PREFIX: &str = "vhost:";
/// Octets of what clients say about themselves that are kept, each.
const CLIENT_TEXT_BYTES_MAX: usize = 255;

/// How long a container id is claimed that another connection has, which may be lost; and how often.
const CLAIMED_FOR: Duration = Duration::from_secs(3);
const CLAIM_INTERVAL: Duration = Duration::from_millis(500);

/// Which AMQP a client speaks, as its first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// AMQP 1.0, or a layer below it.
    Amqp10,
    /// Something else.
    Other,
    /// More bytes are needed.
    Unknown,
}

/// Which AMQP a client speaks whose first bytes these are.
#[must_use]
pub fn spoken(input: &[u8]) -> Spoken {
    match input {
        [b'A', b'M', b'Q', b'P', 0 | 2 | 3, 1, ..] => Spoken::Amqp10,
        [b'A', b'M', b'Q', b'P', _, _, ..] => Spoken::Other,
        _ if b"AMQP".starts_with(&input[..input.len().min(4)]) => Spoken::Unknown,
        _ => Spoken::Other,
    }
}

impl Handler {
    /// Takes a protocol header.
    pub(super) fn header(
        &mut self,
        context: &mut Context<impl Host>,
        input: &[u8],
    ) -> Result<usize, Close> {
        match (ProtocolHeader::read(input), self.state) {
            (Ok(None), _) => return Ok(0),
            (Ok(Some(ProtocolHeader::Sasl)), State::Greeting) => self.begin_sasl(context),
            (Ok(Some(ProtocolHeader::Amqp)), State::LoggedIn) => {
                self.put_header(context, ProtocolHeader::Amqp);
                self.state = State::Opening;
            }
            (Ok(Some(ProtocolHeader::Amqp)), State::Greeting) if self.bare_login().is_some() => {
                self.mechanism = "none";
                self.login(context, self.bare_login());
            }
            (header, _) => {
                self.put_header(context, ProtocolHeader::Sasl);
                let why = match header {
                    Ok(Some(ProtocolHeader::Amqp)) => "the client did not log in by SASL",
                    Ok(_) => "the client asks for a layer that is not offered there",
                    Err(_) => "the client sent no protocol header of AMQP 1.0",
                };
                self.ending = Some(why.into());
                return Err(self.closed());
            }
        }
        Ok(frame::PROTOCOL_HEADER_BYTES)
    }

    fn put_header(&self, context: &mut Context<impl Host>, header: ProtocolHeader) {
        context.host.writer(self.id).output.bytes.extend_from_slice(&header.bytes());
    }

    fn begin_sasl(&mut self, context: &mut Context<impl Host>) {
        self.put_header(context, ProtocolHeader::Sasl);
        let mut mechanisms = Vec::new();
        if self.peer.certificate_name.is_some() {
            mechanisms.push(Symbol("EXTERNAL"));
        }
        let stored = |user: &str| context.engine.password_hash(user).and_then(Verifier::find);
        if context.engine.list_users().any(|user| stored(user.name).is_some()) {
            mechanisms.push(Symbol(scram::MECHANISM));
        }
        mechanisms.push(Symbol("PLAIN"));
        if self.settings.anonymous_user.is_some() {
            mechanisms.push(Symbol("ANONYMOUS"));
        }
        let mechanisms = SaslMechanisms { mechanisms: Symbols::new(&mechanisms) };
        self.put_sasl(context, &SaslPerformative::SaslMechanisms(mechanisms));
        self.state = State::Mechanism;
    }

    fn put_sasl(&self, context: &mut Context<impl Host>, performative: &SaslPerformative<'_>) {
        performative.write_frame(&mut context.host.writer(self.id).output.bytes);
    }

    /// The credentials of a client that leaves SASL out: its certificate, or none.
    fn bare_login(&self) -> Option<Credentials> {
        match &self.peer.certificate_name {
            Some(user) => Some(Credentials::Certificate { user: user.clone() }),
            None => self.anonymous(),
        }
    }

    fn anonymous(&self) -> Option<Credentials> {
        let user = self.settings.anonymous_user.clone()?;
        Some(Credentials::Anonymous { user })
    }

    /// Takes a frame of the SASL layer.
    pub(super) fn sasl_frame(
        &mut self,
        context: &mut Context<impl Host>,
        input: &[u8],
    ) -> Result<usize, Close> {
        let read = frame::read(input, self.settings.frame_bytes_max);
        let (frame, bytes) = match read {
            Ok(None) => return Ok(0),
            Ok(Some((frame, bytes))) if frame.kind == frame::SASL => (frame, bytes),
            Ok(Some(_)) => {
                return self.broken_sasl("a frame of another layer amid the SASL dialogue");
            }
            Err(error) => return self.broken_sasl(&error.to_string()),
        };
        match (SaslPerformative::decode_body(frame.body), self.state) {
            (Ok(SaslPerformative::SaslInit(init)), State::Mechanism) => {
                self.choose(context, init)?
            }
            (Ok(SaslPerformative::SaslResponse(SaslResponse { response })), State::Response) => {
                self.respond(context, response)?;
            }
            (Ok(_), _) => return self.broken_sasl("a SASL frame that cannot come now"),
            (Err(malformed), _) => return self.broken_sasl(&malformed.to_string()),
        }
        Ok(bytes)
    }

    fn choose(
        &mut self,
        context: &mut Context<impl Host>,
        init: SaslInit<'_>,
    ) -> Result<(), Close> {
        let response = init.initial_response;
        let credentials = match (init.mechanism.0, &self.peer.certificate_name) {
            (name @ ("PLAIN" | scram::MECHANISM), _) => {
                self.mechanism = if name == "PLAIN" { "PLAIN" } else { scram::MECHANISM };
                return match response {
                    Some(response) => self.respond(context, response),
                    None => {
                        self.challenge(context, b"");
                        Ok(())
                    }
                };
            }
            ("EXTERNAL", Some(user)) => {
                self.mechanism = "EXTERNAL";
                Some(Credentials::Certificate { user: user.clone() })
            }
            ("ANONYMOUS", _) if self.settings.anonymous_user.is_some() => {
                self.mechanism = "ANONYMOUS";
                self.anonymous()
            }
            (other, _) => {
                let text = format!("unknown authentication mechanism '{other}'");
                context.host.login_refused(login_refusal::from(&text, &self.peer));
                return self.refuse_login(context, &text);
            }
        };
        self.login(context, credentials);
        self.refuse_malformed(context)
    }

    fn challenge(&mut self, context: &mut Context<impl Host>, challenge: &[u8]) {
        let challenge = SaslChallenge { challenge };
        self.put_sasl(context, &SaslPerformative::SaslChallenge(challenge));
        self.state = State::Response;
    }

    /// Takes what the client says by its mechanism.
    fn respond(&mut self, context: &mut Context<impl Host>, response: &[u8]) -> Result<(), Close> {
        let credentials = match (self.mechanism, &mut self.scram) {
            (scram::MECHANISM, Some(dialogue)) => {
                let user = dialogue.user().to_owned();
                dialogue.finish(response).map(|proof| Credentials::Scram { user, proof })
            }
            (scram::MECHANISM, None) => {
                let nonce = context.engine.secret(scram::NONCE_LETTERS);
                let stored = |user: &str| context.engine.password_hash(user);
                let secret = &self.settings.scram_secret;
                if let Some((dialogue, answer)) = Dialogue::begin(response, &nonce, secret, stored)
                {
                    self.scram = Some(dialogue.into());
                    self.challenge(context, answer.as_bytes());
                    return Ok(());
                }
                None
            }
            _ => Credentials::of_plain(response),
        };
        self.state = State::Response;
        self.login(context, credentials);
        self.refuse_malformed(context)
    }

    /// Has credentials checked, if they could be read.
    fn login(&mut self, context: &mut Context<impl Host>, credentials: Option<Credentials>) {
        if let Some(credentials) = credentials {
            self.waiting = Some(Waiting::Authentication);
            context.host.authenticate(self.id, credentials);
        }
    }

    fn refuse_malformed(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if self.waiting.is_some() {
            return Ok(());
        }
        context.host.login_refused(login_refusal::from("malformed response", &self.peer));
        self.refuse_login(context, "malformed response")
    }

    /// The user is who it says.
    pub(super) fn logged_in(&mut self, context: &mut Context<impl Host>) {
        if self.state == State::Greeting {
            self.put_header(context, ProtocolHeader::Amqp);
            self.state = State::Opening;
            return;
        }
        self.put_outcome(context, SaslCode::Ok);
        self.state = State::LoggedIn;
    }

    /// Ends the dialogue, and the connection with it.
    pub(super) fn refuse_login(
        &mut self,
        context: &mut Context<impl Host>,
        why: &str,
    ) -> Result<(), Close> {
        match self.state {
            State::Greeting => self.put_header(context, ProtocolHeader::Sasl),
            _ => self.put_outcome(context, SaslCode::Auth),
        }
        self.ending = Some(format!("login refused ({}): {why}", self.mechanism).into());
        Err(self.closed())
    }

    fn put_outcome(&self, context: &mut Context<impl Host>, code: SaslCode) {
        // The broker proves itself where the client has.
        let proof = self.scram.as_ref().filter(|_| code == SaslCode::Ok);
        let proof = proof.map(|dialogue| dialogue.final_message());
        let additional_data = proof.as_ref().map(String::as_bytes);
        let outcome = SaslOutcome { code, additional_data };
        self.put_sasl(context, &SaslPerformative::SaslOutcome(outcome));
    }

    fn broken_sasl(&mut self, why: &str) -> Result<usize, Close> {
        self.ending = Some(why.into());
        Err(self.closed())
    }

    /// Takes the open frame.
    pub(super) fn open(
        &mut self,
        context: &mut Context<impl Host>,
        open: &Open<'_>,
    ) -> Result<(), Fault> {
        self.read_client(open);
        if open.max_frame_size < frame::MIN_MAX_BYTES {
            let bytes = open.max_frame_size;
            let text =
                format!("max-frame-size is {bytes}, and must be {} at least", frame::MIN_MAX_BYTES);
            return Err(Fault::connection(Condition::InvalidField, text));
        }
        let frame_bytes_max = open.max_frame_size.min(self.settings.frame_bytes_max);
        self.is_sole = open.desired_capabilities.contains(SOLE_CONNECTION);
        self.channel_max = open.channel_max.min(self.settings.sessions_max.saturating_sub(1));
        let theirs = open.idle_time_out.filter(|millis| *millis > 0);
        self.idle = theirs.map(|millis| Duration::from_millis(millis.into()));
        let (writer, _) = self.outgoing(context);
        writer.frame_bytes_max = frame_bytes_max as usize;
        self.vhost = self.vhost_of(open.hostname.unwrap_or_default());
        if context.engine.has_to_ask(self.id, &self.user, &self.vhost) {
            self.waiting = Some(Waiting::ToEnter);
            context.host.ask_to_enter(self.id, &self.vhost);
            return Ok(());
        }
        self.enter(context)
    }

    /// Enters the virtual host, where that has room.
    pub(super) fn enter(&mut self, context: &mut Context<impl Host>) -> Result<(), Fault> {
        let vhost = &self.vhost;
        context.engine.connect(self.id, &self.user, vhost).map_err(|refusal| {
            let why = login_refusal::refused(&refusal, &self.user, vhost, &self.peer);
            context.host.login_refused(why);
            match refusal.kind {
                RefusalKind::NotFound => Fault::connection(
                    Condition::NotFound,
                    format!("there is no virtual host '{vhost}'"),
                ),
                RefusalKind::AccessRefused => {
                    let text = format!(
                        "access to virtual host '{vhost}' refused for user '{}'",
                        self.user
                    );
                    Fault::connection(Condition::UnauthorizedAccess, text)
                }
                kind => Fault::connection(super::mapping::condition(kind), refusal.text),
            }
        })?;
        self.connected = true;
        context.host.has_entered(self.id);
        context.engine.name_client(self.id, &self.container);
        if self.is_sole {
            context.engine.open(self.channel_id(NAMING_CHANNEL));
            self.waiting = Some(Waiting::Name);
            self.claim_name(context);
            return Ok(());
        }
        self.opened(context);
        Ok(())
    }

    fn claim_name(&self, context: &mut Context<impl Host>) {
        let (channel, name) = (self.channel_id(NAMING_CHANNEL), self.container.to_string());
        let request = Request::ClaimClientName { name };
        context.engine.request(context.now, channel, request, context.host);
    }

    /// Claims a container id again that another connection has, when it is time to.
    pub(super) fn claim_again(&mut self, context: &mut Context<impl Host>) {
        let Some(claim) = self.claim.as_mut().filter(|claim| claim.next <= context.now) else {
            return;
        };
        claim.next = context.now.plus(CLAIM_INTERVAL);
        self.claim_name(context);
    }

    /// The engine has given the connection its name, or another connection has it.
    pub(super) fn named(
        &mut self,
        context: &mut Context<impl Host>,
        reply: Result<Reply, Refusal>,
    ) {
        if self.waiting != Some(Waiting::Name) {
            return;
        }
        if let Err(Refusal { kind: RefusalKind::ResourceLocked, .. }) = &reply {
            let now = context.now;
            let until = self.claim.map_or_else(|| now.plus(CLAIMED_FOR), |claim| claim.until);
            if now < until {
                self.claim = Some(Claim { next: now.plus(CLAIM_INTERVAL), until });
                return;
            }
        }
        self.waiting = None;
        self.claim = None;
        match reply {
            Ok(_) => self.opened(context),
            Err(refusal) => {
                let failed = OwnedValue::map(|map| {
                    map.put(&Symbol(ESTABLISHMENT_FAILED), &true);
                });
                self.put_open_with(context, failed.as_map());
                let field = OwnedValue::map(|map| {
                    map.put(&Symbol("invalid-field"), &Symbol("container-id"));
                });
                let fault = Fault::connection(Condition::InvalidField, refusal.text);
                self.end_with(context, &fault, Some(field.as_map()));
            }
        }
    }

    /// The connection may be used.
    fn opened(&mut self, context: &mut Context<impl Host>) {
        self.put_open(context);
        self.state = State::Open;
        self.last_input = context.now;
        self.beat = context.now.plus(self.beat_interval());
    }

    /// The virtual host that a client asks for: `vhost:x` names x; most libraries put the name of the machine
    /// there.
    fn vhost_of(&self, hostname: &str) -> String {
        hostname.strip_prefix(VHOST_PREFIX).unwrap_or(&self.settings.vhost).to_owned()
    }

    fn read_client(&mut self, open: &Open<'_>) {
        let properties = open.properties.unwrap_or_default();
        let text = |name| {
            let (Value::String(text) | Value::Symbol(Symbol(text))) = properties.get(name)? else {
                return None;
            };
            Some(shortened(text))
        };
        *self.client = ClientProperties {
            connection_name: Some(shortened(open.container_id)),
            product: text("product"),
            version: text("version"),
            platform: text("platform"),
        };
        self.container = open.container_id.into();
    }

    /// Sends the open frame.
    pub(super) fn put_open(&mut self, context: &mut Context<impl Host>) {
        self.put_open_with(context, Map::default());
    }

    /// Sends the open frame, with further properties.
    pub(super) fn put_open_with(&mut self, context: &mut Context<impl Host>, further: Map<'_>) {
        self.has_opened = true;
        let settings = self.settings.clone();
        let properties = OwnedValue::map(|map| {
            map.put(&Symbol("product"), &settings.product.as_str());
            map.put(&Symbol("version"), &settings.version.as_str());
            // RabbitMQ's client for Java takes no broker without.
            map.put(&Symbol("node"), &settings.container_id.as_str());
            map.put(&Symbol("platform"), &concat!("Angarium ", env!("CARGO_PKG_VERSION")));
            further.entries().for_each(|(key, value)| map.put(&key, &value));
        });
        let idle_millis = settings.idle_timeout.as_millis();
        let open = Open {
            container_id: &settings.container_id,
            max_frame_size: settings.frame_bytes_max,
            channel_max: settings.sessions_max.saturating_sub(1),
            idle_time_out: u32::try_from(idle_millis).ok().filter(|millis| *millis > 0),
            offered_capabilities: Symbols::new(CAPABILITIES),
            properties: Some(properties.as_map()),
            ..Open::default()
        };
        self.send(context, 0, &open);
    }

    /// Bytes that are no frame: nothing after them can be understood.
    pub(super) fn bad_frame(&mut self, context: &mut Context<impl Host>, error: FrameError) {
        self.end(context, &Fault::connection(Condition::FramingError, error.to_string()));
        if self.state == State::Closing {
            self.state = State::Deaf;
        }
    }
}

/// The beginning of a text, as much as is kept.
fn shortened(text: &str) -> String {
    let mut end = text.len().min(CLIENT_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
