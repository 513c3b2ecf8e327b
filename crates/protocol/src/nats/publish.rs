//! Publishes from the client: the hot path, and the answer to a request without responders.

use super::codec::client::RepeatedPublish;
use super::codec::{Message, Publish};
use super::responses::Requests;
use super::{fault, mapping, subject};
use crate::nats::handler::Handler;
use crate::nats::sys_requests::Question;
use crate::{AnyWriter, Context, Host};
use angarium_engine::{
    BatchRoom, Bytes, CachedRoute, Content, Emit, Reached, Refusal, RefusalKind,
};

impl Handler {
    /// Publishes a message; returns whether the next operation may be taken. `shared`: the body, where it is
    /// large and shared.
    #[inline]
    pub(super) fn publish(
        &mut self,
        context: &mut Context<impl Host>,
        message: &Publish<'_>,
        shared: Option<&Bytes>,
        cached_route: &mut Option<CachedRoute>,
    ) -> bool {
        if self.subject.as_bytes() != message.subject {
            *cached_route = None;
            if !self.keep_subject(message.subject) {
                self.not_subject(context, message);
                return true;
            }
            if self.wishes.pedantic && !subject::is_literal(message.subject) {
                self.complain(context, fault::INVALID_PUBLISH_SUBJECT);
                let goes_on = self.publish_kept(context, message, shared, &mut None);
                // So that the next one to it is looked at too.
                self.subject.clear();
                return goes_on;
            }
            if let Some(question) = Question::at(&self.subject) {
                return self.ask(context, question, message);
            }
        }
        self.publish_kept(context, message, shared, cached_route)
    }

    /// Publishes a message to the kept subject.
    #[inline(always)]
    fn publish_kept(
        &mut self,
        context: &mut Context<impl Host>,
        message: &Publish<'_>,
        shared: Option<&Bytes>,
        cached_route: &mut Option<CachedRoute>,
    ) -> bool {
        let before = self.out(context).len();
        self.done(context);
        self.scratch.clear();
        mapping::put_properties(&mut self.scratch, message.reply, message.headers);
        let copy = shared.is_none().then(|| context.engine.copy_of_large(message.body)).flatten();
        let shared = shared.or(copy.as_ref());
        let content = Content { shared, ..published(&self.scratch, message.body) };
        let asks = self.wishes.no_responders && !message.reply.is_empty();
        let emit = Emit {
            subject: &self.subject,
            echo: self.wishes.echo,
            is_response: false,
            asks,
            content,
        };
        match context.engine.emit_next(
            context.now,
            self.channel(),
            &emit,
            cached_route,
            context.host,
        ) {
            Ok(reached) if reached.is_nobody() && !message.reply.is_empty() => {
                let name = std::mem::take(&mut self.subject);
                self.unanswered(context, &name, message.reply);
                self.subject = name;
            }
            Ok(reached) => self.note_reached(context, reached),
            Err(refusal) => {
                if !self.respond(context, &Emit { asks: false, ..emit }) {
                    let name = std::mem::take(&mut self.subject);
                    self.not_done(context, &name, before, &refusal);
                    self.subject = name;
                }
            }
        }
        true
    }

    /// Publishes what was refused, if it answers a message that the client was sent and may answer.
    #[cold]
    fn respond(&self, context: &mut Context<impl Host>, emit: &Emit<'_>) -> bool {
        let permissions = context.engine.subject_permissions(self.id);
        let Some(allowed) = permissions.and_then(|permissions| permissions.responses) else {
            return false;
        };
        let now = context.now;
        let requests = self.requests(context);
        if !requests.is_some_and(|requests| requests.answer(now, emit.subject, allowed)) {
            return false;
        }
        let emit = Emit { is_response: true, ..*emit };
        context.engine.emit(now, self.channel(), &emit, context.host).is_ok()
    }

