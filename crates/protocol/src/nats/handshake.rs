//! From INFO to a login.

use super::codec::{Connect, Info};
use super::session::{Connection, State, Wishes};
use super::settings::Tls;
use super::{fault, mapping};
use crate::amqp091::codec::wire::truncated;
use crate::info::ClientProperties;
use crate::{Authentication, Close, Credentials, Turn, World};
use angarium_engine::Laggard;

/// Letters of a nonce, six random bits each.
const NONCE_LETTERS: usize = 22;

impl Default for Wishes {
    fn default() -> Wishes {
        Wishes::of(&Connect::default())
    }
}

impl Wishes {
    fn of(connect: &Connect) -> Wishes {
        Wishes {
            verbose: connect.verbose,
            pedantic: connect.pedantic,
            echo: connect.echo,
            headers: connect.headers,
            no_responders: connect.no_responders,
            infos: connect.protocol >= 1,
        }
    }
}

impl Connection {
    /// Sends the first INFO.
    pub(super) fn greet<W: World>(&mut self, turn: &mut Turn<'_, W>) {
        self.nonce = turn.engine.secret(NONCE_LETTERS);
        turn.world.outlet(self.id).protocol = crate::Protocol::Nats;
        self.write_info(turn, false, false);
    }

    /// Sends INFO: as the answer to a login, or because the server is about to go.
    pub(super) fn write_info<W: World>(
        &self,
        turn: &mut Turn<'_, W>,
        connect_info: bool,
        ldm: bool,
    ) {
        let settings = &self.settings;
        let may_encrypt = !self.peer.encrypted;
        let info = Info {
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
            // Some libraries keep their credentials to themselves where they are not required. Who
            // may come without any is for the login to say.
            auth_required: true,
            // Where it is encrypted already, libraries want to hear that it had to be.
            tls_required: settings.tls == Tls::Required || self.peer.encrypted,
            tls_available: may_encrypt && settings.tls == Tls::Available,
            tls_verify: false,
            ldm,
            connect_urls: settings.connect_urls.clone(),
            jetstream: false,
            connect_info,
            remote_account: if connect_info { self.vhost.clone() } else { String::new() },
        };
        info.write(self.out(turn));
    }

    /// Takes CONNECT.
    pub(super) fn connect<W: World>(
        &mut self,
        turn: &mut Turn<'_, W>,
        options: &[u8],
    ) -> Result<(), Close> {
        if self.lacks_tls() {
            return Err(self.fail(turn, fault::TLS_REQUIRED));
        }
        let Ok(connect) = Connect::decode(options) else {
            return Err(self.fail(turn, fault::text(super::codec::Malformed::Arguments)));
        };
        // A second CONNECT begins anew: its subscriptions are gone.
        self.leave(turn);
        self.has_left = false;
        self.wishes = Wishes::of(&connect);
        *self.client = client_properties(&connect);
        if !(0..=1).contains(&connect.protocol) {
            return Err(self.fail(turn, fault::BAD_PROTOCOL));
        }
        if connect.no_responders && !connect.headers {
            return Err(self.fail(turn, fault::NO_RESPONDERS_NEEDS_HEADERS));
        }
        let outlet = turn.world.outlet(self.id);
        outlet.takes_headers = connect.headers;
        outlet.laggard = connect.laggard.as_deref().and_then(Laggard::named);
        if connect.laggard.is_some() && outlet.laggard.is_none() {
            return Err(self.fail(turn, fault::text(super::codec::Malformed::Arguments)));
        }
        let Some(credentials) = self.credentials(connect) else {
            self.complain_of_login(
                turn,
                "CONNECT names no user there can be here (a JWT, an account)",
            );
            return Err(self.fail(turn, fault::AUTHORIZATION_VIOLATION));
        };
        self.state = State::Waiting;
        turn.world.authenticate(self.id, credentials);
        Ok(())
    }

    /// A client that begins without CONNECT is one that says nothing of itself.
    pub(super) fn log_in_nobody<W: World>(&mut self, turn: &mut Turn<'_, W>) -> Result<(), Close> {
        self.is_nobody = true;
        self.connect(turn, b"{}")
    }

    /// Who a client says it is; `None`: nobody that there can be.
    fn credentials(&mut self, connect: Connect) -> Option<Credentials> {
        self.settings.vhost.clone_into(&mut self.vhost);
        if connect.account || (connect.jwt.is_some() && connect.user.is_none()) {
            return None;
        }
        if let Some(user_key) = connect.nkey {
            let signature = connect.sig?;
            return Some(Credentials::NKey { user_key, nonce: self.nonce.clone(), signature });
        }
        if let Some(name) = connect.user {
            let password = connect.pass.unwrap_or_default();
            return Some(Credentials::Password { user: self.without_vhost(name), password });
        }
        if let Some(token) = connect.auth_token {
            let user = self.settings.token_user.clone()?;
            return Some(Credentials::Password { user, password: token });
        }
        if let Some(user) = self.peer.certificate_name.clone() {
            return Some(Credentials::Certificate { user });
        }
        let user = self.settings.anonymous_user.clone()?;
        Some(Credentials::Anonymous { user })
    }

    /// A name of the form `vhost:user` says which virtual host the client wants.
    fn without_vhost(&mut self, name: String) -> String {
        let Some((vhost, user)) = name.rsplit_once(':') else { return name };
        vhost.clone_into(&mut self.vhost);
        user.to_owned()
    }

    /// Has the operator told why a login was refused that nobody had to check, or that may not be.
    fn complain_of_login<W: World>(&self, turn: &mut Turn<'_, W>, why: &str) {
        turn.world.login_refused(format!("{why}, and came from {}", self.peer.address));
    }

    /// The credentials were checked.
    pub(super) fn log_in<W: World>(
        &mut self,
        turn: &mut Turn<'_, W>,
        answer: Authentication,
    ) -> Result<(), Close> {
        self.state = State::Greeting;
        let granted = match answer {
            Ok(identity) => {
                self.user = identity.user;
                let granted = turn.engine.connect(self.id, &self.user, &self.vhost);
                granted.map_err(|refusal| {
                    self.complain_of_login(turn, &refusal.text);
                    (mapping::login_refused(&refusal), refusal.text)
                })
            }
            Err(why) => Err((fault::AUTHORIZATION_VIOLATION, why)),
        };
        if let Err((error, why)) = granted {
            self.fail(turn, error);
            return Err(Close { reason: format!("login refused: {why}") });
        }
        turn.engine.open(self.session());
        self.state = State::Open;
        self.await_silence(turn.now);
        if !std::mem::take(&mut self.is_nobody) {
            self.done(turn);
        }
        Ok(())
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
