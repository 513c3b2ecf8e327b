//! Links are attached and detached.

use super::address::{self, Address, NodeKind};
use super::codec::{
    AnyTarget, Attach, Condition, Detach, DistributionMode, Flow, Performative, ReceiverSettleMode,
    Role as WireRole, SenderSettleMode, Source as WireSource, Symbol, Symbols,
    Target as WireTarget, Value,
};
use super::fault::Fault;
use super::handler::Handler;
use super::link::{
    Attaching, Credit, Link, LinkStage, Node, Role, Source, Target, consumer_of, outcome,
    unattached,
};
use super::link_state::{LinkState, Receiver, Sender};
use super::requests::{Pending, Step};
use crate::names::SUBJECT_EXCHANGE;
use crate::{Context, Host};
use angarium_engine::{
    Binding, BindingTarget, Consume, Grant, Outcome, QueueOptions, Refusal, RefusalKind, Reply,
    Request,
};

/// Octets in a link's name.
const LINK_NAME_BYTES_MAX: usize = 1024;
/// The highest priority of messages in queues that are made for JMS clients.
const JMS_PRIORITY_MAX: u8 = 9;
/// The property of an attach frame that ranks consumers.
const PRIORITY_PROPERTY: &str = "rabbitmq:priority";
/// What peers may desire of a link that we offer.
const LINK_CAPABILITIES: &[&str] = &[];

/// What has to be asked of the engine before a link can be used.
#[derive(Debug)]
enum First {
    /// Whether the queue of that name is there; it is made where it is not.
    Queue(String),
    /// Whether the exchange is there.
    Exchange(String),
    /// A queue whose name the engine makes up.
    NewQueue,
    /// Nothing.
    Nothing,
}

impl Handler {
    /// Takes an attach frame, whose body is this.
    pub(super) fn attach(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        attach: &Attach<'_>,
        body: &[u8],
    ) -> Result<(), Fault> {
        let Some(index) = self.usable(number, "attach")? else { return Ok(()) };
        let handle = attach.handle;
        if handle >= self.settings.links_max {
            let max = self.settings.links_max - 1;
            let text = format!("handle {handle} is beyond the agreed handle-max ({max})");
            return Err(Fault::connection(Condition::FramingError, text));
        }
        if self.sessions.all[index].link(handle).is_some() {
            let text = format!("attach with handle {handle}, which another link has");
            return Err(Fault::session(Condition::HandleInUse, text));
        }
        let role = match attach.role {
            WireRole::Sender => Role::Receiver,
            WireRole::Receiver => Role::Sender,
        };
        self.steal(context, attach.name, role);
        let attaching = Attaching {
            frame: body.into(),
            address: None,
            filters: None,
            flow: None,
            detach: None,
        };
        self.sessions.all[index].add_link(Link {
            handle,
            name: attach.name.into(),
            role,
            stage: LinkStage::Attaching(attaching.into()),
            node: Node::None,
            is_second: attach.rcv_settle_mode == ReceiverSettleMode::Second,
            unfinished: None,
        });
        let resolved = match attach.name.len() > LINK_NAME_BYTES_MAX {
            true => {
                Err(Fault::link(handle, Condition::ResourceLimitExceeded, "the name is too long"))
            }
            false => match role {
                Role::Sender => self.source(attach),
                Role::Receiver => self.target(context, number, attach),
            },
        };
        match resolved {
            Ok((node, first)) => {
                if let Some(link) = self.sessions.all[index].link(handle) {
                    link.node = node;
                }
                self.begin_attaching(context, number, handle, first);
            }
            Err(fault) => self.refuse_attach(context, number, handle, &fault),
        }
        Ok(())
    }

    /// Detaches a link of this connection whose name is attached anew.
    fn steal(&mut self, context: &mut Context<impl Host>, name: &str, role: Role) {
        let found = self.sessions.all.iter_mut().find_map(|session| {
            let number = session.number;
            let link = session.link_named(name, role).filter(|link| link.is_attached())?;
            Some((number, link.handle))
        });
        if let Some((number, handle)) = found {
            let why = "the link was attached anew";
            self.detach_with(context, number, handle, Condition::LinkStolen, why);
        }
    }

