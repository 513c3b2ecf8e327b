//! Nodes that answer requests: a link to them takes messages, and answers come by the link that is paired
//! with it or has the target that the request says, or go to the address that it says.

use super::address;
use super::codec::{Limits, Malformed, Sections};
use super::handler::Handler;
use super::management::{Begun, Service, Step};
use super::pending::{Pending, ServiceCall};
use super::sessions::PAIRED;
use super::stored;
use crate::{Context, Host};
use angarium_engine::{Publish, Refusal, Reply, Request, Retain};

impl Handler {
    /// Takes a request. Refused: it is malformed.
    pub(super) fn call(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        service: Service,
        sections: &Sections<'_>,
    ) -> Result<(), Malformed> {
        let Begun { call, step, reply_to } = service.begin(sections, &self.vhost)?;
        match (step, call) {
            (Step::Ask(request), Some(call)) => {
                self.ask_for_call(context, number, request, ServiceCall { call, handle, reply_to });
            }
            (Step::Answer(message), _) => {
                self.answer_call(context, number, handle, reply_to.as_deref(), &message);
            }
            (Step::Ask(_), None) => {}
        }
        Ok(())
    }

    fn ask_for_call(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        request: Request,
        call: ServiceCall,
    ) {
        self.ask(context, number, request, Pending::Call(call.into()));
    }

    /// The engine has answered what was asked for a request.
    pub(super) fn call_answered(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        mut call: ServiceCall,
        reply: Result<Reply, Refusal>,
    ) {
        match call.call.replied(reply) {
            Step::Ask(request) => self.ask_for_call(context, number, request, call),
            Step::Answer(message) => {
                let ServiceCall { handle, reply_to, .. } = call;
                self.answer_call(context, number, handle, reply_to.as_deref(), &message);
            }
        }
    }

    fn answer_call(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        reply_to: Option<&str>,
        message: &[u8],
    ) {
        let (Some(reply_to), Some(session)) = (reply_to, self.sessions.get(number)) else { return };
        if let Some(link) = session.link_for_answers(handle, reply_to) {
            let (writer, out) = self.outgoing(context);
            let frame_bytes_max = writer.frame_bytes_max;
            if let Some(session) = writer.session(number) {
                session.send_own(out, link, message, frame_bytes_max);
            }
            return;
        }
        let address = (reply_to != PAIRED).then(|| address::reply(reply_to)).flatten();
        let Some(address) = address else { return };
        let limits = Limits { properties_bytes_max: usize::MAX };
        let Ok(sections) = Sections::walk(message, limits) else { return };
        let mut properties = Vec::new();
        let Ok(taken) = stored::take(&sections, &mut properties) else { return };
        let content = taken.content;
        let publish = Publish {
            exchange: "",
            routing_key: &address,
            also_to: &[],
            mandatory: false,
            retain: Retain::No,
            not_before: None,
            transaction: None,
            content,
        };
        let id = self.channel_id(number);
        let (writer, _) = self.outgoing(context);
        if let Some(session) = writer.session(number) {
            session.publishing_own();
        }
        // Nobody waits for an answer that may not go there.
        if context.engine.publish(context.now, id, &publish, context.host).is_err() {
            let (writer, _) = self.outgoing(context);
            if let Some(session) = writer.session(number) {
                session.own_not_published();
            }
        }
    }
}
