//! Errors, and the end of connections.

use super::codec::{self, Error, Map, Performative};
use super::fault::{Fault, Reach};
use super::frame::Frame;
use super::handler::{Handler, State, Waiting};
use crate::{Close, Context, Host};

impl Handler {
    /// Sends an error, and ends what it ends.
    pub(super) fn fail(&mut self, context: &mut Context<impl Host>, channel: u16, fault: Fault) {
        match fault.reach {
            Reach::Connection => self.end(context, &fault),
            Reach::Session => self.fail_session(context, channel, fault),
            Reach::Link(handle) => self.fail_link(context, channel, handle, &fault),
        }
    }

    /// Sends close with an error and waits for the peer's.
    pub(super) fn end(&mut self, context: &mut Context<impl Host>, fault: &Fault) {
        self.end_with(context, fault, None);
    }

    /// The same, with more about the error.
    pub(super) fn end_with(
        &mut self,
        context: &mut Context<impl Host>,
        fault: &Fault,
        info: Option<Map<'_>>,
    ) {
        if matches!(self.state, State::Closing | State::Deaf | State::Over) {
            return;
        }
        self.ending = Some(format!("{}: {}", fault.condition, fault.text).into());
        self.leave(context);
        if !self.has_opened {
            self.put_open(context);
        }
        self.put_close(context, Some(Error { info, ..fault.error() }));
    }

    pub(super) fn put_close(&mut self, context: &mut Context<impl Host>, error: Option<Error<'_>>) {
        self.send(context, 0, &codec::Close { error });
        self.state = State::Closing;
        self.patience = context.now.plus(self.settings.close_timeout);
    }

    /// Grants the peer's close. The peer closes the transport: closed by us at once, the answer could be lost
    /// with it (a reset discards what the peer has not read).
    pub(super) fn close_asked(
        &mut self,
        context: &mut Context<impl Host>,
        error: Option<Error<'_>>,
    ) {
        if !self.sessions.are_answered(None) {
            self.waiting = Some(Waiting::Answers(None));
            return;
        }
        let why = error.map(|error| {
            let text = error.description.unwrap_or_default();
            format!("closed by the client: {} {text}", error.condition.0)
        });
        self.ending = Some(why.as_deref().unwrap_or("closed by the client").into());
        self.close_sessions(context);
        self.leave(context);
        if !self.has_opened {
            self.put_open(context);
        }
        if !context.host.is_known_to_shards(self.id) {
            self.waiting = Some(Waiting::ToClose);
            return;
        }
        self.put_close(context, None);
    }

    /// Ends all sessions in good order: what was delivered and not settled goes back as if it never had been.
    fn close_sessions(&mut self, context: &mut Context<impl Host>) {
        for session in &self.sessions.all {
            let id = self.channel_id(session.number);
            context.engine.close(context.now, id, context.host);
        }
    }

    /// After our close, only the peer's answer counts.
    pub(super) fn while_closing(&mut self, frame: Frame<'_>) -> Result<(), Close> {
        match Performative::decode_body(frame.body) {
            Ok((Performative::Close(_), _)) => Err(self.closed()),
            _ => Ok(()),
        }
    }

    pub(super) fn closed(&mut self) -> Close {
        self.state = State::Over;
        let reason = self.ending.as_deref().unwrap_or("closed by the client");
        Close { reason: reason.to_owned() }
    }

    /// Tells the engine, once, that the connection is gone.
    pub(super) fn leave(&mut self, context: &mut Context<impl Host>) {
        self.waiting = None;
        let (writer, out) = self.outgoing(context);
        for session in std::mem::take(&mut self.sessions).all {
            writer.end(out, session.number);
        }
        if self.connected {
            self.connected = false;
            context.engine.disconnect(context.now, self.id, context.host);
        }
    }

    /// Detaches a link with an error.
    pub(super) fn fail_link(
        &mut self,
        context: &mut Context<impl Host>,
        channel: u16,
        handle: u32,
        fault: &Fault,
    ) {
        self.detach_with(context, channel, handle, fault.condition, &fault.text);
    }
}
