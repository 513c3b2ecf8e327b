//! Errors, and the closing of channels and connections.

use super::channel::{Channels, Mode};
use super::codec::Method;
use super::fault::{Code, Fault, Reach};
use super::frame::{self, Frame, FrameError};
use crate::amqp091::handler::{Handler, State, Waiting};
use crate::{Close, Context, Host};

impl Handler {
    /// What follows a broken frame cannot be understood: all of it is dropped.
    pub(super) fn bad_frame(
        &mut self,
        context: &mut Context<impl Host>,
        error: FrameError,
        input_bytes: usize,
    ) -> usize {
        if !self.may_answer(context) {
            return 0;
        }
        self.current = (0, 0);
        self.end(context, &Fault::new(Code::FRAME_ERROR, error.to_string()));
        self.state = State::Deaf;
        input_bytes
    }

    /// After our connection.close, only the peer's answer counts (spec 1.4.2.9).
    pub(super) fn while_closing(
        &mut self,
        context: &mut Context<impl Host>,
        frame: Frame<'_>,
    ) -> Result<(), Close> {
        if frame.kind != frame::METHOD || frame.channel != 0 {
            return Ok(());
        }
        match Method::decode(frame.payload) {
            Ok(Method::ConnectionCloseOk {}) => Err(self.closed()),
            Ok(Method::ConnectionClose { .. }) => {
                self.close_ok(context);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Grants the client's connection.close. The client closes the transport: closed by us at once, the
    /// answer could be lost with it (a reset discards what the client has not read).
    pub(super) fn close_ok(&mut self, context: &mut Context<impl Host>) {
        self.send(context, 0, &Method::ConnectionCloseOk {});
        self.state = State::Closing;
        self.patience = context.now.plus(self.settings.close_timeout);
    }

    pub(super) fn closed(&mut self) -> Close {
        self.state = State::Over;
        let reason = self.ending.as_deref().unwrap_or("closed by the client");
        Close { reason: reason.to_owned() }
    }

    /// Whether the next method may be answered now: every earlier request is complete. Where not, the
    /// connection waits.
    pub(super) fn may_answer(&mut self, context: &mut Context<impl Host>) -> bool {
        let may_answer = !self.connected || context.host.are_requests_complete(self.id);
        if !may_answer {
            self.waiting = Some(Waiting::EarlierRequests);
        }
        may_answer
    }

    /// Whether the method at hand is presented again, when earlier requests are complete.
    pub(super) fn is_presented_again(&self) -> bool {
        matches!(self.waiting, Some(Waiting::EarlierRequests))
    }

    /// Sends the error of a frame that has changed nothing, and closes what it closes. Where earlier requests
    /// are not complete, the frame is presented again: its channel may have been closed by then.
    pub(super) fn fail(&mut self, context: &mut Context<impl Host>, channel: u16, fault: Fault) {
        if self.may_answer(context) {
            self.fail_now(context, channel, fault);
        }
    }

    /// Sends the error of a message that was reassembled and dropped, once earlier requests are complete.
    pub(super) fn fail_message(
        &mut self,
        context: &mut Context<impl Host>,
        channel: u16,
        fault: Fault,
    ) {
        if self.may_answer(context) {
            return self.fail_now(context, channel, fault);
        }
        self.waiting = Some(Waiting::Fault(channel, Box::new(fault)));
    }

    pub(super) fn fail_now(
        &mut self,
        context: &mut Context<impl Host>,
        channel: u16,
        fault: Fault,
    ) {
        let open = self.state == State::Open;
        if fault.reach == Reach::Channel
            && open
            && let Some(found) = self.channels.get(channel)
        {
            found.closing = true;
            found.content = None;
            found.inbox = None;
            found.mode = Mode::Plain;
            context.engine.close(context.now, self.channel_id(channel), context.host);
            let (class_id, method_id) = self.current;
            let reply_text = &fault.reply_text();
            let reply_code = fault.code.0;
            let method = Method::ChannelClose { reply_code, reply_text, class_id, method_id };
            self.send(context, channel, &method);
            return;
        }
        self.end(context, &fault);
    }

    /// Sends connection.close and waits for the answer.
    pub(super) fn end(&mut self, context: &mut Context<impl Host>, fault: &Fault) {
        if matches!(self.state, State::Closing | State::Deaf | State::Over) {
            return;
        }
        self.leave(context);
        let reply_text = &fault.reply_text();
        let (class_id, method_id) = self.current;
        let reply_code = fault.code.0;
        let method = Method::ConnectionClose { reply_code, reply_text, class_id, method_id };
        self.send(context, 0, &method);
        self.state = State::Closing;
        self.patience = context.now.plus(self.settings.close_timeout);
        self.ending = Some(reply_text.as_str().into());
    }

    /// Tells the engine, once, that the connection is gone.
    pub(super) fn leave(&mut self, context: &mut Context<impl Host>) {
        self.waiting = None;
        self.channels = Channels::default();
        if self.connected {
            self.connected = false;
            context.engine.disconnect(context.now, self.id, context.host);
        }
    }
}