    /// Reads the source of a link on which we send.
    fn source(&self, attach: &Attach<'_>) -> Result<(Node, First), Fault> {
        let handle = attach.handle;
        let refuse = |condition, text: &str| Err(Fault::link(handle, condition, text));
        let Some(source) = attach.source else {
            return refuse(Condition::NotFound, "there is no link of that name to recover");
        };
        if source.filter.is_some_and(|filters| !filters.is_empty()) {
            return refuse(Condition::NotImplemented, "filters are not offered");
        }
        let mut node = Source {
            is_presettled: attach.snd_settle_mode == SenderSettleMode::Settled,
            default_outcome: source.default_outcome.map(outcome),
            priority: priority(attach),
            ..Source::default()
        };
        if source.dynamic {
            node.is_dynamic = true;
            return Ok((Node::Source(node), First::NewQueue));
        }
        let kind = NodeKind::of(source.capabilities);
        let parsed = address::parse(source.address.unwrap_or_default(), kind)
            .map_err(|why| Fault::link(handle, Condition::InvalidField, why))?;
        let first = match parsed {
            Address::Queue(name) => First::Queue(name.into_owned()),
            Address::Any(name) => First::Queue(name.to_owned()),
            Address::Topic(pattern) => {
                node.binding = Some((SUBJECT_EXCHANGE.to_owned(), pattern.into_owned()));
                First::NewQueue
            }
            Address::Exchange { exchange, key } => {
                let key = key.unwrap_or_default().into_owned();
                node.binding = Some((exchange.into_owned(), key));
                First::NewQueue
            }
            Address::Subscription { topic, queue } => {
                node.binding = Some((SUBJECT_EXCHANGE.to_owned(), topic.to_owned()));
                First::Queue(queue.to_owned())
            }
            Address::Management | Address::ReadOnlyManagement => {
                return refuse(Condition::NotImplemented, "there is no management node");
            }
        };
        let is_queue = matches!(first, First::Queue(_));
        if is_queue && source.distribution_mode == Some(DistributionMode::Copy) {
            node.browses = true;
            node.is_presettled = true;
        }
        Ok((Node::Source(node), first))
    }

    /// Reads the target of a link on which we receive.
    fn target(
        &self,
        context: &mut Context<impl Host>,
        number: u16,
        attach: &Attach<'_>,
    ) -> Result<(Node, First), Fault> {
        let handle = attach.handle;
        let refuse = |condition, text: &str| Err(Fault::link(handle, condition, text));
        let target = match attach.target {
            Some(AnyTarget::Target(target)) => target,
            Some(AnyTarget::Coordinator(_)) => {
                return refuse(Condition::NotImplemented, "transactions are not offered");
            }
            None => return refuse(Condition::InvalidField, "the link has no target"),
        };
        if target.dynamic {
            return Ok((Node::None, First::NewQueue));
        }
        let Some(address) = target.address else {
            return Ok((Node::Target(Target::Anonymous), First::Nothing));
        };
        let parsed = address::parse(address, NodeKind::of(target.capabilities))
            .map_err(|why| Fault::link(handle, Condition::InvalidField, why))?;
        let (exchange, key, first) = match parsed {
            Address::Queue(name) => {
                let name = name.into_owned();
                (String::new(), Some(name.clone()), First::Queue(name))
            }
            Address::Any(name) | Address::Subscription { queue: name, .. } => {
                (String::new(), Some(name.to_owned()), First::Queue(name.to_owned()))
            }
            Address::Topic(subject) => {
                (SUBJECT_EXCHANGE.to_owned(), Some(subject.into_owned()), First::Nothing)
            }
            Address::Exchange { exchange, key } => {
                let exchange = exchange.into_owned();
                let first = match exchange.as_str() {
                    "" => First::Nothing,
                    _ => First::Exchange(exchange.clone()),
                };
                (exchange, key.map(|key| key.into_owned()), first)
            }
            Address::Management | Address::ReadOnlyManagement => {
                return refuse(Condition::NotImplemented, "there is no management node");
            }
        };
        let id = self.channel_id(number);
        let right = context.engine.check_right_to_publish(
            id,
            &exchange,
            key.as_deref().unwrap_or_default(),
        );
        right.map_err(|refusal| Fault::refused(handle, refusal))?;
        let (exchange, key) = (exchange.into(), key.map(Into::into));
        Ok((Node::Target(Target::Exchange { exchange, key }), first))
    }

