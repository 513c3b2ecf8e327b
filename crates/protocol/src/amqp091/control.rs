//! Control methods on channels, each lowered to one request of the engine's, and the answers.

use super::DIRECT_REPLY_TO;
use super::channel::{Inbox, Mode};
use super::codec::{Method, Table};
use super::fault::{Code, Fault};
use super::mapping;
use crate::amqp091::handler::{Handler, Waiting};
use crate::{Context, Host};
use angarium_engine::{
    Binding, BindingTarget, Consume, Credit, ExchangeOptions, QueueOptions, Refusal, RefusalKind,
    Reply, Request,
};

/// A method that waits for the engine.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) channel: u16,
    pub(super) method: (u16, u16),
    answer: Answer,
    /// The client wants no answer unless it is an error.
    no_wait: bool,
}

/// What is answered when the engine has granted a request.
#[derive(Debug)]
enum Answer {
    /// This method.
    Done(Method<'static>),
    /// Nothing.
    Nothing,
    /// queue.declare-ok.
    Declared,
    /// queue.purge-ok.
    Purged,
    /// queue.delete-ok.
    Deleted,
    /// basic.consume-ok; the tag that was asked for.
    Consuming(String),
    /// basic.consume-ok with that tag.
    Inbox(String),
    /// basic.cancel-ok with that tag.
    Cancelled(String),
    /// basic.get-empty, unless the message was delivered already.
    Got,
    /// This method, and the channel's new mode.
    Mode(Mode, Method<'static>),
}

/// What a method on a channel is lowered to. It is matched right where it is made.
#[expect(clippy::large_enum_variant)]
enum Lowered<'a> {
    /// A request, and what answers its reply.
    Request {
        request: Request,
        answer: Answer,
        no_wait: bool,
    },
    /// This method answers it, once every earlier request is complete: the engine need not be asked.
    Answer(Method<'a>),
    Nothing,
}

impl Lowered<'static> {
    fn request(request: Request, answer: Answer, no_wait: bool) -> Lowered<'static> {
        Lowered::Request { request, answer, no_wait }
    }
    /// A request that `ok` answers.
    fn done(request: Request, ok: Method<'static>, no_wait: bool) -> Lowered<'static> {
        Lowered::request(request, Answer::Done(ok), no_wait)
    }
}

impl Handler {
    /// Takes a method on a channel.
    pub(super) fn channel_method(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        method: &Method<'_>,
    ) -> Result<(), Fault> {
        if self.current.0 == 10 {
            let text = format!("{} on channel {number} instead of 0", method.name());
            return Err(Fault::new(Code::COMMAND_INVALID, text));
        }
        if !self.connected {
            let text = format!("{} before connection.open", method.name());
            return Err(Fault::new(Code::CHANNEL_ERROR, text).hard());
        }
        match method {
            Method::ChannelOpen { .. } => return self.open_channel(context, number),
            Method::ChannelCloseOk {}
                if self.channels.get(number).is_some_and(|channel| channel.closing) =>
            {
                self.channels.remove(number);
                return Ok(());
            }
            Method::ChannelClose { .. } => return self.close_channel(context, number),
            _ => {}
        }
        let Some(index) = self.usable(number, method.name())? else { return Ok(()) };
        let lowered = match self.current.0 {
            40 => self.exchange_method(method),
            50 => self.queue_method(index, method),
            60 => self.basic_method(index, method),
            _ => self.other_method(index, method),
        };
        match lowered? {
            Lowered::Request { request, answer, no_wait } => {
                let pending = Pending { channel: number, method: self.current, answer, no_wait };
                self.waiting = Some(Waiting::Reply(pending));
                context.engine.request(context.now, self.channel_id(number), request, context.host);
            }
            Lowered::Answer(method) => {
                if self.may_answer(context) {
                    self.send(context, number, &method);
                }
            }
            Lowered::Nothing => {}
        }
        Ok(())
    }

    fn open_channel(&mut self, context: &mut Context<impl Host>, number: u16) -> Result<(), Fault> {
        match self.channels.get(number) {
            Some(channel) if channel.closing => return Ok(()),
            Some(_) => {
                let text = format!("second channel.open on channel {number}");
                return Err(Fault::new(Code::CHANNEL_ERROR, text));
            }
            None => {}
        }
        if number > self.channels_max {
            let max = self.channels_max;
            let text = format!("channel {number} is beyond the negotiated channel_max ({max})");
            return Err(Fault::new(Code::NOT_ALLOWED, text));
        }
        self.channels.insert(number);
        context.engine.open(self.channel_id(number));
        self.send(context, number, &Method::ChannelOpenOk { channel_id: b"" });
        Ok(())
    }

