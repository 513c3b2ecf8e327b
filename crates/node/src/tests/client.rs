//! A client of AMQP 0-9-1 in scenarios: what it was sent, and what it answers in the handshake.

use super::frames::FRAME_MAX;
use angarium_engine::ConnectionId;
use angarium_protocol::amqp091::codec::{ContentHeader, Method, Table};
use angarium_protocol::amqp091::frame;

/// What a client heard that a scenario may ask about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Confirm(u64, bool),
    Delivered(Vec<u8>, bool),
    Count(u32),
    Closed(u16),
    Goodbye,
    Ok,
}

pub(super) struct Client {
    pub(super) shard: usize,
    pub(super) slot: Option<ConnectionId>,
    pub(super) input: Vec<u8>,
    pub(super) said: Vec<Said>,
    /// A delivery of which the content is not complete: marked, announced length, bytes so far.
    pub(super) partial: Option<(bool, u64, Vec<u8>)>,
    pub(super) password: &'static str,
    /// Seconds between the heartbeats it asks for.
    pub(super) heartbeat: u16,
    /// It takes nothing in.
    pub(super) is_deaf: bool,
    /// What comes for it is bytes of another protocol, which it takes as they are.
    pub(super) is_other: bool,
    /// Every method that it was sent, with its channel, where somebody asked for that.
    pub(super) transcript: Option<Vec<String>>,
}

impl Client {
    /// Takes a frame, and puts what it answers into `answer`.
    pub(super) fn frame(&mut self, frame: frame::Frame<'_>, answer: &mut Vec<u8>) {
        match frame.kind {
            frame::METHOD => {
                let method = Method::decode(frame.payload).expect("a sound method");
                if let Some(transcript) = &mut self.transcript {
                    transcript.push(format!("{} {method:?}", frame.channel));
                }
                self.method(&method, answer);
            }
            frame::HEADER => {
                let header = ContentHeader::decode(frame.payload).expect("a sound header");
                self.partial.as_mut().expect("content after a method").1 = header.body_bytes;
            }
            frame::BODY => {
                let (redelivered, length, body) = self.partial.as_mut().expect("a body in order");
                body.extend_from_slice(frame.payload);
                if body.len() as u64 == *length {
                    let said = Said::Delivered(std::mem::take(body), *redelivered);
                    self.said.push(said);
                }
            }
            _ => {}
        }
    }

    fn method(&mut self, method: &Method<'_>, answer: &mut Vec<u8>) {
        let said = match *method {
            Method::ConnectionStart { .. } => {
                let response = format!("\0user\0{}", self.password);
                let start_ok = Method::ConnectionStartOk {
                    client_properties: Table::default(),
                    mechanism: "PLAIN",
                    response: response.as_bytes(),
                    locale: "en_US",
                };
                return start_ok.write_frame(0, answer);
            }
            Method::ConnectionTune { channel_max, .. } => {
                let (frame_max, heartbeat) = (FRAME_MAX, self.heartbeat);
                Method::ConnectionTuneOk { channel_max, frame_max, heartbeat }
                    .write_frame(0, answer);
                let open =
                    Method::ConnectionOpen { virtual_host: "/", capabilities: "", insist: false };
                return open.write_frame(0, answer);
            }
            Method::BasicAck { delivery_tag, .. } => Said::Confirm(delivery_tag, true),
            Method::BasicNack { delivery_tag, .. } => Said::Confirm(delivery_tag, false),
            Method::BasicDeliver { redelivered, .. } | Method::BasicGetOk { redelivered, .. } => {
                self.partial = Some((redelivered, 0, Vec::new()));
                return;
            }
            // What comes back counts as delivered; the transcript tells it from other deliveries.
            Method::BasicReturn { .. } => {
                self.partial = Some((false, 0, Vec::new()));
                return;
            }
            Method::QueueDeclareOk { message_count, .. } => Said::Count(message_count),
            Method::ConnectionClose { reply_code, .. } => {
                Method::ConnectionCloseOk {}.write_frame(0, answer);
                Said::Closed(reply_code)
            }
            Method::ChannelClose { reply_code, .. } => Said::Closed(reply_code),
            Method::ConnectionCloseOk {} => Said::Goodbye,
            _ => Said::Ok,
        };
        self.said.push(said);
    }
}
