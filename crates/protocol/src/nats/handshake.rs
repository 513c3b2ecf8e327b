//! From INFO to a login.

use super::codec::{Connect, Info, server};
use super::settings::Tls;
use super::{fault, mapping};
use crate::amqp091::codec::wire::truncated;
use crate::nats::handler::{Handler, State, Wishes};
use crate::nats::writer::Writer;
use crate::peer::ClientProperties;
use crate::{AnyWriter, Authentication, Close, Context, Credentials, Host, TurnedAway};
use crate::{login_names, login_refusal};
use angarium_engine::{Engine, SlowConsumerPolicy};

// Why logins are refused, for the log.
const WITHOUT_TLS: &str = "the client came without TLS, which is required here";
const FOR_AN_ACCOUNT: &str = "the client asked for an account: there are virtual hosts instead, \
                              and a user name of the form 'vhost:user' says which";
const JWT_ALONE: &str = "the client has a JWT alone, which is not looked at: it needs a user name \
                         and password, a token or an nkey";
const PASSWORD_ALONE: &str = "the client has a password without a user name";
const UNSIGNED: &str = "the client has an nkey without a signature";
const NO_CREDENTIALS: &str = "the client has no credentials";
const NO_TOKENS: &str = "the client has a token, and none are taken here";

/// Letters of a nonce, six random bits each.
const NONCE_LETTERS: usize = 22;

impl Wishes {
    pub(super) fn of(connect: &Connect) -> Wishes {
        Wishes {
            verbose: connect.verbose,
            pedantic: connect.pedantic,
            echo: connect.echo,
            no_responders: connect.no_responders,
            headers: connect.headers,
            infos: connect.protocol >= 1,
        }
    }

    /// The options of CONNECT that these are.
    fn options(self) -> Connect {
        Connect {
            verbose: self.verbose,
            pedantic: self.pedantic,
            echo: self.echo,
            no_responders: self.no_responders,
            headers: self.headers,
            protocol: i64::from(self.infos),
            ..Connect::default()
        }
    }
}

impl Handler {
    /// Sends the first INFO.
    pub(super) fn greet(&mut self, context: &mut Context<impl Host>) {
        self.nonce = context.engine.secret(NONCE_LETTERS);
        self.write_info(context, false, false);
    }

    /// Sends INFO: as the answer to a login, or because the server is about to go.
    pub(super) fn write_info(
        &self,
        context: &mut Context<impl Host>,
        connect_info: bool,
        ldm: bool,
    ) {
        self.about_server(connect_info, ldm).write(self.out(context));
    }

    /// The output for a connection that is refused at once: INFO, which clients wait for, and an error.
    pub fn turned_away(&mut self, engine: &mut Engine, why: TurnedAway) -> Vec<u8> {
        // Libraries with an nkey take its absence for the fault.
        self.nonce = engine.secret(NONCE_LETTERS);
        let mut words = Vec::new();
        self.about_server(false, false).write(&mut words);
        let text = match why {
            TurnedAway::TooMany => fault::TOO_MANY_CONNECTIONS,
            TurnedAway::TooFast => fault::TOO_FAST_CONNECTIONS,
            TurnedAway::NoMemory => fault::TOO_MUCH_MEMORY,
        };
        server::write_error(&mut words, text);
        words
    }

    fn about_server(&self, connect_info: bool, ldm: bool) -> Info {
        let settings = &self.settings;
        let may_encrypt = !self.peer.encrypted && !self.peer.is_framed;
        Info {
            server_id: settings.server_id.clone(),
            server_name: settings.server_name.clone(),
            version: settings.version.clone(),
            proto: 1,
            host: settings.host.clone(),
            port: settings.port.into(),
            headers: true,
            max_payload: settings.payload_bytes_max,
            client_id: usize::try_from(self.number).unwrap_or(usize::MAX),
            client_ip: ip(&self.peer.address).to_owned(),
            nonce: self.nonce.clone(),
            // Some libraries send credentials only where they are required. Whether a client may log in
            // without any is decided at the login.
            auth_required: true,
            // Libraries on an encrypted connection expect that TLS is required.
            tls_required: settings.tls == Tls::Required || self.peer.encrypted,
            tls_available: may_encrypt && settings.tls == Tls::Available,
            tls_verify: settings.tls_verify,
            ldm,
            // They lead to listeners without WebSocket.
            connect_urls: if self.peer.is_framed {
                Vec::new()
            } else {
                settings.connect_urls.clone()
            },
            connect_info,
            remote_account: if connect_info { self.vhost.clone() } else { String::new() },
            ..Info::default()
        }
    }