    fn close_channel(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
    ) -> Result<(), Fault> {
        if !self.may_answer(context) {
            return Ok(());
        }
        let Some(channel) = self.channels.get(number) else {
            return Err(Fault::not_open("channel.close", number));
        };
        // Both sides close at the same time: theirs is answered, and their answer to ours may still come.
        if !channel.closing {
            self.channels.remove(number);
            context.engine.close(context.now, self.channel_id(number), context.host);
        }
        if !context.host.is_known_to_shards(self.id) {
            self.waiting = Some(Waiting::ToClose(number));
            return Ok(());
        }
        self.send(context, number, &Method::ChannelCloseOk {});
        Ok(())
    }

    fn exchange_method(&self, method: &Method<'_>) -> Result<Lowered<'static>, Fault> {
        Ok(match *method {
            Method::ExchangeDeclare {
                exchange,
                kind,
                passive,
                durable,
                auto_delete,
                internal,
                no_wait,
                arguments,
                ..
            } => {
                let name = exchange_name(exchange)?;
                let options = if passive {
                    None
                } else {
                    let told = mapping::exchange_options(kind, &name, &self.vhost, arguments)?;
                    Some(ExchangeOptions { durable, auto_delete, internal, ..told })
                };
                let request = Request::DeclareExchange { name, options };
                Lowered::done(request, Method::ExchangeDeclareOk {}, no_wait)
            }
            Method::ExchangeDelete { exchange, if_unused, no_wait, .. } => {
                let request = Request::DeleteExchange { name: exchange_name(exchange)?, if_unused };
                Lowered::done(request, Method::ExchangeDeleteOk {}, no_wait)
            }
            Method::ExchangeBind {
                destination, source, routing_key, no_wait, arguments, ..
            } => {
                let binding =
                    exchange_binding(destination, source, routing_key, &self.vhost, arguments)?;
                Lowered::done(Request::Bind(binding), Method::ExchangeBindOk {}, no_wait)
            }
            Method::ExchangeUnbind {
                destination, source, routing_key, no_wait, arguments, ..
            } => {
                let binding =
                    exchange_binding(destination, source, routing_key, &self.vhost, arguments)?;
                Lowered::done(Request::Unbind(binding), Method::ExchangeUnbindOk {}, no_wait)
            }
            _ => return Err(misdirected(method)),
        })
    }

    /// The queue's name; an empty one means the queue last declared on the channel (spec,
    /// `queue-name`).
    fn queue_name(&self, index: usize, name: &str) -> Result<String, Fault> {
        let name = without_line_ends(name);
        if !name.is_empty() {
            return Ok(name);
        }
        let last = &self.channels.all[index].last_queue;
        if last.is_empty() {
            return Err(Fault::new(Code::NOT_FOUND, "no previously declared queue"));
        }
        Ok(last.clone())
    }

    /// The binding of a queue that a method names: with neither queue nor key given, both are the last
    /// declared queue's name (spec, queue.bind).
    fn queue_binding(
        &self,
        index: usize,
        queue: &str,
        exchange: &str,
        key: &str,
        arguments: Table<'_>,
    ) -> Result<Binding, Fault> {
        let source = exchange_name(exchange)?;
        let name = self.queue_name(index, queue)?;
        let key = if queue.is_empty() && key.is_empty() { name.clone() } else { key.to_owned() };
        mapping::binding(&self.vhost, source, BindingTarget::Queue(name), key, arguments)
    }

    fn queue_method<'m>(&self, index: usize, method: &Method<'m>) -> Result<Lowered<'m>, Fault> {
        Ok(match *method {
            // The name that asks for direct replies always exists.
            Method::QueueDeclare { queue: DIRECT_REPLY_TO, no_wait: true, .. } => Lowered::Nothing,
            Method::QueueDeclare { queue: queue @ DIRECT_REPLY_TO, .. } => {
                let (message_count, consumer_count) = (0, 1);
                Lowered::Answer(Method::QueueDeclareOk { queue, message_count, consumer_count })
            }
            Method::QueueDeclare {
                queue,
                passive,
                durable,
                exclusive,
                auto_delete,
                no_wait,
                arguments,
                ..
            } => {
                // Nobody declares an inbox, but responders ask in this way whether it is still there.
                let name = without_line_ends(queue);
                let request = if passive && name.is_empty() {
                    return Err(Fault::new(
                        Code::NOT_FOUND,
                        format!("no queue '' in vhost '{}'", self.vhost),
                    ));
                } else if passive || is_inbox(queue) {
                    Request::DeclareQueue { name, options: None }
                } else {
                    not_reserved(&name)?;
                    let options = mapping::queue_options(&name, &self.vhost, arguments)?;
                    // A queue that goes with its connection does not outlive the broker.
                    let durable = durable && !exclusive;
                    let options = QueueOptions { durable, exclusive, auto_delete, ..options };
                    mapping::check_quorum(&name, &self.vhost, &options)?;
                    Request::DeclareQueue { name, options: Some(options) }
                };
                Lowered::request(request, Answer::Declared, no_wait)
            }
            Method::QueueBind { queue, exchange, routing_key, no_wait, arguments, .. } => {
                let binding = self.queue_binding(index, queue, exchange, routing_key, arguments)?;
                Lowered::done(Request::Bind(binding), Method::QueueBindOk {}, no_wait)
            }
            Method::QueueUnbind { queue, exchange, routing_key, arguments, .. } => {
                let binding = self.queue_binding(index, queue, exchange, routing_key, arguments)?;
                Lowered::done(Request::Unbind(binding), Method::QueueUnbindOk {}, false)
            }
            Method::QueuePurge { queue, no_wait, .. } => {
                let name = self.queue_name(index, queue)?;
                Lowered::request(Request::PurgeQueue { name }, Answer::Purged, no_wait)
            }
            Method::QueueDelete { queue, if_unused, if_empty, no_wait, .. } => {
                let name = self.queue_name(index, queue)?;
                let request = Request::DeleteQueue { name, if_unused, if_empty };
                Lowered::request(request, Answer::Deleted, no_wait)
            }
            _ => return Err(misdirected(method)),
        })
    }

