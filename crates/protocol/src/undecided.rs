//! The handler of a connection whose protocol is not known yet: nothing is asked of the engine, and only a
//! time is kept.

use crate::{
    Authentication, ClientProperties, Close, ConnectionInfo, Context, Host, Peer, ProtocolHandler,
};
use angarium_engine::Time;
use std::time::Duration;

/// How long a client may be undecided.
#[derive(Clone, Debug)]
pub struct Settings {
    /// From connecting to the first bytes of a protocol.
    pub patience: Duration,
    /// How long a client is silent that waits to be greeted first; `None`: none is.
    pub silence: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { patience: Duration::from_secs(10), silence: Some(Duration::from_millis(100)) }
    }
}

/// A connection of which nothing is known.
#[derive(Debug)]
pub struct Undecided {
    peer: Peer,
    client: ClientProperties,
    last_input: Time,
    /// When it ends if nothing is known of it then.
    due: Time,
    /// When it is greeted if it is silent until then.
    greeted_at: Option<Time>,
    /// Why it is to end.
    ending: Option<Box<str>>,
}

impl Undecided {
    /// Of a client that connected at `now`.
    #[must_use]
    pub fn new(peer: Peer, settings: &Settings, now: Time) -> Undecided {
        Undecided {
            peer,
            client: ClientProperties::default(),
            last_input: now,
            due: now.plus(settings.patience),
            greeted_at: None,
            ending: None,
        }
    }

    /// The client may begin, or wait for a greeting.
    pub fn listen(&mut self, now: Time, settings: &Settings) {
        self.greeted_at = settings.silence.map(|silence| now.plus(silence));
    }

    /// The client has begun, or is busy with something below the protocol: it does not wait.
    pub fn heard(&mut self, now: Time) {
        self.last_input = now;
        self.greeted_at = None;
    }

    /// Whether the client was silent for so long that it seems to wait for a greeting.
    #[must_use]
    pub fn waits_for_greeting(&self, now: Time) -> bool {
        self.ending.is_none() && self.greeted_at.is_some_and(|at| at <= now)
    }

    /// The transport was encrypted.
    pub fn encrypted(&mut self, certificate_name: Option<String>) {
        self.peer.encrypted = true;
        self.peer.certificate_name = certificate_name;
    }

    /// For listings.
    #[must_use]
    pub fn info(&self) -> ConnectionInfo<'_> {
        ConnectionInfo {
            peer: &self.peer,
            user: "",
            vhost: "",
            client: &self.client,
            state: "starting",
            channels: 0,
            frame_bytes_max: 0,
            heartbeat_seconds: 0,
            protocol: "unknown",
            last_input: self.last_input,
        }
    }
}

impl ProtocolHandler for Undecided {
    fn receive(&mut self, _: &mut Context<impl Host>, _: &[u8]) -> Result<usize, Close> {
        Ok(0)
    }

    fn authenticated(
        &mut self,
        _: &mut Context<impl Host>,
        _: Authentication,
    ) -> Result<(), Close> {
        Ok(())
    }

    fn entered(&mut self, _: &mut Context<impl Host>) -> Result<(), Close> {
        Ok(())
    }

    fn is_waiting(&self) -> bool {
        false
    }

    fn held_bytes(&self) -> usize {
        0
    }

    fn refuse_unfinished(&mut self, _: &mut Context<impl Host>) -> Result<(), Close> {
        Ok(())
    }

    fn reading_paused(&mut self, _: Time) {}

    fn close(&mut self, context: &mut Context<impl Host>, why: &str) {
        self.ending = Some(why.into());
        self.due = context.now;
    }

    fn disconnected(&mut self, _: &mut Context<impl Host>) {}

    fn deadline(&self) -> Option<Time> {
        Some(self.greeted_at.map_or(self.due, |at| at.min(self.due)))
    }

    fn expire(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if context.now < self.due {
            return Ok(());
        }
        let why = self.ending.take();
        let reason = why.map_or("handshake took too long".to_owned(), String::from);
        Err(Close { reason })
    }
}