    fn begin_attaching(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        first: First,
    ) {
        let (request, step) = match first {
            First::Queue(name) => (Request::DeclareQueue { name, options: None }, Step::Find),
            First::Exchange(name) => {
                (Request::DeclareExchange { name, options: None }, Step::Exchange)
            }
            First::NewQueue => {
                let options = QueueOptions {
                    exclusive: true,
                    priority_max: Some(JMS_PRIORITY_MAX),
                    ..QueueOptions::default()
                };
                let (name, options) = (String::new(), Some(options));
                (Request::DeclareQueue { name, options }, Step::Create)
            }
            First::Nothing => return self.answer_attach(context, number, handle),
        };
        self.ask(context, number, request, Pending::Attach { handle, step });
    }

    /// Goes on with a link after an answer of the engine.
    pub(super) fn attach_answered(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        (handle, step): (u32, Step),
        reply: Result<Reply, Refusal>,
    ) {
        let Some(link) = self.sessions.get(number).and_then(|session| session.link(handle)) else {
            return;
        };
        let next = match (step, reply) {
            (Step::Find, Err(refusal)) if refusal.kind == RefusalKind::NotFound => {
                match self.creation(number, handle) {
                    Some(request) => Ok(Some((request, Step::Create))),
                    None => Err(refusal),
                }
            }
            (_, Err(refusal)) => Err(refusal),
            (Step::Find | Step::Create, Ok(Reply::Queue { name, .. })) => {
                Ok(queue_found(link, name, step))
            }
            (Step::Bind, Ok(_)) => Ok(consume(link)),
            (Step::Find | Step::Create | Step::Exchange | Step::Consume, Ok(_)) => Ok(None),
        };
        match next {
            Ok(Some((request, step))) => {
                self.ask(context, number, request, Pending::Attach { handle, step });
            }
            Ok(None) => self.answer_attach(context, number, handle),
            Err(refusal) => {
                let fault = Fault::refused(handle, refusal);
                self.refuse_attach(context, number, handle, &fault);
            }
        }
    }

    /// What makes a queue that a link names and that is not there; `None`: it is not made.
    fn creation(&mut self, number: u16, handle: u32) -> Option<Request> {
        if !self.settings.creates_queues {
            return None;
        }
        let link = self.sessions.get(number)?.link(handle)?;
        let role = link.role;
        let Performative::Attach(attach) =
            Performative::decode_body(&link.attaching()?.frame).ok()?.0
        else {
            return None;
        };
        let (address, capabilities) = match (attach.source, attach.target, role) {
            (Some(source), _, Role::Sender) => (source.address, source.capabilities),
            (_, Some(AnyTarget::Target(it)), Role::Receiver) => (it.address, it.capabilities),
            _ => return None,
        };
        let kind = NodeKind::of(capabilities);
        let name = match address::parse(address?, kind).ok()? {
            Address::Queue(name) => name.into_owned(),
            Address::Any(name) | Address::Subscription { queue: name, .. } => name.to_owned(),
            _ => return None,
        };
        let priority_max = (kind == Some(NodeKind::Queue)).then_some(JMS_PRIORITY_MAX);
        let options = QueueOptions { durable: true, priority_max, ..QueueOptions::default() };
        Some(Request::DeclareQueue { name, options: Some(options) })
    }

