//! Acknowledgements of the client: what the engine hears of messages that were sent.

use super::codec::{Ack, Reason};
use super::frame::PacketType;
use super::handler::Handler;
use super::outgoing::{Awaits, Run, Sent};
use super::pending::Pending;
use crate::{Context, Host};
use angarium_engine::{Outcome, Request, Settle};

impl Handler {
    /// Takes PUBACK, PUBREC, PUBREL or PUBCOMP.
    pub(super) fn acknowledged(&mut self, context: &mut Context<impl Host>, ack: &Ack<'_>) {
        let packet_id = ack.packet_id;
        match ack.packet_type {
            PacketType::Pubrel => self.release(context, packet_id),
            PacketType::Pubrec => self.pubrec(context, ack),
            packet_type => {
                let (writer, _) = self.outgoing(context);
                let sent = writer.outgoing.get(packet_id).copied();
                match (packet_type, sent) {
                    (PacketType::Puback, Some(Sent { tag, awaits: Awaits::Puback, .. })) => {
                        writer.outgoing.end(packet_id);
                        self.settle(context, tag);
                    }
                    (PacketType::Pubcomp, Some(Sent { place, awaits: Awaits::Pubcomp, .. })) => {
                        writer.outgoing.end(packet_id);
                        if self.has_state {
                            let request = Request::ForgetReleased { place };
                            self.ask(context, request, Pending::Nothing);
                        }
                    }
                    // Nothing is known of it, or something else is awaited.
                    _ => {}
                }
            }
        }
    }

    /// The client has a message of QoS 2, or does not want it.
    fn pubrec(&mut self, context: &mut Context<impl Host>, ack: &Ack<'_>) {
        let (packet_id, version) = (ack.packet_id, self.version);
        let has_state = self.has_state;
        let (writer, out) = self.outgoing(context);
        let pubrel = Ack::plain(PacketType::Pubrel, packet_id);
        let Some(sent) = writer.outgoing.get(packet_id) else {
            let reason = Reason::PacketIdentifierNotFound;
            return Ack { reason, ..pubrel }.write(version, &mut out.bytes);
        };
        let tag = sent.tag;
        match sent.awaits {
            Awaits::Pubrec if ack.reason.is_error() => {
                writer.outgoing.end(packet_id);
                self.settle(context, tag);
            }
            Awaits::Pubrec if has_state => {
                sent.awaits = Awaits::Release;
                let request = Request::ReleaseDelivery { tag };
                self.ask(context, request, Pending::Release(packet_id));
            }
            Awaits::Pubrec => {
                sent.awaits = Awaits::Pubcomp;
                pubrel.write(version, &mut out.bytes);
                self.settle(context, tag);
            }
            Awaits::Pubcomp => pubrel.write(version, &mut out.bytes),
            Awaits::Release | Awaits::Puback => {}
        }
    }

    /// Settles a delivery, together with those before it that follow each other.
    fn settle(&mut self, context: &mut Context<impl Host>, tag: u64) {
        match &mut self.settling {
            Some(run) if run.last + 1 == tag => run.last = tag,
            _ => {
                self.settle_run(context);
                self.settling = Some(Run { first: tag, last: tag });
            }
        }
    }

    /// Settles what was put off.
    pub(super) fn settle_run(&mut self, context: &mut Context<impl Host>) {
        let Some(Run { first, last }) = self.settling.take() else { return };
        let settle = Settle::range(first, last, Outcome::Accept);
        // What is not unsettled is passed over.
        let _ = context.engine.settle(context.now, self.channel(), settle, context.host);
    }

    /// Settles deliveries for which nothing is awaited of the client.
    pub(super) fn settle_passed(&mut self, context: &mut Context<impl Host>) {
        let (writer, _) = self.outgoing(context);
        for tag in std::mem::take(&mut writer.outgoing.passed) {
            self.settle(context, tag);
        }
        self.settle_run(context);
        self.grant(context);
    }
}
