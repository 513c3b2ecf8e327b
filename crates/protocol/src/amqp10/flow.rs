//! Flow frames: the windows of sessions, and credit of links.

use super::codec::Flow;
use super::fault::Fault;
use super::handler::Handler;
use super::link::{Credit, LinkStage, Node, Role, consumer_of};
use super::mapping;
use super::pending::Pending;
use crate::{Context, Host};
use angarium_engine::{Grant, Request};

impl Handler {
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

    /// Takes what a flow frame says of a link.
    fn link_flow(
        &mut self,
        context: &mut Context<impl Host>,
        index: usize,
        handle: u32,
        flow: &Flow<'_>,
    ) -> Result<(), Fault> {
        let session = &mut self.sessions.all[index];
        let number = session.number;
        let Some(link) = session.link(handle) else {
            return Err(Fault::unattached("flow", handle));
        };
        let credit = flow.link_credit.map(|link_credit| Credit {
            delivery_count: flow.delivery_count,
            link_credit,
            drain: flow.drain,
            echo: flow.echo,
        });
        match (link.role, &mut link.stage, credit) {
            (Role::Sender, LinkStage::Attaching(attaching), Some(credit)) => {
                attaching.flow = Some(credit);
            }
            (Role::Sender, LinkStage::Attached, Some(credit)) => {
                self.grant(context, number, handle, credit);
            }
            (_, LinkStage::Attached, _) if flow.echo => {
                let (writer, out) = self.outgoing(context);
                if let Some(session) = writer.session(number) {
                    session.put_flow(out, Some(handle));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Begins to consume from a durable subscription that was found by its link's name.
    fn begin_recovered(&mut self, context: &mut Context<impl Host>, number: u16, handle: u32) {
        let link = self.sessions.get(number).and_then(|session| session.link(handle));
        let Some(link) = link else { return };
        let Node::Recovered(source) = &mut link.node else { return };
        let source = std::mem::take(source);
        let request = Request::Consume(mapping::consume(handle, &source));
        link.node = Node::Source(source);
        self.ask(context, number, request, Pending::Consume { handle });
    }

    /// Allows deliveries on a link as far as the peer's credit.
    pub(super) fn grant(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        credit: Credit,
    ) {
        if credit.link_credit > 0 {
            self.begin_recovered(context, number, handle);
        }
        let link = self.sessions.get(number).and_then(|session| session.link(handle));
        let is_consumer = link.is_some_and(|link| matches!(link.node, Node::Source(_)));
        let (writer, out) = self.outgoing(context);
        let Some(session) = writer.session(number) else { return };
        let Some(link) = session.sender(handle).filter(|link| !link.is_detached) else { return };
        let up_to = link.allow(credit.delivery_count, credit.link_credit);
        if credit.echo && !credit.drain {
            session.put_flow(out, Some(handle));
        }
        if !is_consumer {
            // Nothing but answers of the broker itself goes there.
            let frame_bytes_max = writer.frame_bytes_max;
            if let Some(session) = writer.session(number) {
                session.send_answers(out, handle, frame_bytes_max);
                if credit.drain {
                    session.drained(out, handle, frame_bytes_max);
                }
            }
            return;
        }
        let grant = Grant { up_to, drain: credit.drain };
        let id = self.channel_id(number);
        context.engine.grant(id, &consumer_of(handle), grant, context.host);
    }
}
