//! Control methods on channels, each lowered to one request of the engine's, and the answers.

use super::DIRECT_REPLY_TO;
use super::channel::{Inbox, Mode};
use super::codec::{Method, Table};
use super::fault::{Code, Fault};
use super::mapping;
use crate::amqp091::handler::{Handler, Waiting};
use crate::{Context, Host};
use angarium_engine::{
    Consume, Credit, ExchangeDeclaration, QueueDeclaration, Refusal, RefusalKind, Reply, Request,
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

impl Handler {
    /// Takes a method on a channel.
    pub(super) fn channel_method<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
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
        match self.current.0 {
            40 => self.exchange_method(context, index, method),
            50 => self.queue_method(context, index, method),
            60 => self.basic_method(context, index, method),
            _ => self.other_method(context, index, method),
        }
    }

    fn open_channel<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        number: u16,
    ) -> Result<(), Fault> {
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

    fn close_channel<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        number: u16,
    ) -> Result<(), Fault> {
        if !self.may_answer(context) {
            return Ok(());
        }
        let Some(channel) = self.channels.get(number) else {
            let text = format!("channel.close on channel {number}, which is not open");
            return Err(Fault::new(Code::CHANNEL_ERROR, text));
        };
        // Both sides closed at once: we answer theirs, and theirs to ours may still come.
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

    fn request<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        index: usize,
        request: Request,
        answer: Answer,
        no_wait: bool,
    ) -> Result<(), Fault> {
        let channel = self.channels[index].number;
        let pending = Pending { channel, method: self.current, answer, no_wait };
        self.waiting = Some(Waiting::Reply(pending));
        context.engine.request(context.now, self.channel_id(channel), request, context.host);
        Ok(())
    }

    /// Answers what the engine need not be asked, once all is said of what came before.
    fn answer_here<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        index: usize,
        answer: &Method<'_>,
    ) {
        if self.may_answer(context) {
            self.send(context, self.channels[index].number, answer);
        }
    }

    /// Whether methods named in `what` make no sense on the default exchange.
    pub(super) fn not_default(&self, exchange: &str) -> Result<(), Fault> {
        if exchange.is_empty() {
            let text = "operation not permitted on the default exchange";
            return Err(Fault::new(Code::ACCESS_REFUSED, text));
        }
        Ok(())
    }

    fn exchange_method<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        index: usize,
        method: &Method<'_>,
    ) -> Result<(), Fault> {
        match *method {
            Method::ExchangeDeclare { exchange, passive, no_wait, .. } => {
                let options =
                    if passive { None } else { Some(self.exchange_options(exchange, method)?) };
                let declaration = ExchangeDeclaration { name: exchange.to_owned(), options };
                let answer = Answer::Done(Method::ExchangeDeclareOk {});
                let request = Request::DeclareExchange(declaration);
                self.request(context, index, request, answer, no_wait)
            }
            Method::ExchangeDelete { exchange, if_unused, no_wait, .. } => {
                self.not_default(exchange)?;
                let request = Request::DeleteExchange { name: exchange.to_owned(), if_unused };
                let answer = Answer::Done(Method::ExchangeDeleteOk {});
                self.request(context, index, request, answer, no_wait)
            }
            Method::ExchangeBind {
                destination, source, routing_key, no_wait, arguments, ..
            } => {
                let binding = self.exchange_binding(destination, source, routing_key, arguments)?;
                let answer = Answer::Done(Method::ExchangeBindOk {});
                self.request(context, index, Request::Bind(binding), answer, no_wait)
            }
            Method::ExchangeUnbind {
                destination, source, routing_key, no_wait, arguments, ..
            } => {
                let binding = self.exchange_binding(destination, source, routing_key, arguments)?;
                let answer = Answer::Done(Method::ExchangeUnbindOk {});
                self.request(context, index, Request::Unbind(binding), answer, no_wait)
            }
            _ => Err(misdirected(method)),
        }
    }

    fn exchange_options(
        &self,
        exchange: &str,
        method: &Method<'_>,
    ) -> Result<angarium_engine::ExchangeOptions, Fault> {
        let &Method::ExchangeDeclare { kind, durable, auto_delete, internal, arguments, .. } =
            method
        else {
            return Err(misdirected(method));
        };
        self.not_default(exchange)?;
        let mut options = mapping::exchange_options(kind, exchange, &self.vhost, arguments)?;
        options.durable = durable;
        options.auto_delete = auto_delete;
        options.internal = internal;
        Ok(options)
    }

    /// The queue's name; an empty one means the queue last declared on the channel (spec,
    /// `queue-name`).
    pub(super) fn queue_name(&self, index: usize, name: &str) -> Result<String, Fault> {
        if !name.is_empty() {
            return Ok(name.to_owned());
        }
        let last = &self.channels[index].last_queue;
        if last.is_empty() {
            return Err(Fault::new(Code::NOT_FOUND, "no previously declared queue"));
        }
        Ok(last.clone())
    }

    fn queue_method<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        index: usize,
        method: &Method<'_>,
    ) -> Result<(), Fault> {
        match *method {
            Method::QueueDeclare { .. } => self.declare_queue(context, index, method),
            Method::QueueBind { queue, exchange, routing_key, no_wait, arguments, .. } => {
                let binding = self.queue_binding(index, queue, exchange, routing_key, arguments)?;
                let answer = Answer::Done(Method::QueueBindOk {});
                self.request(context, index, Request::Bind(binding), answer, no_wait)
            }
            Method::QueueUnbind { queue, exchange, routing_key, arguments, .. } => {
                let binding = self.queue_binding(index, queue, exchange, routing_key, arguments)?;
                let answer = Answer::Done(Method::QueueUnbindOk {});
                self.request(context, index, Request::Unbind(binding), answer, false)
            }
            Method::QueuePurge { queue, no_wait, .. } => {
                let name = self.queue_name(index, queue)?;
                self.request(context, index, Request::PurgeQueue { name }, Answer::Purged, no_wait)
            }
            Method::QueueDelete { queue, if_unused, if_empty, no_wait, .. } => {
                let name = self.queue_name(index, queue)?;
                let request = Request::DeleteQueue { name, if_unused, if_empty };
                self.request(context, index, request, Answer::Deleted, no_wait)
            }
            _ => Err(misdirected(method)),
        }
    }

    fn declare_queue<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        index: usize,
        method: &Method<'_>,
    ) -> Result<(), Fault> {
        let &Method::QueueDeclare {
            queue,
            passive,
            durable,
            exclusive,
            auto_delete,
            no_wait,
            arguments,
            ..
        } = method
        else {
            return Err(misdirected(method));
        };
        // The name that asks for direct replies always exists.
        if queue == DIRECT_REPLY_TO {
            if !no_wait && self.may_answer(context) {
                let answer = Method::QueueDeclareOk { queue, message_count: 0, consumer_count: 1 };
                self.send(context, self.channels[index].number, &answer);
            }
            return Ok(());
        }
        // Nobody declares an inbox, but responders ask in this way whether it is still there.
        let asks = passive || is_inbox(queue);
        let declaration = if asks {
            QueueDeclaration { name: self.queue_name(index, queue)?, options: None }
        } else {
            not_reserved(queue)?;
            let mut options = mapping::queue_options(queue, &self.vhost, arguments)?;
            options.durable = durable;
            options.exclusive = exclusive;
            options.auto_delete = auto_delete;
            QueueDeclaration { name: queue.to_owned(), options: Some(options) }
        };
        self.request(context, index, Request::DeclareQueue(declaration), Answer::Declared, no_wait)
    }

    fn basic_method<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        index: usize,
        method: &Method<'_>,
    ) -> Result<(), Fault> {
        match *method {
            Method::BasicQos { prefetch_size, prefetch_count, global } => {
                let credit =
                    Credit { messages: prefetch_count.into(), bytes: prefetch_size.into() };
                if global {
                    let answer = Answer::Done(Method::BasicQosOk {});
                    let request = Request::SetChannelCredit(credit);
                    return self.request(context, index, request, answer, false);
                }
                self.channels[index].consumer_credit = credit;
                self.answer_here(context, index, &Method::BasicQosOk {});
                Ok(())
            }
            Method::BasicConsume {
                queue: DIRECT_REPLY_TO, consumer_tag, no_ack, no_wait, ..
            } => self.consume_replies(context, index, consumer_tag, no_ack, no_wait),
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
                    presettled: no_ack,
                    exclusive,
                    priority: self.priority(&queue, arguments)?,
                    credit: self.channels[index].consumer_credit,
                    queue,
                };
                let answer = Answer::Consuming(subscribe.name.clone());
                let request = Request::Consume(subscribe);
                self.request(context, index, request, answer, no_wait)
            }
            Method::BasicCancel { consumer_tag, no_wait } => {
                let answer = Answer::Cancelled(consumer_tag.to_owned());
                let request = Request::CancelConsumer { name: consumer_tag.to_owned() };
                self.request(context, index, request, answer, no_wait)
            }
            Method::BasicGet { queue, no_ack, .. } => {
                let queue = self.queue_name(index, queue)?;
                let request = Request::Get { queue, presettled: no_ack };
                self.request(context, index, request, Answer::Got, false)
            }
            Method::BasicRecover { requeue: true } => {
                let answer = Answer::Done(Method::BasicRecoverOk {});
                self.request(context, index, Request::Recover, answer, false)
            }
            Method::BasicRecoverAsync { requeue: true } => {
                self.request(context, index, Request::Recover, Answer::Nothing, false)
            }
            Method::BasicRecover { .. } | Method::BasicRecoverAsync { .. } => {
                Err(Fault::new(Code::NOT_IMPLEMENTED, "requeue=false"))
            }
            _ => Err(misdirected(method)),
        }
    }

    fn priority(&self, queue: &str, arguments: Table<'_>) -> Result<i32, Fault> {
        mapping::consumer_priority(queue, &self.vhost, arguments)
    }

    /// The client's tag, or one of ours, unique in the connection.
    fn consumer_tag(&mut self, index: usize, tag: &str) -> String {
        if !tag.is_empty() {
            return tag.to_owned();
        }
        self.tags_made += 1;
        let (connection, channel) = (self.id.0, self.channels[index].number);
        format!("amq.ctag-{connection}.{channel}.{}", self.tags_made)
    }

    fn consume_replies<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        index: usize,
        tag: &str,
        no_ack: bool,
        no_wait: bool,
    ) -> Result<(), Fault> {
        let wrong = if !no_ack {
            "reply consumer cannot acknowledge"
        } else if self.channels[index].inbox.is_some() {
            "reply consumer already set"
        } else {
            let tag = self.consumer_tag(index, tag);
            let request = Request::OpenInbox { name: tag.clone() };
            return self.request(context, index, request, Answer::Inbox(tag), no_wait);
        };
        Err(Fault::new(Code::PRECONDITION_FAILED, wrong))
    }

    fn other_method<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        index: usize,
        method: &Method<'_>,
    ) -> Result<(), Fault> {
        let mode = self.channels[index].mode;
        let not_transactional =
            || Fault::new(Code::PRECONDITION_FAILED, "channel is not transactional");
        match *method {
            Method::ChannelFlow { active } => {
                let answer = Answer::Done(Method::ChannelFlowOk { active });
                self.request(context, index, Request::SetFlow(active), answer, false)
            }
            Method::ChannelFlowOk { .. } => Ok(()),
            // Rights are a user's, not a ticket's; any ticket will do (spec 0-8, access).
            Method::AccessRequest { .. } => {
                self.answer_here(context, index, &Method::AccessRequestOk { ticket: 1 });
                Ok(())
            }
            Method::ConfirmSelect { no_wait } => {
                let ok = Method::ConfirmSelectOk {};
                self.select(context, index, Mode::Confirm, ok, no_wait)
            }
            Method::TxSelect {} => {
                self.select(context, index, Mode::Transaction, Method::TxSelectOk {}, false)
            }
            Method::TxCommit {} | Method::TxRollback {} if mode != Mode::Transaction => {
                Err(not_transactional())
            }
            Method::TxCommit {} => {
                let answer = Answer::Done(Method::TxCommitOk {});
                self.request(context, index, Request::Commit, answer, false)
            }
            Method::TxRollback {} => {
                let answer = Answer::Done(Method::TxRollbackOk {});
                self.request(context, index, Request::Rollback, answer, false)
            }
            _ => Err(misdirected(method)),
        }
    }

    /// Switches a plain channel to `mode`; once is enough.
    fn select<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        index: usize,
        mode: Mode,
        ok: Method<'static>,
        no_wait: bool,
    ) -> Result<(), Fault> {
        let channel = &self.channels[index];
        if channel.mode == mode {
            if !no_wait {
                self.answer_here(context, index, &ok);
            }
            return Ok(());
        }
        let (request, refused) = match mode {
            Mode::Confirm => (Request::SelectConfirms, "cannot switch from tx to confirm mode"),
            _ => (Request::SelectTransactions, "cannot switch from confirm to tx mode"),
        };
        if channel.mode != Mode::Plain {
            return Err(Fault::new(Code::PRECONDITION_FAILED, refused));
        }
        self.request(context, index, request, Answer::Mode(mode, ok), no_wait)
    }

    /// The engine has answered: tells the client.
    pub(super) fn answer<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        pending: Pending,
        reply: Result<Reply, Refusal>,
    ) -> Result<(), Fault> {
        let Pending { channel: number, answer, no_wait, .. } = pending;
        let reply = match (reply, &answer) {
            (Ok(reply), _) => reply,
            // Cancelling what is not there is no error in this protocol.
            (Err(refusal), Answer::Cancelled(_)) if refusal.kind == RefusalKind::NotFound => {
                Reply::Done
            }
            (Err(refusal), answer) => return Err(refused(refusal, answer)),
        };
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
                let is_this = channel.inbox.as_ref().is_some_and(|i| i.consumer_tag == *tag);
                if is_this {
                    channel.inbox = None;
                }
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

fn refused(refusal: Refusal, answer: &Answer) -> Fault {
    if let (Answer::Consuming(tag) | Answer::Inbox(tag), RefusalKind::NotAllowed) =
        (answer, refusal.kind)
    {
        // A consumer tag that is taken ends the connection in RabbitMQ, and clients know it so.
        return Fault::new(Code::NOT_ALLOWED, format!("attempt to reuse consumer tag '{tag}'"));
    }
    mapping::fault(refusal)
}

/// A method that only brokers send, or that makes no sense where it came.
fn misdirected(method: &Method<'_>) -> Fault {
    Fault::new(Code::COMMAND_INVALID, format!("{} cannot come from a client", method.name()))
}

/// Names with this prefix are the broker's (spec, queue.declare); those it made up may be declared
/// again.
fn not_reserved(queue: &str) -> Result<(), Fault> {
    if queue.starts_with("amq.") && !queue.starts_with("amq.gen-") {
        let text = format!("queue name '{queue}' contains reserved prefix 'amq.*'");
        return Err(Fault::new(Code::ACCESS_REFUSED, text));
    }
    Ok(())
}

fn is_inbox(queue: &str) -> bool {
    queue.strip_prefix(DIRECT_REPLY_TO).is_some_and(|rest| rest.starts_with('.'))
}
