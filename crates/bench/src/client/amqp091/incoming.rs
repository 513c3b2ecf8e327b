//! Whole frames out of the bytes that came. Knows frames, not methods.

use crate::client::incoming::{Incoming, PARTIAL_BYTES_MAX};
use angarium_protocol::amqp091::frame::{self, Frame, FrameError};

/// The largest frame this client takes.
pub(super) const FRAME_BYTES_MAX: usize = PARTIAL_BYTES_MAX;

/// The next whole frame, if there is one.
#[inline]
pub(super) fn next_frame(incoming: &mut Incoming) -> Result<Option<Frame<'_>>, FrameError> {
    // The error cannot pass through the closure's option, so it waits outside.
    let mut wrong = None;
    let frame = incoming.take(|bytes| match frame::read(bytes, FRAME_BYTES_MAX as u32) {
        Ok(frame) => frame,
        Err(error) => {
            wrong = Some(error);
            None
        }
    });
    match wrong {
        Some(error) => Err(error),
        None => Ok(frame),
    }
}