    /// What the client was sent and may answer.
    pub(super) fn requests<'a>(
        &self,
        context: &'a mut Context<'_, impl Host>,
    ) -> Option<&'a mut Requests> {
        match &mut context.host.writer(self.id).protocol {
            AnyWriter::Nats(writer) => writer.requests.as_deref_mut(),
            _ => None,
        }
    }

    /// Publishes the following messages as a batch, where several differ from the last one in payload alone;
    /// returns their bytes.
    #[inline]
    pub(super) fn publish_batch(
        &mut self,
        context: &mut Context<impl Host>,
        input: &[u8],
        cached_route: &mut Option<CachedRoute>,
    ) -> usize {
        // After a message with a reply or headers, the next ones are likely to have them too.
        if !self.scratch.is_empty() || self.wishes.verbose {
            return 0;
        }
        let Some(mut room) =
            cached_route.as_ref().and_then(|cached_route| context.engine.batch_room(cached_route))
        else {
            return 0;
        };
        let mut bodies = [&[][..]; BatchRoom::MESSAGES_MAX];
        let (mut count, mut used, mut repeated) = (0, 0, RepeatedPublish::default());
        let subject = self.subject.as_bytes();
        for place in &mut bodies {
            let next = repeated.next(&input[used..], subject, &self.limits);
            let Some((body, bytes)) = next.filter(|(body, _)| room.take(body.len())) else { break };
            *place = body;
            (count, used) = (count + 1, used + bytes);
        }
        if count < BatchRoom::MESSAGES_MIN {
            return 0;
        }
        let content = published(&[], &[]);
        let emit = Emit {
            subject: &self.subject,
            echo: self.wishes.echo,
            is_response: false,
            asks: false,
            content,
        };
        let (engine, bodies) = (&mut *context.engine, &bodies[..count]);
        let reached = engine.emit_batch(self.channel(), &emit, bodies, cached_route, context.host);
        self.note_reached(context, reached);
        used
    }

    /// Reports to the host whether the subscribers of the last message keep up.
    #[inline]
    fn note_reached(&self, context: &mut Context<impl Host>, reached: Reached) {
        if reached.crowded {
            context.host.stall(context.now, self.id);
        } else if reached.subscribers > 0 {
            context.host.note_quick(self.id);
        }
    }

    /// Reports a refused publish; output since `before` is withdrawn.
    #[cold]
    pub(super) fn not_done(
        &mut self,
        context: &mut Context<impl Host>,
        name: &str,
        before: usize,
        refusal: &Refusal,
    ) {
        self.out(context).truncate(before);
        if refusal.kind == RefusalKind::LimitExceeded {
            self.complain(context, &refusal.text);
        } else {
            self.complain(context, &fault::publish_violation(name));
        }
    }

    /// Keeps a subject that messages can be published to, so that a batch is checked once.
    fn keep_subject(&mut self, name: &[u8]) -> bool {
        match str::from_utf8(name) {
            Ok(name) if subject::is_subject(name.as_bytes()) => {
                self.subject.clear();
                self.subject.push_str(name);
                true
            }
            _ => false,
        }
    }

    /// Handles a publish to a subject with empty tokens: no subscription matches it. Rights are checked as
    /// for any other.
    #[cold]
    fn not_subject(&mut self, context: &mut Context<impl Host>, message: &Publish<'_>) {
        let name = String::from_utf8_lossy(message.subject);
        if self.wishes.pedantic {
            self.complain(context, fault::INVALID_PUBLISH_SUBJECT);
        }
        if context.engine.check_subject(self.channel(), &name).is_err() {
            return self.complain(context, &fault::publish_violation(&name));
        }
        self.done(context);
        if !message.reply.is_empty() {
            self.unanswered(context, &name, message.reply);
        }
    }

    /// Answers a request that has no responders.
    #[cold]
    pub(super) fn unanswered(
        &mut self,
        context: &mut Context<impl Host>,
        name: &str,
        reply: &[u8],
    ) {
        let Ok(reply) = str::from_utf8(reply) else { return };
        if !self.wishes.no_responders || !subject::is_subject(reply.as_bytes()) {
            return;
        }
        let Some(sid) = context.engine.subscriber(self.channel(), reply).map(str::to_owned) else {
            return;
        };
        let headers = format!("NATS/1.0 503\r\nNats-Subject: {name}\r\n\r\n");
        let message = Message {
            subject: reply.as_bytes(),
            sid: sid.as_bytes(),
            reply: &[],
            headers: headers.as_bytes(),
            body: &[],
        };
        message.write(self.out(context));
    }
}

/// A message as its publisher sent it.
#[inline]
pub(super) fn published<'a>(properties: &'a [u8], body: &'a [u8]) -> Content<'a> {
    Content {
        format: crate::format::NATS,
        properties,
        body,
        shared: None,
        // A queue that catches it keeps it as well as it can.
        persistent: true,
        priority: 0,
        ttl: None,
    }
}
