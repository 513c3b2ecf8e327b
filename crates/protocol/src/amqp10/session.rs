//! Sessions begin and end.

use super::codec::{Begin, Condition, End};
use super::fault::Fault;
use super::handler::{Handler, Waiting};
use super::pending::Pending;
use super::session_state::{SessionState, Windows};
use super::sessions::{Session, SessionStage};
use crate::{Context, Host};
use angarium_engine::{ChannelId, Request};
use std::collections::VecDeque;

impl Handler {
    pub(super) fn channel_id(&self, number: u16) -> ChannelId {
        ChannelId { connection: self.id, number }
    }

    /// The session that a frame is for; `None`: it ends, and the frame is dropped.
    #[inline]
    pub(super) fn usable(&mut self, number: u16, what: &str) -> Result<Option<usize>, Fault> {
        let Some(index) = self.sessions.find(number) else {
            let text = format!("{what} on channel {number}, on which no session has begun");
            return Err(Fault::connection(Condition::NotAllowed, text));
        };
        Ok(self.sessions.all[index].is_open().then_some(index))
    }

    /// Takes a begin frame.
    pub(super) fn begin(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        begin: &Begin<'_>,
    ) -> Result<(), Fault> {
        if self.sessions.find(number).is_some() {
            let text = format!("begin on channel {number}, on which there is a session already");
            return Err(Fault::connection(Condition::NotAllowed, text));
        }
        if begin.remote_channel.is_some() {
            let text = "begin answers a session of ours, and we have begun none";
            return Err(Fault::connection(Condition::NotAllowed, text));
        }
        if number > self.channel_max {
            let max = self.channel_max;
            let text = format!("channel {number} is beyond the agreed channel-max ({max})");
            return Err(Fault::connection(Condition::FramingError, text));
        }
        let id = self.channel_id(number);
        context.engine.open(id);
        let windows = Windows {
            next_outgoing_id: begin.next_outgoing_id,
            incoming_window: begin.incoming_window,
        };
        let window = self.settings.incoming_window;
        let (writer, _) = self.outgoing(context);
        writer.begin(SessionState::new(number, windows, window));
        let stage = SessionStage::Open;
        let (links, pending) = (Vec::new(), VecDeque::new());
        self.sessions.insert(Session { number, stage, links, pending });
        let answer = Begin {
            remote_channel: Some(number),
            next_outgoing_id: 0,
            incoming_window: window,
            outgoing_window: i32::MAX as u32,
            handle_max: begin.handle_max.min(self.settings.links_max.saturating_sub(1)),
            ..Begin::default()
        };
        self.send(context, number, &answer);
        self.ask(context, number, Request::SelectConfirms { explained: true }, Pending::Nothing);
        Ok(())
    }

    /// Takes an end frame.
    pub(super) fn end_session(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
    ) -> Result<(), Fault> {
        let Some(session) = self.sessions.get(number) else {
            let text = format!("end on channel {number}, on which no session has begun");
            return Err(Fault::connection(Condition::NotAllowed, text));
        };
        if matches!(session.stage, SessionStage::Ended) {
            self.sessions.remove(number);
        } else if session.pending.is_empty() {
            session.stage = SessionStage::Ending(None);
            self.end_if_answered(context, number);
        } else {
            self.waiting = Some(Waiting::Answers(Some(number)));
        }
        Ok(())
    }

    /// Ends a session with an error.
    pub(super) fn fail_session(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        fault: Fault,
    ) {
        if let Some(session) = self.sessions.get(number)
            && session.is_open()
        {
            session.stage = SessionStage::Ending(Some(fault));
            self.end_if_answered(context, number);
        }
    }

    /// Ends a session that is to end, once the engine has answered what is underway: later answers would be
    /// taken for those to the next session of its number.
    pub(super) fn end_if_answered(&mut self, context: &mut Context<impl Host>, number: u16) {
        let Some(session) = self.sessions.get(number) else { return };
        if !session.pending.is_empty() {
            return;
        }
        let SessionStage::Ending(fault) = &mut session.stage else { return };
        let fault = fault.take();
        context.engine.close(context.now, self.channel_id(number), context.host);
        let (writer, out) = self.outgoing(context);
        writer.end(out, number);
        let error = fault.as_ref().map(Fault::error);
        self.send(context, number, &End { error });
        match (&fault, self.sessions.get(number)) {
            (Some(_), Some(session)) => {
                session.stage = SessionStage::Ended;
                session.links = Vec::new();
            }
            _ => self.sessions.remove(number),
        }
    }

    /// The engine has closed a session's channel.
    pub(super) fn lost_session(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        fault: Fault,
    ) {
        if let Some(session) = self.sessions.get(number) {
            session.pending.clear();
            match session.stage {
                SessionStage::Open => self.fail_session(context, number, fault),
                SessionStage::Ending(_) => self.end_if_answered(context, number),
                SessionStage::Ended => {}
            }
        }
    }
}