    fn basic_method(
        &mut self,
        index: usize,
        method: &Method<'_>,
    ) -> Result<Lowered<'static>, Fault> {
        Ok(match *method {
            Method::BasicQos { prefetch_size, prefetch_count, global } => {
                let credit =
                    Credit { messages: prefetch_count.into(), bytes: prefetch_size.into() };
                let ok = Method::BasicQosOk {};
                if global {
                    return Ok(Lowered::done(Request::SetChannelCredit(credit), ok, false));
                }
                self.channels.all[index].consumer_credit = credit;
                Lowered::Answer(ok)
            }
            Method::BasicConsume {
                queue: DIRECT_REPLY_TO, consumer_tag, no_ack, no_wait, ..
            } => self.consume_replies(index, consumer_tag, no_ack, no_wait)?,
            Method::BasicConsume {
                queue,
                consumer_tag,
                no_ack,
                exclusive,
                no_wait,
                arguments,
                ..
            } => {
                let queue = self.queue_name(index, queue)?;
                let subscribe = Consume {
                    name: self.consumer_tag(index, consumer_tag),
                    browses: mapping::browses(&queue, &self.vhost, arguments, no_ack)?,
                    presettled: no_ack,
                    exclusive,
                    priority: mapping::consumer_priority(&queue, &self.vhost, arguments)?,
                    credit: self.channels.all[index].consumer_credit,
                    settle_timeout: mapping::consumer_timeout(&queue, &self.vhost, arguments)?,
                    filter: mapping::consumer_filter(&queue, &self.vhost, arguments)?,
                    queue,
                    ..Consume::default()
                };
                let answer = Answer::Consuming(subscribe.name.clone());
                Lowered::request(Request::Consume(subscribe), answer, no_wait)
            }
            Method::BasicCancel { consumer_tag, no_wait } => {
                let answer = Answer::Cancelled(consumer_tag.to_owned());
                let request =
                    Request::CancelConsumer { name: consumer_tag.to_owned(), returns: false };
                Lowered::request(request, answer, no_wait)
            }
            Method::BasicGet { queue, no_ack, .. } => {
                let queue = self.queue_name(index, queue)?;
                let request = Request::Get { queue, presettled: no_ack };
                Lowered::request(request, Answer::Got, false)
            }
            Method::BasicRecover { requeue: true } => {
                Lowered::done(Request::Recover, Method::BasicRecoverOk {}, false)
            }
            Method::BasicRecoverAsync { requeue: true } => {
                Lowered::request(Request::Recover, Answer::Nothing, false)
            }
            Method::BasicRecover { .. } | Method::BasicRecoverAsync { .. } => {
                return Err(Fault::new(Code::NOT_IMPLEMENTED, "requeue=false"));
            }
            _ => return Err(misdirected(method)),
        })
    }

    /// The client's tag, or one of ours, unique in the connection.
    fn consumer_tag(&mut self, index: usize, tag: &str) -> String {
        if !tag.is_empty() {
            return tag.to_owned();
        }
        self.tags_made += 1;
        let (connection, channel) = (self.id.0, self.channels.all[index].number);
        format!("amq.ctag-{connection}.{channel}.{}", self.tags_made)
    }

    fn consume_replies(
        &mut self,
        index: usize,
        tag: &str,
        no_ack: bool,
        no_wait: bool,
    ) -> Result<Lowered<'static>, Fault> {
        let wrong = if !no_ack {
            "reply consumer cannot acknowledge"
        } else if self.channels.all[index].inbox.is_some() {
            "reply consumer already set"
        } else {
            let name = self.consumer_tag(index, tag);
            let answer = Answer::Inbox(name.clone());
            return Ok(Lowered::request(Request::OpenInbox { name }, answer, no_wait));
        };
        Err(Fault::new(Code::PRECONDITION_FAILED, wrong))
    }

    fn other_method(&self, index: usize, method: &Method<'_>) -> Result<Lowered<'static>, Fault> {
        Ok(match *method {
            Method::ChannelFlow { active } => {
                let ok = Method::ChannelFlowOk { active };
                Lowered::done(Request::SetFlow(active), ok, false)
            }
            Method::ChannelFlowOk { .. } => Lowered::Nothing,
            // Rights are a user's, not a ticket's; any ticket will do (spec 0-8, access).
            Method::AccessRequest { .. } => Lowered::Answer(Method::AccessRequestOk { ticket: 1 }),
            Method::ConfirmSelect { no_wait } => {
                self.select(index, Mode::Confirm, Method::ConfirmSelectOk {}, no_wait)?
            }
            Method::TxSelect {} => {
                self.select(index, Mode::Transaction, Method::TxSelectOk {}, false)?
            }
            Method::TxCommit {} | Method::TxRollback {}
                if self.channels.all[index].mode != Mode::Transaction =>
            {
                let text = "channel is not transactional";
                return Err(Fault::new(Code::PRECONDITION_FAILED, text));
            }
            Method::TxCommit {} => Lowered::done(Request::Commit, Method::TxCommitOk {}, false),
            Method::TxRollback {} => {
                Lowered::done(Request::Rollback, Method::TxRollbackOk {}, false)
            }
            _ => return Err(misdirected(method)),
        })
    }

    /// Switches a plain channel to `mode`; once is enough.
    fn select(
        &self,
        index: usize,
        mode: Mode,
        ok: Method<'static>,
        no_wait: bool,
    ) -> Result<Lowered<'static>, Fault> {
        let (request, refused) = match mode {
            Mode::Confirm => (
                Request::SelectConfirms { explained: false },
                "cannot switch from tx to confirm mode",
            ),
            _ => (Request::SelectTransactions, "cannot switch from confirm to tx mode"),
        };
        match self.channels.all[index].mode {
            Mode::Plain => Ok(Lowered::request(request, Answer::Mode(mode, ok), no_wait)),
            already if already != mode => Err(Fault::new(Code::PRECONDITION_FAILED, refused)),
            _ if no_wait => Ok(Lowered::Nothing),
            _ => Ok(Lowered::Answer(ok)),
        }
    }

    /// The engine has answered: tells the client.
    pub(super) fn answer(
        &mut self,
        context: &mut Context<impl Host>,
        pending: Pending,
        reply: Result<Reply, Refusal>,
    ) -> Result<(), Fault> {
        let Pending { channel: number, answer, no_wait, .. } = pending;
        let reply = reply.or_else(|refusal| match (&answer, refusal.kind) {
            // Cancelling what is not there is no error in this protocol.
            (Answer::Cancelled(_), RefusalKind::NotFound) => Ok(Reply::Done),
            // A consumer tag that is taken ends the connection in RabbitMQ, and clients know it so.
            (Answer::Consuming(tag) | Answer::Inbox(tag), RefusalKind::NotAllowed) => {
                let text = format!("attempt to reuse consumer tag '{tag}'");
                Err(Fault::new(Code::NOT_ALLOWED, text))
            }
            _ => Err(mapping::fault(refusal)),
        })?;
        let Some(channel) = self.channels.get(number) else { return Ok(()) };
        match (&answer, &reply) {
            (Answer::Declared, Reply::Queue { name, .. }) => {
                channel.last_queue.clone_from(name);
                channel.last_queue.shrink_to_fit();
            }
            (Answer::Mode(mode, _), _) => channel.mode = *mode,
            (Answer::Inbox(tag), Reply::Inbox { address }) => {
                let inbox = Inbox { consumer_tag: tag.clone(), address: address.clone() };
                channel.inbox = Some(Box::new(inbox));
            }
            (Answer::Cancelled(tag), _) => {
                channel.inbox.take_if(|inbox| inbox.consumer_tag == *tag);
            }
            _ => {}
        }
        if !no_wait && let Some(method) = response(&answer, &reply) {
            self.send(context, number, &method);
        }
        Ok(())
    }
}

