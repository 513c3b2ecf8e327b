//! Parses what arrives on the channel of a load: deliveries with their content, confirms,
//! channel.close-ok. Independent of sockets.

use crate::client::receive_buffer::{PARTIAL_BYTES_MAX, ReceiveBuffer};
use crate::client::{Confirm, Error, Head, Receiver};
use angarium_protocol::amqp091::codec::Method;
use angarium_protocol::amqp091::codec::content::{self, ContentHeader, Tagged};
use angarium_protocol::amqp091::codec::wire::Reader;
use angarium_protocol::amqp091::frame::{self, Frame, FrameError};

/// The largest frame that this client accepts.
pub(super) const FRAME_BYTES_MAX: u32 = PARTIAL_BYTES_MAX as u32;

/// The first octets of a channel.close-ok method.
const CHANNEL_CLOSE_OK: [u8; 4] = [0, 20, 0, 41];
/// The first octets of a tx.commit-ok method.
const TX_COMMIT_OK: [u8; 4] = [0, 90, 0, 21];

/// Returns the next whole frame, if there is one.
#[inline]
pub(super) fn next_frame(incoming: &mut ReceiveBuffer) -> Result<Option<Frame<'_>>, FrameError> {
    incoming.take(|bytes| frame::read(bytes, FRAME_BYTES_MAX))
}

/// The delivery whose frames are arriving.
#[derive(Debug, Default)]
pub(super) struct Content {
    tag: u64,
    redelivered: bool,
    expected: u64,
    received: u64,
}

impl Content {
    /// Takes the next frame.
    #[inline]
    pub(super) fn frame(
        &mut self,
        frame: &Frame<'_>,
        receiver: &mut impl Receiver,
    ) -> Result<(), Error> {
        match frame.kind {
            frame::BODY => self.body(frame.payload, receiver),
            frame::HEADER => {
                let size = ContentHeader::decode(frame.payload)?.body_bytes;
                (self.expected, self.received) = (size, 0);
                receiver.begin(Head { tag: self.tag, redelivered: self.redelivered, size });
                if size == 0 {
                    receiver.complete();
                }
                Ok(())
            }
            _ => self.method(frame, receiver),
        }
    }

    #[inline]
    fn method(&mut self, frame: &Frame<'_>, receiver: &mut impl Receiver) -> Result<(), Error> {
        match frame.payload.split_first_chunk::<4>() {
            Some((&content::DELIVER, fields)) => {
                // The fields after the flag, exchange and routing key, are not needed here.
                let mut fields = Reader::new(fields);
                fields.short_bytes()?;
                self.tag = fields.longlong()?;
                self.redelivered = fields.octet()? & 1 != 0;
                Ok(())
            }
            Some((&content::ACK, fields)) => confirm(fields, false, receiver),
            Some((&content::NACK, fields)) => confirm(fields, true, receiver),
            Some((&CHANNEL_CLOSE_OK, _)) => {
                receiver.ended();
                Ok(())
            }
            Some((&TX_COMMIT_OK, _)) => {
                receiver.committed();
                Ok(())
            }
            _ => refusal(frame),
        }
    }

    #[inline]
    fn body(&mut self, octets: &[u8], receiver: &mut impl Receiver) -> Result<(), Error> {
        self.received += octets.len() as u64;
        if self.received > self.expected {
            return Err(Error::invalid("a body longer than its header said"));
        }
        receiver.body(octets);
        if self.received == self.expected {
            receiver.complete();
        }
        Ok(())
    }
}

fn confirm(fields: &[u8], refused: bool, receiver: &mut impl Receiver) -> Result<(), Error> {
    let Tagged { delivery_tag: tag, bits } = Tagged::decode(fields)?;
    receiver.confirm(Confirm { tag, multiple: bits & 1 != 0, refused })
}

/// Turns `channel.close`, `connection.close` and `basic.cancel` into errors; other frames and methods
/// pass.
pub(super) fn refusal(frame: &Frame<'_>) -> Result<(), Error> {
    if frame.kind != frame::METHOD {
        return Ok(());
    }
    match Method::decode(frame.payload)? {
        Method::ChannelClose { reply_code, reply_text, .. }
        | Method::ConnectionClose { reply_code, reply_text, .. } => {
            Err(Error::Closed(format!("{reply_code} {reply_text}")))
        }
        Method::BasicCancel { .. } => {
            Err(Error::Closed("the queue of a consumer is gone".to_owned()))
        }
        _ => Ok(()),
    }
}
