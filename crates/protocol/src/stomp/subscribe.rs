//! SUBSCRIBE and UNSUBSCRIBE: a queue is found or made, bound where it is one for an exchange, and consumed
//! from.

use super::asked::{Asked, Step, Subscribing, Taken};
use super::codec::Headers;
use super::destination::{Destination, TEMP_QUEUE, binding_key};
use super::fault::{Failure, Fault};
use super::frame::put_value;
use super::handler::{Handler, Waiting};
use super::mapping::{self, QueueHeaders};
use super::subscription::{AckMode, Durable, ID_SEPARATOR, Subscription};
use super::writer::{Shown, ShownDestination};
use crate::names::SUBJECT_EXCHANGE;
use crate::{Context, Host};
use angarium_engine::{
    Arguments, Binding, BindingTarget, Consume, Credit, OpenSubscription, Outcome, QueueOptions,
    Refusal, RefusalKind, Reply, Request, SlowConsumerPolicy, Subscribe, fitting_name,
};

/// Headers with how many messages may be unacknowledged: RabbitMQ's and ActiveMQ's.
const PREFETCH: [&str; 2] = ["prefetch-count", "activemq.prefetchSize"];
/// The header with how many bytes of messages may be unacknowledged: Artemis's.
const WINDOW: [&str; 2] = ["consumer-window-size", "activemq.consumerWindowSize"];
const PRIORITY: [&str; 2] = ["x-priority", "activemq.priority"];
/// The header of a consumer that has its queue to itself, and that of one that wants what was published
/// before it came: ActiveMQ's.
const EXCLUSIVE: [&str; 1] = ["activemq.exclusive"];
const RETROACTIVE: [&str; 1] = ["activemq.retroactive"];
const NO_LOCAL: [&str; 2] = ["no-local", "activemq.noLocal"];
/// The header of a subscription that gets messages as they come, without a queue: what becomes of them
/// where the client is too slow.
const SLOW_CONSUMER_POLICY: &str = "slow-consumer-policy";

/// What SUBSCRIBE asks for.
struct Wanted<'a> {
    id: Option<&'a str>,
    destination: &'a str,
    ack: AckMode,
    durable: Option<Durable>,
    shown: ShownDestination,
}

impl Handler {
    /// Takes SUBSCRIBE.
    pub(super) fn subscribe(
        &mut self,
        context: &mut Context<impl Host>,
        headers: &Headers<'_>,
    ) -> Result<Taken, Fault> {
        let named = headers.get("destination")?;
        let named = named.ok_or_else(|| Fault::missing("SUBSCRIBE", "destination"))?;
        let id = headers.get("id")?;
        if let Some(id) = id.as_deref() {
            self.check_id(id)?;
        }
        let is_multicast = headers.get("subscription-type")?.as_deref() == Some("MULTICAST");
        let destination = Destination::parse(&named, is_multicast)?;
        destination.check_subscribed()?;
        check_not_retroactive(headers)?;
        let ack = ack_mode(headers)?;
        let receipt: Option<Box<str>> = headers.get("receipt")?.map(Into::into);
        let mut wanted = Wanted {
            id: id.as_deref(),
            destination: &named,
            ack,
            durable: None,
            shown: shown_destination(&named, &destination),
        };
        if let Some(policy) = headers.get(SLOW_CONSUMER_POLICY)? {
            return self.subscribe_direct(context, headers, &destination, wanted, &policy, receipt);
        }
        let mut consume = consume(headers, ack)?;
        let filter = mapping::filter(headers)?;
        let asked = QueueHeaders::read(headers, true)?;
        let not_from = mapping::is_true(headers, &NO_LOCAL)?.then(|| self.client_name());
        let source = self.source(&destination);
        let Some((source, key)) = source else {
            consume.filter = filter;
            return self.subscribe_queue(context, &destination, wanted, asked, consume, receipt);
        };
        let binding = Binding {
            source,
            target: BindingTarget::Queue(String::new()),
            key,
            arguments: Arguments::new(),
            filter,
            not_from,
        };
        let own_name = mapping::first_of(headers, &mapping::SUBSCRIPTION_NAMES)?;
        let is_durable = asked.durable == Some(true) && asked.auto_delete != Some(true);
        let (request, binding) = if asked.name.is_none() && (own_name.is_some() || is_durable) {
            let mut open = self.named_subscription(own_name, &wanted, binding, &asked)?;
            open.consumer = Some(consume.name.clone());
            let (owner, name) = (open.owner.clone(), open.name.clone());
            wanted.durable = Some(Durable::Named { owner, name });
            (Request::OpenSubscription(open.into()), None)
        } else {
            let mut options = asked.of_subscription();
            if is_durable {
                options.auto_delete = false;
                wanted.durable = asked.name.clone().map(Durable::Queue);
            }
            let name = asked.name.unwrap_or_default();
            (Request::DeclareQueue { name, options: Some(options) }, Some(binding))
        };
        let channel = self.begin_subscription(context, wanted)?;
        let (step, missing, temporary) = (Step::Declare, None, None);
        let subscribing =
            Subscribing { channel, receipt, step, missing, binding, consume, temporary };
        self.ask(context, channel, request, Asked::Subscribe(subscribing.into()));
        Ok(Taken::Done)
    }

