//! What the broker says, and what follows from it.

use super::Client;
use super::proxy::{Message, Proxy};
use crate::client::context::Surroundings;
use crate::history::MqttEvent;
use crate::payload;
use crate::plan::mqtt::Client as Plan;
use angarium_protocol::mqtt::codec::{Ack, Packet, PropertyId, Publish, Qos, Reason, Version};
use angarium_protocol::mqtt::frame::{Frame, PACKET_BYTES_MAX, PacketType};

/// Whether a connection ends for what the storage cannot keep.
fn is_of_storage(why: &str) -> bool {
    ["the disk is full", "the journal failed"].iter().any(|state| why.starts_with(state))
}

impl Client {
    /// Takes all packets that are there.
    pub(super) fn take_packets(&mut self, at: &mut Surroundings<'_>) -> Result<(), String> {
        let input = std::mem::take(&mut self.input);
        let mut used = 0;
        while self.presence.is_connected() {
            let frame = Frame::read(&input[used..], PACKET_BYTES_MAX);
            let Some((frame, bytes)) = frame.map_err(|bad| format!("no packet: {bad:?}"))? else {
                break;
            };
            used += bytes;
            let packet = Packet::decode(&frame, Version::V5);
            self.take(at, packet.map_err(|bad| bad.text.to_owned())?)?;
        }
        self.input = input[used..].to_vec();
        Ok(())
    }

    fn take(&mut self, at: &mut Surroundings<'_>, packet: Packet<'_>) -> Result<(), String> {
        match packet {
            // It tries again.
            Packet::Connack(connack) if connack.reason.is_error() => self.leave(at),
            Packet::Connack(connack) => self.entered(at, connack.session_present)?,
            Packet::Suback(suback) => {
                self.asks_to_subscribe = false;
                self.is_subscribed = suback.reasons.iter().all(|reason| !reason.is_error());
                if self.is_subscribed {
                    self.subscribed(at);
                }
            }
            Packet::Publish(publish) => {
                (self.active_at, self.is_quiet) = (at.now, false);
                let messages = match &mut self.proxy {
                    Some(proxy) => proxy.altered(&publish, &mut self.received),
                    None => vec![Message::of(&publish)],
                };
                for publish in messages {
                    self.hear(at, &publish.as_packet())?;
                }
            }
            Packet::Ack(ack) => self.take_ack(at, &ack),
            Packet::Disconnect(disconnect) => {
                let why = disconnect.properties.text(PropertyId::ReasonString).unwrap_or_default();
                match disconnect.reason {
                    Reason::ServerShuttingDown => {}
                    // What it has completed cannot be kept: it does so again.
                    Reason::ImplementationSpecificError if is_of_storage(why) => {}
                    reason => {
                        return Err(format!("the broker ends a connection: {reason:?}: {why}"));
                    }
                }
            }
            other => return Err(format!("the broker sends {other:?}")),
        }
        Ok(())
    }

    fn subscribed(&self, at: &mut Surroundings<'_>) {
        if let Plan::Kept(kept) = &self.plan
            && let Some(subscribe) = &kept.subscribe
        {
            let (session, qos, is_shared) = (kept.number, subscribe.qos, subscribe.is_shared);
            self.note(at, MqttEvent::Subscribed { session, qos, is_shared });
        }
    }

    fn take_ack(&mut self, at: &mut Surroundings<'_>, ack: &Ack<'_>) {
        let packet_id = ack.packet_id;
        match ack.packet_type {
            PacketType::Puback | PacketType::Pubrec => {
                let Some(acknowledged) = self.publisher.acknowledged(ack) else { return };
                let (message, is_accepted) = (acknowledged.message, acknowledged.is_accepted);
                self.note(at, MqttEvent::Acknowledged { message, is_accepted });
                if !acknowledged.is_released {
                    return;
                }
                match self.proxy.as_mut().is_some_and(Proxy::completes_early) {
                    true => self.publisher.completed(packet_id),
                    false => self.acknowledge(PacketType::Pubrel, packet_id),
                }
            }
            PacketType::Pubrel => {
                (self.active_at, self.is_quiet) = (at.now, false);
                self.received.remove(&packet_id);
                self.acknowledge(PacketType::Pubcomp, packet_id);
            }
            _ => self.publisher.completed(packet_id),
        }
    }

    /// Takes a message.
    fn hear(&mut self, at: &mut Surroundings<'_>, publish: &Publish<'_>) -> Result<(), String> {
        let packet_id = publish.packet_id;
        let is_known = publish.qos == Qos::ExactlyOnce && !self.received.insert(packet_id);
        if is_known && !publish.dup {
            return Err(format!("packet identifier {packet_id} is used for two messages at once"));
        }
        if !is_known {
            let message =
                payload::read(publish.payload).ok_or("a message that nobody published")?;
            let (qos, dup) = (publish.qos as u8, publish.dup);
            self.note(
                at,
                match &self.plan {
                    Plan::Kept(kept) => {
                        let session = kept.number;
                        MqttEvent::Received { session, message, qos, dup }
                    }
                    Plan::Watcher(_) => {
                        let (subscription, is_retained) = (self.number, publish.retain);
                        MqttEvent::Seen { subscription, message, qos, dup, is_retained }
                    }
                },
            );
        }
        match publish.qos {
            Qos::AtMostOnce => {}
            Qos::AtLeastOnce => {
                self.acknowledge_at_some_time(at.now, PacketType::Puback, packet_id);
            }
            Qos::ExactlyOnce => {
                self.acknowledge_at_some_time(at.now, PacketType::Pubrec, packet_id);
            }
        }
        Ok(())
    }
}
