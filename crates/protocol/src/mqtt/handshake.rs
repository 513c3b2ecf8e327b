//! From CONNECT to CONNACK.

use super::beginning::Beginning;
use super::codec::{Connack, Connect, PropertiesWriter, PropertyId, Reason, Version};
use super::handler::{Handler, State};
use super::mapping;
use super::pending::Pending;
use super::session::{expiry_of, will_of};
use crate::amqp091::codec::wire::truncated;
use crate::{
    Authentication, ClientProperties, Close, Context, Credentials, Host, login_names, login_refusal,
};
use angarium_engine::limits::SESSION_NAME_BYTES_MAX;
use angarium_engine::{Request, SessionExpiry, SlowConsumerPolicy};

/// What the names of clients begin with that have none of their own.
const NAME_PREFIX: &str = "angarium-";
/// Letters behind that, and in a prefix for response topics, six random bits each.
const NAME_LETTERS: usize = 20;
/// Most topics that we use aliases for.
const TOPIC_ALIASES_MAX: u16 = 1_024;
/// The user property by which a client says what becomes of messages for which it is too slow.
const SLOW_CONSUMER: &str = "angarium-slow-consumer";
const NO_CREDENTIALS: &str = "the client has no credentials";
const NO_USER_NAME: &str = "the client has a password without a user name";

impl Handler {
    /// Takes CONNECT.
    pub(super) fn connect(
        &mut self,
        context: &mut Context<impl Host>,
        connect: &Connect<'_>,
    ) -> Result<(), Close> {
        (self.version, self.has_connected) = (connect.version, true);
        let flag = |id| connect.properties.number(id);
        self.wants_reasons = flag(PropertyId::RequestProblemInformation) != Some(0);
        self.wants_response_information = flag(PropertyId::RequestResponseInformation) == Some(1);
        self.agree_on_keep_alive(connect);
        let policy = slow_consumer_policy(connect);
        let writer = context.host.writer(self.id);
        writer.output.slow_consumer_policy = policy.flatten();
        let (half, _) = writer.mqtt();
        half.version = connect.version;
        let window = flag(PropertyId::ReceiveMaximum).unwrap_or(self.settings.send_maximum.into());
        half.outgoing.window = window.into();
        let aliases = flag(PropertyId::TopicAliasMaximum).unwrap_or_default();
        half.given_aliases.most = u16::try_from(aliases).unwrap_or(u16::MAX).min(TOPIC_ALIASES_MAX);
        if let Some(bytes) = flag(PropertyId::MaximumPacketSize) {
            half.packet_bytes_max = bytes as usize;
        }
        let has_reasons = self.wants_reasons;
        half.incoming.explained_bytes_max = if has_reasons { half.packet_bytes_max } else { 0 };
        if policy == Some(None) {
            let text = "there is no slow-consumer policy of that name";
            return Err(self.fail(context, Reason::ProtocolError, text));
        }
        let has_method = self.begin_enhanced(context, connect)?;
        self.check_will(context, connect)?;
        self.name_client(context, connect)?;
        self.begin_session(connect);
        if has_method {
            return self.take_method(context, connect);
        }
        let credentials = match self.credentials(context, connect) {
            Ok(credentials) => credentials,
            Err(why) => {
                context.host.login_refused(login_refusal::from(why, &self.peer));
                return Err(self.refuse_login(context, Reason::NotAuthorized, why));
            }
        };
        self.state = State::Authenticating;
        context.host.authenticate(self.id, credentials);
        Ok(())
    }

    /// Refuses a will that could not be published as the client asks.
    fn check_will(
        &mut self,
        context: &mut Context<impl Host>,
        connect: &Connect<'_>,
    ) -> Result<(), Close> {
        let Some(will) = &connect.will else { return Ok(()) };
        if will.retain && !self.settings.retain_available && self.version.has_properties() {
            let text = "a will is to be retained: retained messages are not offered";
            return Err(self.fail(context, Reason::RetainNotSupported, text));
        }
        if mapping::is_brokers(will.topic) {
            let text = "a will has a topic of the broker's own";
            return Err(self.fail(context, Reason::NotAuthorized, text));
        }
        Ok(())
    }

    /// Keeps what the client asks of its session.
    fn begin_session(&mut self, connect: &Connect<'_>) {
        let expiry = match self.version {
            Version::V5 => expiry_of(connect.properties.number(PropertyId::SessionExpiryInterval)),
            // Earlier versions have sessions that live on until the client wants a clean one.
            _ if connect.clean_start => SessionExpiry::AtDetach,
            _ => SessionExpiry::Never,
        };
        let (clean_start, will) = (connect.clean_start, connect.will.as_ref());
        let will = will.map(|will| Box::new(will_of(will, self.settings.retain_available)));
        self.beginning =
            Some(Box::new(Beginning { clean_start, expiry, will, ..Beginning::default() }));
    }

    /// A client of version 5 can be told another keep-alive than it asks for.
    fn agree_on_keep_alive(&mut self, connect: &Connect<'_>) {
        self.keep_alive = connect.keep_alive;
        let most = self.settings.keep_alive_max.filter(|_| self.version.has_properties());
        let Some(most) = most.map(|most| u16::try_from(most.as_secs()).unwrap_or(u16::MAX)) else {
            return;
        };
        if self.keep_alive == 0 || self.keep_alive > most {
            (self.keep_alive, self.is_keep_alive_ours) = (most, true);
        }
    }

