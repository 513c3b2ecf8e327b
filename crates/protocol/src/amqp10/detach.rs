//! Links are detached, by the peer and by us.

use super::codec::{Condition, Detach};
use super::fault::{Fault, Reason};
use super::handler::Handler;
use super::link::{LinkStage, Node, SubscriptionName, consumer_of};
use super::link_state::LinkState;
use super::pending::Pending;
use crate::{Context, Host};
use angarium_engine::{Refusal, Reply, Request};

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
            return Err(Fault::unattached("detach", handle));
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
        let is_detached = self.is_detached(context, number, handle);
        let Some(link) = self.sessions.get(number).and_then(|session| session.link(handle)) else {
            return;
        };
        if is_detached {
            if std::mem::take(&mut link.holds) {
                self.release(context, number, handle);
            }
            return self.forget_link(context, number, handle);
        }
        link.stage = LinkStage::Detaching;
        link.unfinished = None;
        let holds = std::mem::take(&mut link.holds);
        let mut requests = Vec::new();
        if let Node::Source(_) = &link.node {
            requests.push(Request::CancelConsumer { name: consumer_of(handle), returns: true });
        }
        if holds {
            requests.push(Request::Release { holder: consumer_of(handle) });
        }
        if let Node::Source(source) | Node::Recovered(source) = &link.node {
            requests.extend(source.subscription.clone().filter(|_| closed).map(deletion));
        }
        let Some(last) = requests.pop() else {
            return self.put_detach(context, number, handle, closed, None);
        };
        for request in requests {
            self.ask(context, number, request, Pending::Nothing);
        }
        self.ask(context, number, last, Pending::Detach { handle, closed });
    }

    /// The engine has ended what a detached link stood for.
    pub(super) fn detach_answered(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        closed: bool,
        reply: Result<Reply, Refusal>,
    ) {
        let Some(link) = self.sessions.get(number).and_then(|session| session.link(handle)) else {
            return;
        };
        // What the peer has asked for by closing the link is refused to it; all else ends in any case.
        let refusal = reply.err().filter(|_| matches!(link.node, Node::Recovered(_)));
        self.put_detach(context, number, handle, closed, refusal);
    }

    /// Answers a detach.
    fn put_detach(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        closed: bool,
        refusal: Option<Refusal>,
    ) {
        if !self.is_detached(context, number, handle) {
            let fault = refusal.map(|refusal| Fault::refused(handle, refusal));
            let error = fault.as_ref().map(Fault::error);
            self.send(context, number, &Detach { handle, closed, error });
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
        let is_detached = self.is_detached(context, number, handle);
        let Some(link) = self.sessions.get(number).and_then(|session| session.link(handle)) else {
            return;
        };
        if link.attaching().is_some() {
            let fault = Fault::link(handle, condition, why);
            return self.refuse_attach(context, number, handle, &fault);
        }
        if !link.is_attached() || is_detached {
            return;
        }
        link.stage = LinkStage::Detached;
        link.unfinished = None;
        let is_source = matches!(link.node, Node::Source(_));
        let holds = std::mem::take(&mut link.holds);
        let (writer, out) = self.outgoing(context);
        if let Some(session) = writer.session(number) {
            session.detach(out, handle, Reason::new(condition, why));
        }
        if is_source {
            let request = Request::CancelConsumer { name: consumer_of(handle), returns: true };
            self.ask(context, number, request, Pending::Nothing);
        }
        if holds {
            self.release(context, number, handle);
        }
    }

    /// A link holds nothing any more.
    pub(super) fn release(&mut self, context: &mut Context<impl Host>, number: u16, handle: u32) {
        let request = Request::Release { holder: consumer_of(handle) };
        self.ask(context, number, request, Pending::Nothing);
    }
}

/// What deletes a durable subscription.
fn deletion(SubscriptionName { owner, name }: SubscriptionName) -> Request {
    Request::DeleteSubscription { owner, name }
}