    /// Takes CONNECT.
    pub(super) fn connect(
        &mut self,
        context: &mut Context<impl Host>,
        options: &[u8],
    ) -> Result<(), Close> {
        self.check_stays()?;
        if self.settings.tls == Tls::Required && !self.peer.encrypted {
            context.host.login_refused(login_refusal::from(WITHOUT_TLS, &self.peer));
            return Err(self.fail(context, fault::TLS_REQUIRED));
        }
        // A second CONNECT changes what it names, and ends all subscriptions.
        let is_first = !self.is_open();
        let before = if is_first { Connect::default() } else { self.wishes.options() };
        let Ok(connect) = Connect::decode(options, &before) else {
            return Err(self.fail(context, fault::text(super::codec::Malformed::Arguments)));
        };
        let stays = !is_first && !connect.has_credentials();
        // A client that began without CONNECT keeps the subscriptions that it has made.
        let connected_before = std::mem::replace(&mut self.has_connected, !self.is_nobody);
        let keeps = stays && !connected_before;
        if !keeps {
            self.leave(context);
            self.has_left = false;
        }
        self.wishes = Wishes::of(&connect);
        *self.client = client_properties(&connect);
        if !(0..=1).contains(&connect.protocol) {
            return Err(self.fail(context, fault::BAD_PROTOCOL));
        }
        if connect.no_responders && !connect.headers {
            return Err(self.fail(context, fault::NO_RESPONDERS_NEEDS_HEADERS));
        }
        let policy = connect.slow_consumer_policy.as_deref();
        let policy = policy.and_then(SlowConsumerPolicy::named);
        let writer = context.host.writer(self.id);
        writer.protocol = AnyWriter::Nats(Writer::new(connect.headers));
        writer.output.slow_consumer_policy = policy;
        self.limits.takes_headers = connect.headers;
        if connect.slow_consumer_policy.is_some() && policy.is_none() {
            return Err(self.fail(context, fault::text(super::codec::Malformed::Arguments)));
        }
        if keeps {
            self.done(context);
            return Ok(());
        }
        if stays {
            return self.stay(context);
        }
        let credentials = match self.credentials(connect, context.engine) {
            Ok(credentials) => credentials,
            Err(why) => {
                context.host.login_refused(login_refusal::from(why, &self.peer));
                self.fail(context, fault::AUTHORIZATION_VIOLATION);
                return Err(Close { reason: format!("login refused: {why}") });
            }
        };
        self.state = State::Waiting;
        context.host.authenticate(self.id, credentials);
        Ok(())
    }

    /// A connection that is being closed cannot log in again.
    fn check_stays(&self) -> Result<(), Close> {
        self.ending.as_ref().map_or(Ok(()), |why| Err(Close { reason: why.to_string() }))
    }

    /// Logs a client in that begins without CONNECT.
    pub(super) fn log_in_nobody(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        self.is_nobody = true;
        self.connect(context, b"{}")
    }

