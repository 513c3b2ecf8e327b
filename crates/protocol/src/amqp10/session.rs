//! Sessions as the handler has them: they begin and end, and what they have asked the engine for.

use super::codec::{Begin, Condition, End, Flow};
use super::fault::Fault;
use super::handler::{Handler, Waiting};
use super::link::{Link, Role};
use super::requests::Pending;
use super::session_state::{SessionState, Windows};
use crate::{Context, Host};
use angarium_engine::{ChannelId, Request};
use std::collections::VecDeque;

/// How far a session has come.
#[derive(Debug)]
pub(super) enum SessionStage {
    /// In use.
    Open,
    /// Nothing is taken for it any more: it ends once what is underway is answered, with an error or at the
    /// peer's request.
    Ending(Option<Fault>),
    /// We have ended it; the peer has not answered.
    Ended,
}

/// A session, which is a channel of the engine.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u16,
    pub(super) stage: SessionStage,
    /// By handle.
    pub(super) links: Vec<Link>,
    /// What the engine's answers are for, in their order: the first is underway.
    pub(super) pending: VecDeque<Pending>,
    /// What it has not been asked for yet.
    pub(super) requests: VecDeque<Request>,
}

impl Session {
    #[inline]
    pub(super) fn link_index(&self, handle: u32) -> Option<usize> {
        let guess = handle as usize;
        if self.links.get(guess).is_some_and(|link| link.handle == handle) {
            return Some(guess);
        }
        self.links.binary_search_by_key(&handle, |link| link.handle).ok()
    }
    pub(super) fn link(&mut self, handle: u32) -> Option<&mut Link> {
        let index = self.link_index(handle)?;
        self.links.get_mut(index)
    }
    pub(super) fn add_link(&mut self, link: Link) {
        if let Err(at) = self.links.binary_search_by_key(&link.handle, |it| it.handle) {
            self.links.insert(at, link);
        }
    }
    pub(super) fn remove_link(&mut self, handle: u32) -> Option<Link> {
        let index = self.link_index(handle)?;
        Some(self.links.remove(index))
    }
    pub(super) fn link_named(&mut self, name: &str, role: Role) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.role == role && *link.name == *name)
    }
    pub(super) fn is_open(&self) -> bool {
        matches!(self.stage, SessionStage::Open)
    }
    /// What the engine has not been asked for yet, it is not.
    pub(super) fn forget_requests(&mut self) {
        self.pending.truncate(self.pending.len() - self.requests.len());
        self.requests.clear();
    }
}

/// The sessions of a connection, by number.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) all: Vec<Session>,
    /// Where the last one was found: the next frame is most likely for the same.
    last: usize,
}

impl Sessions {
    #[inline]
    pub(super) fn find(&mut self, number: u16) -> Option<usize> {
        if !self.all.get(self.last).is_some_and(|session| session.number == number) {
            self.last = self.all.binary_search_by_key(&number, |session| session.number).ok()?;
        }
        Some(self.last)
    }
    #[inline]
    pub(super) fn get(&mut self, number: u16) -> Option<&mut Session> {
        let index = self.find(number)?;
        self.all.get_mut(index)
    }
    fn insert(&mut self, session: Session) {
        if let Err(at) = self.all.binary_search_by_key(&session.number, |it| it.number) {
            self.all.insert(at, session);
        }
    }
    fn remove(&mut self, number: u16) {
        if let Some(index) = self.find(number) {
            self.all.remove(index);
        }
    }
    /// Whether all is answered that this session has asked for, or all have.
    pub(super) fn are_answered(&self, number: Option<u16>) -> bool {
        let mut asking = self.all.iter().filter(|session| !session.pending.is_empty());
        asking.all(|session| number.is_some_and(|number| session.number != number))
    }
    /// Requests that the engine has not answered.
    pub(super) fn pending(&self) -> usize {
        self.all.iter().map(|session| session.pending.len()).sum()
    }
}

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
            return Err(Fault::connection(Condition::NotAllowed, text));
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
        let (links, pending, requests) = (Vec::new(), VecDeque::new(), VecDeque::new());
        self.sessions.insert(Session { number, stage, links, pending, requests });
        let answer = Begin {
            remote_channel: Some(number),
            next_outgoing_id: 0,
            incoming_window: window,
            outgoing_window: i32::MAX as u32,
            handle_max: begin.handle_max.min(self.settings.links_max.saturating_sub(1)),
            ..Begin::default()
        };
        self.send(context, number, &answer);
        self.ask(context, number, Request::SelectConfirms, Pending::Nothing);
        Ok(())
    }

    /// Takes a flow frame.
    pub(super) fn flow(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        flow: &Flow<'_>,
    ) -> Result<(), Fault> {
        let Some(index) = self.usable(number, "flow")? else { return Ok(()) };
        let (writer, out) = self.outgoing(context);
        let frame_bytes_max = writer.frame_bytes_max;
        if let Some(session) = writer.session(number) {
            session.take_windows(flow);
            session.send_held(out, frame_bytes_max);
            if flow.handle.is_none() && flow.echo {
                session.put_flow(out, None);
            }
        }
        match flow.handle {
            Some(handle) => self.link_flow(context, index, handle, flow),
            None => Ok(()),
        }
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

    /// Ends a session that is to end, once all it has asked the engine for is answered: what is answered later
    /// would be taken for answers to the next session of its number.
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
            session.requests.clear();
            match session.stage {
                SessionStage::Open => self.fail_session(context, number, fault),
                SessionStage::Ending(_) => self.end_if_answered(context, number),
                SessionStage::Ended => {}
            }
        }
    }
}
