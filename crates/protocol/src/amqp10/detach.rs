//! Links are detached, by the peer and by us.

use super::codec::{Condition, Detach};
use super::fault::{Fault, Reason};
use super::handler::Handler;
use super::link::{LinkStage, Node, Target, consumer_of, unattached};
use super::link_state::LinkState;
use super::pending::Pending;
use crate::{Context, Host};
use angarium_engine::Request;

impl Handler {
    /// Takes a detach frame.
    pub(super) fn detach(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        detach: &Detach<'_>,
    ) -> Result<(), Fault> {
        let Some(index) = self.usable(number, "detach")? else { return Ok(()) };
        let handle = detach.handle;
        let Some(link) = self.sessions.all[index].link(handle) else {
            return Err(unattached("detach", handle));
        };
        if let Some(attaching) = link.attaching() {
            attaching.detach = Some(detach.closed);
            return Ok(());
        }
        self.detach_asked(context, number, handle, detach.closed);
        Ok(())
    }

    /// The peer detaches a link; one that we have detached is gone with that.
    pub(super) fn detach_asked(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        closed: bool,
    ) {
        if self.is_detached(context, number, handle) {
            return self.forget_link(context, number, handle);
        }
        let Some(link) = self.sessions.get(number).and_then(|session| session.link(handle)) else {
            return;
        };
        link.stage = LinkStage::Detaching;
        link.unfinished = None;
        let request = match &link.node {
            Node::Source(_) => Request::CancelConsumer { name: consumer_of(handle), returns: true },
            Node::Target(Target::Dynamic { queue }) if closed => {
                Request::DeleteQueue { name: queue.to_string(), if_unused: false, if_empty: false }
            }
            _ => return self.put_detach(context, number, handle, closed),
        };
        self.ask(context, number, request, Pending::Detach { handle, closed });
    }

    /// The engine has ended what a detached link stood for.
    pub(super) fn detach_answered(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        closed: bool,
    ) {
        let link = self.sessions.get(number).and_then(|session| session.link(handle));
        let Some(link) = link else { return };
        if let Node::Source(source) = &link.node
            && (source.is_dynamic || source.binding.is_some())
        {
            // The queue was made for the link.
            let name = source.queue.clone();
            let request = Request::DeleteQueue { name, if_unused: false, if_empty: false };
            link.node = Node::None;
            return self.ask(context, number, request, Pending::Detach { handle, closed });
        }
        self.put_detach(context, number, handle, closed);
    }

    /// Answers a detach.
    fn put_detach(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        closed: bool,
    ) {
        if !self.is_detached(context, number, handle) {
            self.send(context, number, &Detach { handle, closed, error: None });
        }
        self.forget_link(context, number, handle);
    }

    /// Whether we have detached a link, and the peer has not answered.
    pub(super) fn is_detached(
        &self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
    ) -> bool {
        let (writer, _) = self.outgoing(context);
        let link = writer.session(number).and_then(|session| session.link(handle));
        link.is_some_and(LinkState::is_detached)
    }

    pub(super) fn forget_link(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
    ) {
        let (writer, out) = self.outgoing(context);
        let mut is_broken = false;
        if let Some(session) = writer.session(number) {
            session.remove_link(handle, out);
            is_broken = session.is_broken();
        }
        if let Some(session) = self.sessions.get(number) {
            session.remove_link(handle);
        }
        if is_broken {
            let text =
                "links were detached too often while messages waited for the session's window";
            let fault = Fault::session(Condition::ResourceLimitExceeded, text);
            self.fail_session(context, number, fault);
        }
    }

    /// Detaches a link with an error.
    pub(super) fn detach_with(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        condition: Condition,
        why: &str,
    ) {
        let Some(link) = self.sessions.get(number).and_then(|session| session.link(handle)) else {
            return;
        };
        if link.attaching().is_some() {
            let fault = Fault::link(handle, condition, why);
            return self.refuse_attach(context, number, handle, &fault);
        }
        if !link.is_attached() {
            return;
        }
        link.stage = LinkStage::Detached;
        link.unfinished = None;
        let is_source = matches!(link.node, Node::Source(_));
        let (writer, out) = self.outgoing(context);
        if let Some(session) = writer.session(number) {
            session.detach(out, handle, Reason::new(condition, why));
        }
        if is_source {
            let request = Request::CancelConsumer { name: consumer_of(handle), returns: true };
            self.ask(context, number, request, Pending::Nothing);
        }
    }
}