    /// The exchange and the key that lead messages to a subscription; `None`: they come from a queue.
    fn source(&self, destination: &Destination<'_>) -> Option<(String, String)> {
        match destination {
            Destination::Topic(pattern) => {
                Some((SUBJECT_EXCHANGE.to_owned(), binding_key(pattern).into_owned()))
            }
            Destination::TempTopic(name) => {
                Some((SUBJECT_EXCHANGE.to_owned(), self.temporary_topic(name)))
            }
            Destination::Exchange(exchange, key) => Some((exchange.to_string(), key.to_string())),
            _ => None,
        }
    }

    /// A subscription whose messages come straight from a queue.
    fn subscribe_queue(
        &mut self,
        context: &mut Context<impl Host>,
        destination: &Destination<'_>,
        wanted: Wanted<'_>,
        asked: QueueHeaders,
        mut consume: Consume,
        receipt: Option<Box<str>>,
    ) -> Result<Taken, Fault> {
        let (mut missing, mut temporary) = (None, None);
        let (request, step) = match destination {
            Destination::Queue(name) => {
                let (name, options) = (name.to_string(), asked.of_queue());
                if asked.is_explicit() {
                    (Request::DeclareQueue { name, options: Some(options) }, Step::Declare)
                } else {
                    missing = Some(options);
                    (Request::DeclareQueue { name, options: None }, Step::Find)
                }
            }
            Destination::TempQueue(name) => match self.temporary.get(*name) {
                Some(queue) => {
                    let name = queue.clone();
                    (Request::DeclareQueue { name, options: None }, Step::Find)
                }
                None => {
                    temporary = Some((*name).into());
                    (temporary_queue_of(asked.options), Step::Declare)
                }
            },
            Destination::OldQueue(name) | Destination::Reply(name) => {
                (Request::DeclareQueue { name: name.to_string(), options: None }, Step::Find)
            }
            Destination::Topic(_) | Destination::TempTopic(_) | Destination::Exchange(..) => {
                unreachable!("those are bound")
            }
        };
        let channel = self.begin_subscription(context, wanted)?;
        consume.queue = String::new();
        let binding = None;
        let subscribing =
            Subscribing { channel, receipt, step, missing, binding, consume, temporary };
        self.ask(context, channel, request, Asked::Subscribe(subscribing.into()));
        Ok(Taken::Done)
    }

    /// Makes the queue that the client calls `/temp-queue/` and this for answers, and subscribes to it as
    /// that.
    pub(super) fn subscribe_to_answers(
        &mut self,
        context: &mut Context<impl Host>,
        name: &str,
    ) -> Result<(), Fault> {
        let id = format!("{TEMP_QUEUE}{name}");
        let shown = ShownDestination::Asked(id.clone().into());
        let ack = AckMode::Auto;
        let wanted = Wanted { id: Some(&id), destination: &id, ack, durable: None, shown };
        let channel = self.begin_subscription(context, wanted)?;
        let subscribing = Subscribing {
            channel,
            receipt: None,
            step: Step::Declare,
            missing: None,
            binding: None,
            consume: Consume { presettled: true, ..Consume::default() },
            temporary: Some(name.into()),
        };
        let request = temporary_queue_of(QueueOptions::default());
        self.ask(context, channel, request, Asked::Subscribe(subscribing.into()));
        Ok(())
    }

