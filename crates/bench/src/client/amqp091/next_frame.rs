//! Takes whole frames out of a receive buffer.

use crate::client::receive_buffer::{PARTIAL_BYTES_MAX, ReceiveBuffer};
use angarium_protocol::amqp091::frame::{self, Frame, FrameError};

/// The largest frame that this client accepts.
pub(super) const FRAME_BYTES_MAX: usize = PARTIAL_BYTES_MAX;

/// Returns the next whole frame, if there is one.
#[inline]
pub(super) fn next_frame(incoming: &mut ReceiveBuffer) -> Result<Option<Frame<'_>>, FrameError> {
    incoming.take(|bytes| frame::read(bytes, FRAME_BYTES_MAX as u32))
}