    /// Answers an attach: the link can be used.
    pub(super) fn answer_attach(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
    ) {
        let Some(link) = self.sessions.get(number).and_then(|session| session.link(handle)) else {
            return;
        };
        let stage = std::mem::replace(&mut link.stage, LinkStage::Attached);
        let LinkStage::Attaching(attaching) = stage else { return };
        let Ok((Performative::Attach(attach), _)) = Performative::decode_body(&attaching.frame)
        else {
            return;
        };
        let (role, is_paused) = (link.role, self.is_blocked);
        let settles = matches!(&link.node, Node::Source(source) if source.is_presettled);
        self.put_attach(context, number, &attach, &attaching, settles);
        let window = self.settings.link_credit;
        let (writer, out) = self.outgoing(context);
        let Some(session) = writer.session(number) else { return };
        match role {
            Role::Sender => session.add_link(LinkState::Sender(Sender::new(handle, settles))),
            Role::Receiver => {
                let link = Receiver { handle, window, is_paused, ..Receiver::default() };
                session.add_link(LinkState::Receiver(link));
                session.top_up(out, handle);
            }
        }
        if let Some(credit) = attaching.flow {
            self.grant(context, number, handle, credit);
        }
        if let Some(closed) = attaching.detach {
            self.detach_asked(context, number, handle, closed);
        }
    }

    fn put_attach(
        &self,
        context: &mut Context<impl Host>,
        number: u16,
        attach: &Attach<'_>,
        attaching: &Attaching,
        settles: bool,
    ) {
        let address = attaching.address.as_deref();
        let offered: Vec<Symbol<'_>> = attach
            .desired_capabilities
            .iter()
            .filter(|desired| LINK_CAPABILITIES.contains(&desired.0))
            .collect();
        let mut answer = Attach {
            offered_capabilities: Symbols::new(&offered),
            desired_capabilities: Symbols::NONE,
            unsettled: None,
            incomplete_unsettled: false,
            properties: None,
            ..*attach
        };
        match attach.role {
            WireRole::Sender => {
                answer.role = WireRole::Receiver;
                answer.initial_delivery_count = None;
                answer.max_message_size = Some(self.settings.body_bytes_max);
                if let (Some(AnyTarget::Target(target)), Some(_)) = (attach.target, address) {
                    answer.target = Some(AnyTarget::Target(WireTarget { address, ..target }));
                }
            }
            WireRole::Receiver => {
                answer.role = WireRole::Sender;
                answer.initial_delivery_count = Some(0);
                answer.max_message_size = None;
                if settles {
                    answer.snd_settle_mode = SenderSettleMode::Settled;
                }
                answer.source = attach.source.map(|source| WireSource {
                    address: address.or(source.address),
                    filter: attaching.filters.as_ref().map(|filters| filters.as_map()),
                    ..source
                });
            }
        }
        self.send(context, number, &answer);
    }

    /// Refuses an attach: it is answered without its terminus, and detached (part 2, 2.6.3).
    fn refuse_attach(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        fault: &Fault,
    ) {
        let Some(link) = self.sessions.get(number).and_then(|session| session.link(handle)) else {
            return;
        };
        let stage = std::mem::replace(&mut link.stage, LinkStage::Detached);
        let LinkStage::Attaching(attaching) = stage else { return };
        if let Ok((Performative::Attach(attach), _)) = Performative::decode_body(&attaching.frame) {
            let mut answer = Attach {
                name: attach.name,
                handle,
                snd_settle_mode: attach.snd_settle_mode,
                rcv_settle_mode: attach.rcv_settle_mode,
                ..Attach::default()
            };
            match attach.role {
                WireRole::Sender => {
                    answer.role = WireRole::Receiver;
                    answer.source = attach.source;
                }
                WireRole::Receiver => {
                    answer.role = WireRole::Sender;
                    answer.initial_delivery_count = Some(0);
                    answer.target = attach.target;
                }
            }
            self.send(context, number, &answer);
        }
        let (writer, out) = self.outgoing(context);
        if let Some(session) = writer.session(number) {
            let link = Receiver { handle, ..Receiver::default() };
            session.add_link(LinkState::Receiver(link));
            session.detach(out, handle, (fault.condition, &fault.text));
        }
        if attaching.detach.is_some() {
            // The peer's detach answers ours.
            self.forget_link(context, number, handle);
        }
    }

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
    fn detach_asked(
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

    fn forget_link(&mut self, context: &mut Context<impl Host>, number: u16, handle: u32) {
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
            session.detach(out, handle, (condition, why));
        }
        if is_source {
            let request = Request::CancelConsumer { name: consumer_of(handle), returns: true };
            self.ask(context, number, request, Pending::Nothing);
        }
    }