    /// A subscription to subjects whose messages do not wait in a queue.
    fn subscribe_direct(
        &mut self,
        context: &mut Context<impl Host>,
        headers: &Headers<'_>,
        destination: &Destination<'_>,
        wanted: Wanted<'_>,
        policy: &str,
        receipt: Option<Box<str>>,
    ) -> Result<Taken, Fault> {
        let wrong = |why: &str| {
            Fault::new(
                "precondition_failed",
                format!("PRECONDITION_FAILED - {SLOW_CONSUMER_POLICY}: {why}"),
            )
        };
        let named = SlowConsumerPolicy::named(policy).ok_or_else(|| {
            wrong(&format!(
                "'{policy}' is none of disconnect, drop-oldest, drop-new, conflate, spool"
            ))
        })?;
        let subject = match destination {
            Destination::Topic(pattern) => pattern.to_string(),
            Destination::TempTopic(name) => self.temporary_topic(name),
            _ => return Err(wrong("it is for /topic/ alone")),
        };
        if wanted.ack != AckMode::Auto || mapping::filter(headers)?.is_some() {
            return Err(wrong("such a subscription has no selector, and no acknowledgements"));
        }
        if subject.split('.').any(|word| word == "#") {
            return Err(wrong("such a subscription has > at its end in place of #"));
        }
        let channel = self.begin_subscription(context, wanted)?;
        if let Some(last) = self.subscriptions.last_mut() {
            last.is_direct = true;
        }
        let subscribe = Subscribe {
            subject: &subject,
            group: None,
            name: "",
            slow_consumer_policy: Some(named),
        };
        self.outgoing(context).0.has_direct = true;
        let id = self.channel_id(channel);
        context.engine.subscribe(id, subscribe, context.host)?;
        self.receipt_once_known(context, receipt);
        Ok(Taken::Done)
    }

    /// Sends a receipt once all shards know the connection's subscriptions.
    fn receipt_once_known(&mut self, context: &mut Context<impl Host>, receipt: Option<Box<str>>) {
        if context.host.is_known_to_shards(self.id) {
            return self.receipt(context, receipt.as_deref());
        }
        self.waiting = Some(Waiting::Shards(receipt));
    }

    /// The named subscription that SUBSCRIBE asks for.
    fn named_subscription(
        &self,
        own_name: Option<String>,
        wanted: &Wanted<'_>,
        binding: Binding,
        asked: &QueueHeaders,
    ) -> Result<OpenSubscription, Fault> {
        let Some(name) = self.durable_name(own_name, wanted.id, wanted.destination) else {
            let text = "a durable subscription needs an 'id', or a 'durable-subscription-name'";
            return Err(Fault::new("Missing header", text));
        };
        let (shared, name) = name;
        Ok(OpenSubscription {
            owner: self.client_id.as_deref().map(str::to_owned),
            name,
            source: binding.source,
            keys: vec![binding.key],
            durable: true,
            shared,
            filter: binding.filter,
            not_from: binding.not_from,
            consumer: None,
            options: asked.options.clone(),
        })
    }

    /// The name of a durable subscription, and whether several connections may share it, as RabbitMQ's may,
    /// which go by id and destination.
    pub(super) fn durable_name(
        &self,
        own_name: Option<String>,
        id: Option<&str>,
        destination: &str,
    ) -> Option<(bool, String)> {
        match own_name {
            Some(name) => Some((self.client_id.is_none(), name)),
            None => Some((true, format!("{}@{destination}", id?))),
        }
    }

