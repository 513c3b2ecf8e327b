//! What the engine is asked for, and its answers, which come in order.

use super::codec::Ack;
use super::frame::PacketType;
use super::handler::{Handler, State};
use super::mapping;
use super::outgoing::Awaits;
use super::pending::Pending;
use crate::{Context, Host};
use angarium_engine::{Refusal, Reply, Request};

impl Handler {
    /// Asks the engine for something.
    pub(super) fn ask(
        &mut self,
        context: &mut Context<impl Host>,
        request: Request,
        pending: Pending,
    ) {
        self.pending.push_back(pending);
        context.engine.request(context.now, self.channel(), request, context.host);
    }

    /// Takes the answer to the first request that waits.
    pub(super) fn take_reply(
        &mut self,
        context: &mut Context<impl Host>,
        reply: Result<Reply, Refusal>,
    ) {
        let Some(pending) = self.pending.pop_front() else { return };
        match (pending, reply) {
            (Pending::Nothing, _) => {}
            (Pending::Claim, Ok(Reply::Session(claimed))) => self.claimed(context, *claimed),
            // One refusal has been told already.
            (Pending::Claim | Pending::Beginning, Err(_)) if self.ending.is_some() => {}
            (Pending::Claim | Pending::Beginning, Err(refusal)) => {
                let reason = mapping::login_refused(refusal.kind);
                self.put_refusal(context, reason, &refusal.text);
                self.end_soon(context, reason, &refusal.text);
            }
            (Pending::Claim | Pending::Beginning, Ok(_)) => {}
            (Pending::Queue, Ok(Reply::Session(claimed))) => {
                self.has_queue(context, claimed.queue);
            }
            (Pending::Queue, Ok(_)) => {}
            (Pending::Queue, Err(refusal)) => {
                self.subscribing_refused(context, None, &refusal);
            }
            (Pending::Subscribing(index), Err(refusal)) => {
                self.subscribing_refused(context, index, &refusal);
            }
            (Pending::Subscribing(_), Ok(_)) => {}
            (Pending::Release(packet_id), reply) => self.released(context, packet_id, reply),
            (Pending::Complete(..), Err(refusal)) => {
                // The client sends PUBREL again.
                let reason = mapping::publish_refused(refusal.kind);
                self.end_soon(context, reason, &refusal.text);
            }
            (Pending::Complete(packet_id, reason), Ok(_)) => {
                let plain = Ack::plain(PacketType::Pubcomp, packet_id);
                Ack { reason, ..plain }.write(self.version, self.out(context));
            }
        }
        if self.state == State::Preparing && self.pending.is_empty() {
            self.welcome(context);
        }
    }

    /// PUBREC is safe: the client may forget that the message can come again.
    fn released(
        &mut self,
        context: &mut Context<impl Host>,
        packet_id: u16,
        reply: Result<Reply, Refusal>,
    ) {
        if let Err(refusal) = reply {
            let reason = mapping::publish_refused(refusal.kind);
            return self.end_soon(context, reason, &refusal.text);
        }
        let version = self.version;
        let (writer, out) = self.outgoing(context);
        if let Some(sent) = writer.outgoing.get(packet_id) {
            sent.awaits = Awaits::Pubcomp;
        }
        Ack::plain(PacketType::Pubrel, packet_id).write(version, &mut out.bytes);
    }
}