/// The method that answers; `None`: there is none.
fn response<'a>(answer: &'a Answer, reply: &'a Reply) -> Option<Method<'a>> {
    let count = |messages: u64| u32::try_from(messages).unwrap_or(u32::MAX);
    Some(match (answer, reply) {
        (Answer::Done(method) | Answer::Mode(_, method), _) => *method,
        (Answer::Declared, Reply::Queue { name, messages, consumers }) => {
            let message_count = count(*messages);
            Method::QueueDeclareOk { queue: name, message_count, consumer_count: *consumers }
        }
        (Answer::Purged, Reply::Messages(messages)) => {
            Method::QueuePurgeOk { message_count: count(*messages) }
        }
        (Answer::Deleted, Reply::Messages(messages)) => {
            Method::QueueDeleteOk { message_count: count(*messages) }
        }
        (Answer::Consuming(_), Reply::Consuming { name }) => {
            Method::BasicConsumeOk { consumer_tag: name }
        }
        (Answer::Inbox(tag), _) => Method::BasicConsumeOk { consumer_tag: tag },
        (Answer::Cancelled(tag), _) => Method::BasicCancelOk { consumer_tag: tag },
        (Answer::Got, Reply::Empty) => Method::BasicGetEmpty { cluster_id: "" },
        _ => return None,
    })
}