    /// Adds a subscription, with a channel of its own.
    fn begin_subscription(
        &mut self,
        context: &mut Context<impl Host>,
        wanted: Wanted<'_>,
    ) -> Result<u16, Fault> {
        let most = self.settings.subscriptions_max;
        let is_free = |channel: &u16| self.subscriptions.iter().all(|it| it.channel != *channel);
        // Most have as many channels as subscriptions.
        let next = self.subscriptions.len() as u16 + 1;
        let channel = Some(next).filter(is_free).or_else(|| (1..=most).find(is_free));
        let Some(channel) = channel.filter(|channel| *channel <= most) else {
            let text = format!("a connection may have {most} subscriptions");
            return Err(Fault::new("Too many subscriptions", text));
        };
        self.serials = self.serials.wrapping_add(1);
        let Wanted { id, destination, ack, durable, shown } = wanted;
        let mut head = b"MESSAGE\n".to_vec();
        if let Some(id) = id {
            head.extend_from_slice(b"subscription:");
            put_value(&mut head, id, self.version);
            head.push(b'\n');
        }
        let serial = self.serials;
        let prefix = format!("{}{ID_SEPARATOR}{serial}{ID_SEPARATOR}", self.session);
        let shown = Shown {
            head,
            id: prefix.into_bytes(),
            destination: shown,
            is_acknowledged: ack != AckMode::Auto,
            last_tag: 0,
        };
        self.outgoing(context).0.show(channel, shown);
        context.engine.open(self.channel_id(channel));
        self.subscriptions.push(Subscription {
            id: id.map(Into::into),
            destination: destination.into(),
            serial,
            channel,
            ack,
            durable,
            settled: 0,
            is_direct: false,
        });
        Ok(channel)
    }

    /// Goes on with a subscription after an answer of the engine.
    pub(super) fn subscribe_answered(
        &mut self,
        context: &mut Context<impl Host>,
        mut it: Subscribing,
        reply: Result<Reply, Refusal>,
    ) -> Result<(), Failure> {
        let request = match (it.step, reply) {
            (Step::Find, Err(refusal))
                if refusal.kind == RefusalKind::NotFound && it.missing.is_some() =>
            {
                it.step = Step::Declare;
                let name = self.destination_queue(it.channel);
                Request::DeclareQueue { name, options: it.missing.take() }
            }
            (_, Err(refusal)) => return Err((refusal.into(), it.receipt)),
            (Step::Find | Step::Declare, Ok(Reply::Queue { name, .. })) => {
                if let Some(own) = it.temporary.take() {
                    self.temporary.insert(own, name.clone());
                }
                it.consume.queue.clone_from(&name);
                match it.binding.take() {
                    Some(binding) => {
                        it.step = Step::Bind;
                        Request::Bind(Binding { target: BindingTarget::Queue(name), ..binding })
                    }
                    None => begin_to_consume(&mut it),
                }
            }
            (Step::Bind, Ok(_)) => begin_to_consume(&mut it),
            (_, Ok(_)) => {
                self.receipt(context, it.receipt.as_deref());
                return Ok(());
            }
        };
        self.ask(context, it.channel, request, Asked::Subscribe(it.into()));
        Ok(())
    }

    /// The queue that the destination of a subscription names.
    fn destination_queue(&self, channel: u16) -> String {
        let found = self.subscriptions.iter().find(|it| it.channel == channel);
        let Some(subscription) = found else { return String::new() };
        match Destination::parse(&subscription.destination, false) {
            Ok(Destination::Queue(name)) => name.into_owned(),
            _ => String::new(),
        }
    }

    fn check_id(&self, id: &str) -> Result<(), Fault> {
        if id.starts_with(TEMP_QUEUE) {
            let text = format!("subscription ids that begin with {TEMP_QUEUE} are the broker's");
            return Err(Fault::new("Invalid id", text));
        }
        if self.subscriptions.iter().any(|it| it.id.as_deref() == Some(id)) {
            let text = format!("there is a subscription '{id}' on this connection already");
            return Err(Fault::new("Duplicated subscription identifier", text));
        }
        Ok(())
    }

    /// What the engine knows the client by.
    fn client_name(&self) -> String {
        self.client_id.as_deref().unwrap_or(&self.session).to_owned()
    }