    /// The credentials in CONNECT, or why they are refused.
    fn credentials(
        &mut self,
        connect: Connect,
        engine: &Engine,
    ) -> Result<Credentials, &'static str> {
        self.vhost.clear();
        if connect.account || connect.new_account {
            return Err(FOR_AN_ACCOUNT);
        }
        let anonymous = |user: String| Credentials::Anonymous { user };
        if let Some(only) = self.only_user(engine) {
            let named = connect.user.clone().map(|name| self.without_vhost(name, engine));
            if named.is_none_or(|named| named != only) {
                self.vhost.clear();
                return Ok(anonymous(only));
            }
        }
        if let Some(user_key) = connect.nkey {
            let signature = connect.sig.ok_or(UNSIGNED)?;
            return Ok(Credentials::NKey { user_key, nonce: self.nonce.clone(), signature });
        }
        if let Some(name) = connect.user {
            let password = connect.pass.unwrap_or_default();
            let user = self.without_vhost(name, engine);
            return Ok(Credentials::Password { user, password });
        }
        if let Some(token) = connect.auth_token {
            let user = self.settings.token_user.clone().ok_or(NO_TOKENS)?;
            return Ok(Credentials::Password { user, password: token });
        }
        if let Some(user) = self.peer.certificate_name.clone() {
            return Ok(Credentials::Certificate { user });
        }
        if connect.pass.is_some() {
            return Err(PASSWORD_ALONE);
        }
        let otherwise = if connect.jwt.is_some() { JWT_ALONE } else { NO_CREDENTIALS };
        self.settings.anonymous_user.clone().map(anonymous).ok_or(otherwise)
    }

    /// The user that clients without credentials are, if there is no other one: then the broker asks for no
    /// credentials, and takes whatever is offered instead, as nats-server does.
    fn only_user(&self, engine: &Engine) -> Option<String> {
        let anonymous = self.settings.anonymous_user.as_ref()?;
        engine.list_users().all(|user| user.name == *anonymous).then(|| anonymous.clone())
    }

    /// A name of the form `vhost:user` says which virtual host the client wants.
    fn without_vhost(&mut self, name: String, engine: &Engine) -> String {
        let (vhost, user) = login_names::parted(engine, &name);
        if let Some(vhost) = vhost {
            vhost.clone_into(&mut self.vhost);
        }
        user.to_owned()
    }

    /// The credentials were checked.
    pub(super) fn log_in(
        &mut self,
        context: &mut Context<impl Host>,
        answer: Authentication,
    ) -> Result<(), Close> {
        self.check_stays()?;
        self.state = State::Greeting;
        self.user = match answer {
            Ok(identity) => identity.user,
            Err(why) => {
                self.fail(context, fault::AUTHORIZATION_VIOLATION);
                return Err(Close { reason: format!("login refused: {why}") });
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
        self.check_stays()?;
        if let Err(refusal) = context.engine.connect(self.id, &self.user, &self.vhost) {
            let why = login_refusal::refused(&refusal, &self.user, &self.vhost, &self.peer);
            context.host.login_refused(why);
            self.state = State::Greeting;
            self.fail(context, mapping::login_refused(&refusal));
            return Err(Close { reason: format!("login refused: {}", refusal.text) });
        }
        self.begin_channel(context);
        Ok(())
    }

    /// Logs a client in anew that changes its options and stays who it is.
    fn stay(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if let Err(refusal) = context.engine.connect(self.id, &self.user, &self.vhost) {
            self.fail(context, mapping::login_refused(&refusal));
            return Err(Close { reason: format!("login refused: {}", refusal.text) });
        }
        self.begin_channel(context);
        Ok(())
    }

    fn begin_channel(&mut self, context: &mut Context<impl Host>) {
        context.host.begins_anew(self.id);
        context.engine.open(self.channel());
        let permissions = context.engine.subject_permissions(self.id);
        self.may_answer = permissions.is_some_and(|permissions| permissions.responses.is_some());
        if let AnyWriter::Nats(writer) = &mut context.host.writer(self.id).protocol {
            writer.requests = self.may_answer.then(Box::default);
        }
        self.state = State::Open;
        self.last_input = context.now;
        self.due = context.now.plus(self.settings.ping_interval);
        if !std::mem::take(&mut self.is_nobody) {
            self.done(context);
        }
    }
}

fn client_properties(connect: &Connect) -> ClientProperties {
    let text = |text: &Option<String>| {
        let text = text.as_deref()?;
        Some(truncated(text).to_owned())
    };
    ClientProperties {
        connection_name: text(&connect.name),
        product: text(&connect.lang).map(|lang| format!("NATS client for {lang}")),
        version: text(&connect.version),
        platform: text(&connect.lang),
    }
}

/// An address without its port.
fn ip(address: &str) -> &str {
    let ip = address.rsplit_once(':').map_or(address, |(ip, _)| ip);
    ip.trim_start_matches('[').trim_end_matches(']')
}