/// The name of an exchange, which is not the default one.
fn exchange_name(name: &str) -> Result<String, Fault> {
    let name = without_line_ends(name);
    if name.is_empty() {
        let text = "operation not permitted on the default exchange";
        return Err(Fault::new(Code::ACCESS_REFUSED, text));
    }
    Ok(name)
}

/// The name of a queue or exchange that a client declares or refers to, without line ends, as RabbitMQ takes
/// it.
fn without_line_ends(name: &str) -> String {
    name.replace(['\r', '\n'], "")
}

/// The binding of an exchange that a method names.
fn exchange_binding(
    destination: &str,
    source: &str,
    key: &str,
    vhost: &str,
    arguments: Table<'_>,
) -> Result<Binding, Fault> {
    let source = exchange_name(source)?;
    let target = BindingTarget::Exchange(exchange_name(destination)?);
    mapping::binding(vhost, source, target, key.to_owned(), arguments)
}

/// A method that only brokers send, or that makes no sense where it came.
fn misdirected(method: &Method<'_>) -> Fault {
    Fault::new(Code::COMMAND_INVALID, format!("{} cannot come from a client", method.name()))
}

/// Names with this prefix are the broker's (spec, queue.declare); those it made up may be declared
/// again.
fn not_reserved(queue: &str) -> Result<(), Fault> {
    if queue.starts_with("amq.") {
        let text = format!("queue name '{queue}' contains reserved prefix 'amq.*'");
        return Err(Fault::new(Code::ACCESS_REFUSED, text));
    }
    Ok(())
}

fn is_inbox(queue: &str) -> bool {
    queue.strip_prefix(DIRECT_REPLY_TO).is_some_and(|rest| rest.starts_with('.'))
}