    /// The queue that the connection calls `/temp-queue/` and this.
    pub(super) fn temporary_queue(&self, name: &str) -> Result<String, Fault> {
        self.temporary.get(name).cloned().ok_or_else(|| {
            let text = format!(
                "there is no {TEMP_QUEUE}{name} on this connection: SUBSCRIBE to it, or a reply-to \
                 header with it, makes it"
            );
            Fault::new("not_found", text)
        })
    }

    /// The subject that the connection calls `/temp-topic/` and this.
    pub(super) fn temporary_topic(&self, name: &str) -> String {
        format!("temporary.{}.{name}", self.session)
    }
}

/// Asks for a queue that goes with the connection.
fn temporary_queue_of(options: QueueOptions) -> Request {
    let options = QueueOptions { exclusive: true, auto_delete: true, durable: false, ..options };
    Request::DeclareQueue { name: String::new(), options: Some(options) }
}

fn begin_to_consume(it: &mut Subscribing) -> Request {
    it.step = Step::Consume;
    Request::Consume(it.consume.clone())
}

/// Refuses who wants what was published before it came.
fn check_not_retroactive(headers: &Headers<'_>) -> Result<(), Fault> {
    if !mapping::is_true(headers, &RETROACTIVE)? {
        return Ok(());
    }
    let text = "a topic's messages are not kept for those who come later, as activemq.retroactive \
                asks for: a durable subscription collects them";
    Err(Fault::new("not_implemented", text))
}

/// The name of the consumer of a subscription, for listings.
pub(super) fn consumer_name(id: Option<&str>) -> String {
    match id {
        Some(id) if !id.is_empty() => fitting_name(id).into_owned(),
        _ => "subscription".to_owned(),
    }
}

fn ack_mode(headers: &Headers<'_>) -> Result<AckMode, Fault> {
    match headers.get("ack")?.as_deref() {
        None | Some("auto") => Ok(AckMode::Auto),
        Some("client") => Ok(AckMode::Client),
        Some("client-individual") => Ok(AckMode::Individual),
        Some(other) => {
            let text =
                format!("ack is '{other}', which is none of auto, client, client-individual");
            Err(Fault::new("Invalid ack mode", text))
        }
    }
}

/// What a subscription's consumer begins with, without its queue.
fn consume(headers: &Headers<'_>, ack: AckMode) -> Result<Consume, Fault> {
    let count = |number: Option<i64>| number.filter(|number| *number > 0).unwrap_or(0);
    let messages = count(mapping::number_of(headers, &PREFETCH)?);
    let bytes = count(mapping::number_of(headers, &WINDOW)?);
    let priority = mapping::number_of(headers, &PRIORITY)?.unwrap_or(0);
    Ok(Consume {
        name: consumer_name(headers.get("id")?.as_deref()),
        presettled: ack == AckMode::Auto,
        exclusive: mapping::is_true(headers, &EXCLUSIVE)?,
        priority: priority.clamp(i32::MIN.into(), i32::MAX.into()) as i32,
        credit: Credit {
            messages: u32::try_from(messages).unwrap_or(u32::MAX),
            bytes: u64::try_from(bytes).unwrap_or(0),
        },
        on_close: Outcome::RELEASE,
        on_loss: Outcome::REQUEUE,
        ..Consume::default()
    })
}

/// How messages of a subscription show their destination: as they were published, in RabbitMQ's words, but
/// in the client's where it has others.
fn shown_destination(named: &str, destination: &Destination<'_>) -> ShownDestination {
    match destination {
        Destination::TempQueue(_) | Destination::TempTopic(_) => {
            ShownDestination::Asked(named.into())
        }
        Destination::Topic(_) if named.starts_with("topic://") => {
            ShownDestination::Subject("topic://")
        }
        Destination::Topic(_) if !named.starts_with('/') => ShownDestination::Subject(""),
        Destination::Queue(_) if !named.starts_with('/') => ShownDestination::Asked(named.into()),
        _ => ShownDestination::Origin,
    }
}
