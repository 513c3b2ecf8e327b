//! Links are attached.

use super::address;
use super::codec::{
    AnyTarget, Attach, Condition, Coordinator, DistributionMode, Performative, ReceiverSettleMode,
    Role as WireRole, SenderSettleMode, Source as WireSource, Symbol, Symbols,
    Target as WireTarget, TerminusDurability, TerminusExpiryPolicy,
};
use super::fault::{Fault, Reason};
use super::handler::Handler;
use super::link::{
    Attaching, Link, LinkStage, Node, Role, Source, SubscriptionName, Target, consumer_of,
};
use super::link_state::{LinkState, Receiver, Sender};
use super::mapping;
use super::pending::{Pending, Step};
use super::terminus::{First, Resolved};
use super::writer;
use crate::names::{NAMES, SUBJECT_EXCHANGE};
use crate::{Context, Host};
use angarium_engine::{
    Arguments, Binding, BindingTarget, Refusal, RefusalKind, Reply, Request, SubscriptionInfo,
    TemporaryKind,
};
use std::borrow::Cow;

/// Octets in a link's name.
const LINK_NAME_BYTES_MAX: usize = 1024;
/// The property of both links of a pair, one for requests and one for their answers.
const PAIRED_PROPERTY: &str = "paired";
/// What peers may desire of a link that we offer.
const LINK_CAPABILITIES: &[&str] = &["SHARED-SUBS", "DELAYED_DELIVERY"];
/// What the coordinator can do.
const COORDINATOR_CAPABILITIES: &[Symbol<'static>] = &[
    Symbol("amqp:local-transactions"),
    Symbol("amqp:multi-txns-per-ssn"),
    Symbol("amqp:multi-ssns-per-txn"),
];

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
        self.steal(context, number, attach.name, role);
        let (writer, _) = self.outgoing(context);
        if let Some(session) = writer.session(number) {
            // It was about a link of that handle before.
            session.take_ended(handle);
        }
        let attaching = Attaching { frame: body.into(), ..Attaching::default() };
        self.sessions.all[index].add_link(Link {
            handle,
            name: attach.name.into(),
            role,
            stage: LinkStage::Attaching(attaching.into()),
            node: Node::Answers { to: Box::default() },
            holds: false,
            is_second: attach.rcv_settle_mode == ReceiverSettleMode::Second,
            unfinished: None,
        });
        let resolved = match (attach.name.len() > LINK_NAME_BYTES_MAX, role) {
            (true, _) => Err(name_is_long(attach)),
            (false, Role::Sender) => self.source(attach),
            (false, Role::Receiver) => self.target(context, number, attach),
        };
        match resolved {
            Ok(Resolved { node, first, taken }) => {
                if let Some(link) = self.sessions.all[index].link(handle) {
                    link.node = node;
                    if let Some(attaching) = link.attaching() {
                        attaching.filters = taken;
                    }
                }
                self.take_place(context, number, handle);
                self.begin_attaching(context, number, handle, first);
            }
            Err(fault) => self.refuse_attach(context, number, handle, &fault),
        }
        Ok(())
    }

    /// Detaches a link of another session of this connection whose name is attached anew. Within a session
    /// both stay: Qpid Proton for Python gives all links to one address the same name.
    fn steal(&mut self, context: &mut Context<impl Host>, by: u16, name: &str, role: Role) {
        let others = self.sessions.all.iter_mut().filter(|session| session.number != by);
        let found = others.into_iter().find_map(|session| {
            let number = session.number;
            let link = session.link_named(name, role).filter(|link| link.may_be_stolen())?;
            Some((number, link.handle, link.is_attaching()))
        });
        let why = "the link was attached anew";
        match found {
            Some((number, handle, true)) => {
                let (writer, out) = self.outgoing(context);
                if let Some(session) = writer.session(number) {
                    session.end_link(out, handle, Reason::new(Condition::LinkStolen, why));
                }
            }
            Some((number, handle, false)) => {
                self.detach_with(context, number, handle, Condition::LinkStolen, why);
            }
            None => {}
        }
    }

    /// Ends links of the same name on other connections with the same container id, user and virtual host
    /// (part 2, 2.6.1): mostly those of a connection whose loss has not been noticed. Not links that several
    /// may have (of shared subscriptions, for requests), nor names that begin with the container id: Qpid
    /// Proton for Python makes such names up, the same for all links to an address.
    fn take_place(&mut self, context: &mut Context<impl Host>, number: u16, handle: u32) {
        let Some(link) = self.sessions.get(number).and_then(|session| session.link(handle)) else {
            return;
        };
        let (role, has_own_name) = match &link.node {
            Node::Source(it) if !it.is_shared => ("from", it.subscription.is_some()),
            Node::Recovered(_) => ("from", true),
            Node::Target(_) => ("to", false),
            _ => return,
        };
        let rest = link.name.strip_prefix(&*self.container);
        let is_made_up = !has_own_name && rest.is_some_and(|rest| rest.starts_with('-'));
        if self.container.is_empty() || is_made_up {
            return;
        }
        link.holds = true;
        let place = format!("{role} {}", link.name);
        let request = Request::TakePlace { place, holder: consumer_of(handle) };
        self.ask(context, number, request, Pending::Nothing);
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
            First::QueueToWrite(name) => {
                if let Some(link) = self.sessions.get(number).and_then(|it| it.link(handle)) {
                    // No other queue goes by itself.
                    link.holds |= name.starts_with(NAMES.queue_prefix);
                }
                let (node, holder) = (BindingTarget::Queue(name), consumer_of(handle));
                (Request::Hold { node, holder }, Step::Find)
            }
            First::Exchange(name) => {
                (Request::DeclareExchange { name, options: None }, Step::Exchange)
            }
            First::Temporary(create) => {
                let link = self.sessions.get(number).and_then(|session| session.link(handle));
                if let Some(attaching) = link.and_then(Link::attaching) {
                    attaching.is_topic = create.kind == TemporaryKind::Topic;
                }
                (Request::CreateTemporary(create.into()), Step::Temporary)
            }
            First::Subscription(open) => (Request::OpenSubscription(open), Step::Subscribe),
            First::Find(SubscriptionName { owner, name }) => {
                (Request::FindSubscription { owner, name }, Step::Recover)
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
        handle: u32,
        step: Step,
        reply: Result<Reply, Refusal>,
    ) {
        let (there, _) = self.outgoing(context);
        if let Some(why) = there.session(number).and_then(|session| session.take_ended(handle)) {
            return self.end_attaching(context, number, handle, why);
        }
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
            (_, Err(refusal)) if refusal.kind == RefusalKind::TakenOver => {
                return self.end_attaching(context, number, handle, writer::TAKEN_OVER);
            }
            (_, Err(refusal)) => Err(refusal),
            (Step::Find | Step::Create | Step::Subscribe, Ok(Reply::Queue { name, .. })) => {
                Ok(queue_found(link, name, step))
            }
            (Step::Temporary, Ok(Reply::Created { name })) => Ok(temporary_made(link, name)),
            (Step::Recover, Ok(Reply::Subscription(info))) => {
                if let Node::Recovered(source) = &mut link.node {
                    source.queue.clone_from(&info.queue);
                }
                if let Some(attaching) = link.attaching() {
                    attaching.recovered = Some(info);
                }
                Ok(None)
            }
            (Step::Bind, Ok(_)) => Ok(consume(link.handle, &link.node)),
            (_, Ok(_)) => Ok(None),
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

    /// Ends a link whose attach is not answered, with what the engine has begun for it.
    fn end_attaching(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        handle: u32,
        why: Reason<'static>,
    ) {
        let Some(link) = self.sessions.get(number).and_then(|session| session.link(handle)) else {
            return;
        };
        link.holds = true;
        if matches!(link.node, Node::Source(_)) {
            let request = Request::CancelConsumer { name: consumer_of(handle), returns: true };
            self.ask(context, number, request, Pending::Nothing);
        }
        let fault = Fault::link(handle, why.condition, why.text);
        self.refuse_attach(context, number, handle, &fault);
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
        let releases = matches!(&link.node,
            Node::Target(Target::Exchange { exchange, .. }) if !exchange.is_empty());
        let settles = matches!(&link.node,
            Node::Source(source) | Node::Recovered(source) if source.is_presettled);
        self.put_attach(context, number, &attach, &attaching, settles);
        let window = self.settings.link_credit;
        let (writer, out) = self.outgoing(context);
        let Some(session) = writer.session(number) else { return };
        match role {
            Role::Sender => {
                let address = attach.source.and_then(|source| source.address);
                let tells_way = address.is_some_and(address::is_of_rabbitmq);
                session.add_link(LinkState::Sender(Sender::new(handle, settles, tells_way)));
            }
            Role::Receiver => {
                let link = Receiver { handle, window, is_paused, releases, ..Receiver::default() };
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
        let found = attaching.recovered.as_deref().and_then(found_address);
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
            properties: attach.properties.filter(|it| it.get(PAIRED_PROPERTY).is_some()),
            ..*attach
        };
        match attach.role {
            WireRole::Sender => {
                answer.role = WireRole::Receiver;
                answer.initial_delivery_count = None;
                answer.max_message_size = Some(self.settings.body_bytes_max);
                answer.target = match (attach.target, address) {
                    (Some(AnyTarget::Target(target)), Some(_)) => {
                        Some(AnyTarget::Target(WireTarget { address, ..target }))
                    }
                    (Some(AnyTarget::Coordinator(_)), _) => {
                        let capabilities = Symbols::new(COORDINATOR_CAPABILITIES);
                        Some(AnyTarget::Coordinator(Coordinator { capabilities }))
                    }
                    (target, _) => target,
                };
            }
            WireRole::Receiver => {
                answer.role = WireRole::Sender;
                answer.initial_delivery_count = Some(0);
                answer.max_message_size = None;
                if settles {
                    answer.snd_settle_mode = SenderSettleMode::Settled;
                }
                let recovered = attaching.recovered.as_deref();
                let found = recovered.map(|info| found_source(info, found.as_deref()));
                answer.source = attach.source.or(found).map(|source| WireSource {
                    address: address.or(source.address),
                    filter: attaching.filters.as_ref().map(|filters| filters.as_map()),
                    ..source
                });
            }
        }
        self.send(context, number, &answer);
    }

    /// Refuses an attach: it is answered without its terminus, and detached (part 2, 2.6.3).
    pub(super) fn refuse_attach(
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
        let holds = std::mem::take(&mut link.holds);
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
            session.detach(out, handle, Reason::new(fault.condition, &fault.text));
        }
        if holds {
            self.release(context, number, handle);
        }
        if attaching.detach.is_some() {
            // The peer's detach answers ours.
            self.forget_link(context, number, handle);
        }
    }
}

/// The error of a link whose name is beyond the limit.
fn name_is_long(attach: &Attach<'_>) -> Fault {
    let (octets, most) = (attach.name.len(), LINK_NAME_BYTES_MAX);
    let text = format!("the link's name of {octets} octets is longer than {most}");
    Fault::link(attach.handle, Condition::ResourceLimitExceeded, text)
}

/// A queue is there for a link: what is asked for next.
fn queue_found(link: &mut Link, name: String, step: Step) -> Option<(Request, Step)> {
    match &mut link.node {
        Node::Source(source) => {
            source.queue.clone_from(&name);
            match step {
                Step::Create => bind(source, name),
                _ => None,
            }
            .or_else(|| consume(link.handle, &link.node))
        }
        _ => None,
    }
}

/// A queue or topic was made for a link: what is asked for next.
fn temporary_made(link: &mut Link, name: String) -> Option<(Request, Step)> {
    link.holds = true;
    match &mut link.node {
        Node::Source(source) => {
            source.queue.clone_from(&name);
            if let Some(bind) = bind(source, name.clone()) {
                return Some(bind);
            }
            if let Some(attaching) = link.attaching() {
                attaching.address = Some(address::of_queue(&name).into_owned());
            }
            consume(link.handle, &link.node)
        }
        _ => {
            let is_topic = link.attaching().is_some_and(|attaching| attaching.is_topic);
            let address = match is_topic {
                true => address::of_exchange(&name),
                false => address::of_queue(&name).into_owned(),
            };
            if let Some(attaching) = link.attaching() {
                attaching.address = Some(address);
            }
            let name: Box<str> = name.into();
            link.node = Node::Target(match is_topic {
                true => {
                    let (key, must_arrive) = (Some("".into()), false);
                    Target::Exchange { exchange: name, key, must_arrive }
                }
                false => {
                    let (exchange, key) = ("".into(), Some(name));
                    Target::Exchange { exchange, key, must_arrive: true }
                }
            });
            None
        }
    }
}

/// Binds the queue that was made for a link, which then has no messages but those that it is about.
fn bind(source: &mut Source, queue: String) -> Option<(Request, Step)> {
    let (exchange, key) = source.binding.clone()?;
    let binding = Binding {
        source: exchange,
        target: BindingTarget::Queue(queue),
        key,
        arguments: Arguments::new(),
        filter: source.filter.take(),
        not_from: source.not_from.take(),
    };
    Some((Request::Bind(binding), Step::Bind))
}

/// What begins to consume for a link.
fn consume(handle: u32, node: &Node) -> Option<(Request, Step)> {
    let Node::Source(source) = node else { return None };
    Some((Request::Consume(mapping::consume(handle, source)), Step::Consume))
}

/// The address of a subscription that was found by its name: asked for with the capabilities of its source,
/// it leads to the same messages.
fn found_address(info: &SubscriptionInfo) -> Option<Cow<'_, str>> {
    Some(address::of_key(&info.source, info.keys.first()?))
}

/// The source of a subscription that was found by its name.
fn found_source<'a>(info: &SubscriptionInfo, address: Option<&'a str>) -> WireSource<'a> {
    const CAPABILITIES: &[Symbol<'static>] = &[Symbol("topic"), Symbol("shared")];
    let first = if info.source == SUBJECT_EXCHANGE { 0 } else { 1 };
    let end = if info.shared { 2 } else { 1 };
    WireSource {
        address,
        durable: TerminusDurability::UnsettledState,
        expiry_policy: TerminusExpiryPolicy::Never,
        distribution_mode: Some(DistributionMode::Copy),
        capabilities: Symbols::new(&CAPABILITIES[first..end]),
        ..WireSource::default()
    }
}
