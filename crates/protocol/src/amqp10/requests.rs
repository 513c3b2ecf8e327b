//! What sessions ask the engine for, and its answers.

use super::fault::Fault;
use super::handler::{Handler, Waiting};
use super::pending::Pending;
use crate::{Context, Host};
use angarium_engine::{Refusal, Reply, Request};

impl Handler {
    /// Asks the engine for something. It answers in the order of a session's requests.
    pub(super) fn ask(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        request: Request,
        pending: Pending,
    ) {
        let Some(session) = self.sessions.get(number) else { return };
        session.pending.push_back(pending);
        self.has_asked = true;
        context.engine.request(context.now, self.channel_id(number), request, context.host);
    }

    /// The engine has answered a session.
    pub(super) fn answered(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        reply: Result<Reply, Refusal>,
    ) {
        self.take_answer(context, number, reply);
        if let Some(Waiting::Answers(number)) = self.waiting
            && self.sessions.are_answered(number)
        {
            self.waiting = None;
        }
    }

    fn take_answer(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        reply: Result<Reply, Refusal>,
    ) {
        let Some(session) = self.sessions.get(number) else { return };
        let Some(pending) = session.pending.pop_front() else { return };
        if !session.is_open() {
            return self.end_if_answered(context, number);
        }
        match pending {
            Pending::Nothing => {}
            Pending::Attach { handle, step } => {
                self.attach_answered(context, number, handle, step, reply);
            }
            Pending::Consume { handle } => {
                if let Err(refusal) = reply {
                    let fault = Fault::refused(handle, refusal);
                    self.fail_link(context, number, handle, &fault);
                }
            }
            Pending::Detach { handle, closed } => {
                self.detach_answered(context, number, handle, closed, reply);
            }
            Pending::Declare(asked) => self.declared(context, number, asked, reply),
            Pending::Discharge(asked) => self.discharged(context, number, asked, reply),
            Pending::Call(call) => self.call_answered(context, number, *call, reply),
        }
    }
}