    /// Takes what a flow frame says of a link.
    pub(super) fn link_flow(
        &mut self,
        context: &mut Context<impl Host>,
        index: usize,
        handle: u32,
        flow: &Flow<'_>,
    ) -> Result<(), Fault> {
        let session = &mut self.sessions.all[index];
        let number = session.number;
        let Some(link) = session.link(handle) else { return Err(unattached("flow", handle)) };
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

    /// Allows deliveries on a link as far as the peer's credit.
    fn grant(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        credit: Credit,
    ) {
        let (writer, out) = self.outgoing(context);
        let Some(session) = writer.session(number) else { return };
        let Some(link) = session.sender(handle).filter(|link| !link.is_detached) else { return };
        let up_to = link.allow(credit.delivery_count, credit.link_credit);
        if credit.echo && !credit.drain {
            session.put_flow(out, Some(handle));
        }
        let grant = Grant { up_to, drain: credit.drain };
        let id = self.channel_id(number);
        context.engine.grant(id, &consumer_of(handle), grant, context.host);
    }
}

/// A queue is there for a link: what is asked for next.
fn queue_found(link: &mut Link, name: String, step: Step) -> Option<(Request, Step)> {
    let is_new = matches!(step, Step::Create);
    match &mut link.node {
        Node::Source(source) => {
            source.queue.clone_from(&name);
            let binding = source.binding.clone();
            let is_dynamic = source.is_dynamic;
            if is_dynamic && let Some(attaching) = link.attaching() {
                attaching.address = Some(address::of_queue(&name).into_owned());
            }
            match binding.filter(|_| is_new) {
                Some((source, key)) => {
                    let target = BindingTarget::Queue(name);
                    let arguments = Default::default();
                    Some((Request::Bind(Binding { source, target, key, arguments }), Step::Bind))
                }
                None => consume(link),
            }
        }
        Node::None => {
            if let Some(attaching) = link.attaching() {
                attaching.address = Some(address::of_queue(&name).into_owned());
            }
            link.node = Node::Target(Target::Dynamic { queue: name.into() });
            None
        }
        Node::Target(_) => None,
    }
}

/// What begins to consume for a link.
fn consume(link: &Link) -> Option<(Request, Step)> {
    let Node::Source(source) = &link.node else { return None };
    let consume = Consume {
        queue: source.queue.clone(),
        name: consumer_of(link.handle),
        browses: source.browses,
        presettled: source.is_presettled,
        priority: source.priority,
        is_granted: true,
        on_close: Outcome::RELEASE,
        on_loss: source.default_outcome.unwrap_or(Outcome::REQUEUE),
        ..Consume::default()
    };
    Some((Request::Consume(consume), Step::Consume))
}

/// The rank of a consumer, as its attach says.
fn priority(attach: &Attach<'_>) -> i32 {
    match attach.properties.and_then(|properties| properties.get(PRIORITY_PROPERTY)) {
        Some(Value::Int(priority)) => priority,
        Some(Value::Long(priority)) => i32::try_from(priority).unwrap_or(0),
        _ => 0,
    }
}