    /// Keeps the client's name, or makes one up.
    fn name_client(
        &mut self,
        context: &mut Context<impl Host>,
        connect: &Connect<'_>,
    ) -> Result<(), Close> {
        let invalid = Reason::ClientIdentifierNotValid;
        let may_be_named = match self.version {
            Version::V31 => false,
            Version::V311 => connect.clean_start,
            Version::V5 => true,
        };
        if connect.client_id.is_empty() && !may_be_named {
            let text = "a client without an identifier has to ask for a clean session";
            return Err(self.fail(context, invalid, text));
        }
        if connect.client_id.len() > SESSION_NAME_BYTES_MAX {
            let text = format!("a client identifier is longer than {SESSION_NAME_BYTES_MAX} bytes");
            return Err(self.fail(context, invalid, &text));
        }
        self.is_named_by_us = connect.client_id.is_empty();
        self.client_id = match connect.client_id {
            "" => format!("{NAME_PREFIX}{}", context.engine.secret(NAME_LETTERS)).into(),
            name => name.into(),
        };
        *self.client = ClientProperties {
            connection_name: Some(truncated(&self.client_id).to_owned()),
            ..ClientProperties::default()
        };
        Ok(())
    }

    /// The credentials in CONNECT, or why they are refused.
    fn credentials(
        &mut self,
        context: &Context<impl Host>,
        connect: &Connect<'_>,
    ) -> Result<Credentials, &'static str> {
        if let Some(name) = connect.user_name {
            let (vhost, user) = login_names::parted(context.engine, name);
            self.vhost = vhost.unwrap_or_default().to_owned();
            let password = String::from_utf8_lossy(connect.password.unwrap_or_default());
            return Ok(Credentials::Password {
                user: user.to_owned(),
                password: password.into_owned(),
            });
        }
        if let Some(user) = self.peer.certificate_name.clone() {
            return Ok(Credentials::Certificate { user });
        }
        if connect.password.is_some() {
            return Err(NO_USER_NAME);
        }
        let anonymous = self.settings.anonymous_user.clone();
        anonymous.map(|user| Credentials::Anonymous { user }).ok_or(NO_CREDENTIALS)
    }

    /// Clients get no detail.
    pub(super) fn refuse_login(
        &mut self,
        context: &mut Context<impl Host>,
        reason: Reason,
        why: &str,
    ) -> Close {
        self.fail(context, reason, "");
        Close { reason: format!("login refused: {why}") }
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
                let is_proof = self.enhanced.is_some();
                let name_or_password = Reason::BadUserNameOrPassword;
                let reason = if is_proof { Reason::NotAuthorized } else { name_or_password };
                return Err(self.refuse_login(context, reason, &why));
            }
        };
        if self.vhost.is_empty() {
            let vhost = context.engine.usual_vhost(&self.user, &self.settings.vhost);
            vhost.clone_into(&mut self.vhost);
        }
        if context.engine.has_to_ask(self.id, &self.user, &self.vhost) {
            self.state = State::Entering;
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
            let reason = mapping::login_refused(refusal.kind);
            return Err(self.refuse_login(context, reason, &refusal.text));
        }
        self.is_connected = true;
        context.engine.name_client(self.id, &self.client_id);
        context.engine.open(self.channel());
        let request = Request::SelectConfirms { explained: true };
        self.ask(context, request, Pending::Beginning);
        self.claim(context);
        Ok(())
    }

    /// Tells the client that it may go on.
    pub(super) fn welcome(&mut self, context: &mut Context<impl Host>) {
        self.state = State::Open;
        self.last_input = context.now;
        let mut properties = PropertiesWriter::new();
        self.put_offers(context, &mut properties);
        self.put_method(&mut properties);
        let (reason, properties) = (Reason::Success, properties.properties());
        let beginning = self.beginning.take().unwrap_or_default();
        let session_present = beginning.is_resumed;
        let connack = Connack { session_present, reason, properties };
        connack.write(self.version, self.out(context));
        self.resend_releases(context, &beginning.released);
        self.grant(context);
    }

    /// What we offer to a client of version 5.
    fn put_offers(&self, context: &mut Context<impl Host>, properties: &mut PropertiesWriter) {
        let settings = &self.settings;
        properties.put_number(PropertyId::ReceiveMaximum, settings.receive_maximum.into());
        let bytes = u32::try_from(settings.packet_bytes_max).unwrap_or(u32::MAX);
        properties.put_number(PropertyId::MaximumPacketSize, bytes);
        properties.put_number(PropertyId::TopicAliasMaximum, settings.topic_alias_maximum.into());
        if !settings.retain_available {
            properties.put_number(PropertyId::RetainAvailable, 0);
        }
        if let Some(seconds) = self.granted_expiry() {
            properties.put_number(PropertyId::SessionExpiryInterval, seconds);
        }
        if self.is_named_by_us {
            properties.put_text(PropertyId::AssignedClientIdentifier, &self.client_id);
        }
        if self.is_keep_alive_ours {
            properties.put_number(PropertyId::ServerKeepAlive, self.keep_alive.into());
        }
        if self.wants_response_information {
            // Who is asked may answer to topics below it, whatever it may publish to otherwise.
            let topic = format!("_INBOX/{}", context.engine.secret(NAME_LETTERS));
            properties.put_text(PropertyId::ResponseInformation, &topic);
        }
    }
}

/// What becomes of messages for which the client is too slow, if it says so; `Some(None)`: it asks for what
/// there is not.
fn slow_consumer_policy(connect: &Connect<'_>) -> Option<Option<SlowConsumerPolicy>> {
    let mut pairs = connect.properties.user_properties();
    let (_, name) = pairs.find(|(name, _)| *name == SLOW_CONSUMER)?;
    Some(SlowConsumerPolicy::named(name))
}
