//! Output that goes out in frames: each has the rest of a piece, or what is written, at most.

use super::Outbox;
use angarium_protocol::websocket::Outgoing;

impl Outbox {
    /// Begins a frame where output goes out in frames, if none is being sent; says whether there is something
    /// to send.
    #[inline]
    pub(crate) fn begin_frame(&mut self) -> bool {
        self.framing.is_some() && self.begin_next_frame()
    }

    #[cold]
    fn begin_next_frame(&mut self) -> bool {
        let Some(mut framing) = self.framing.take() else { return false };
        let has_output = framing.begin(|| self.first_parts());
        self.framing = Some(framing);
        has_output
    }

    /// What is unsent of the first piece, or written where there is none.
    fn first_parts(&self) -> impl Iterator<Item = &[u8]> {
        let written = self.pieces.is_empty().then(|| &self.writer.output.bytes[self.sent..]);
        let piece = self.pieces.front().map(|piece| piece.pending(self.sent));
        let parts = written.into_iter().chain(piece.into_iter().flatten());
        parts.filter(|part| !part.is_empty())
    }

    /// What is unsent of the frame that is being sent.
    pub(super) fn frame_parts<'a>(
        &'a self,
        framing: &'a Outgoing,
    ) -> impl Iterator<Item = &'a [u8]> {
        let head = Some(framing.head()).filter(|head| !head.is_empty());
        let mut left = framing.payload_left();
        let payload = self.first_parts().map_while(move |part| {
            let part = &part[..part.len().min(left)];
            left -= part.len();
            (!part.is_empty()).then_some(part)
        });
        head.into_iter().chain(payload)
    }

    /// How many bytes have to be sent next because the header of a frame has said so: they stay.
    pub(super) fn promised(&self) -> usize {
        self.framing.as_ref().map_or(0, |framing| framing.payload_left())
    }

    /// Whether something is to be sent before the transport may be closed.
    pub(crate) fn has_output(&self) -> bool {
        match &self.framing {
            None => !self.pending().is_empty(),
            Some(framing) => !framing.is_done(),
        }
    }
}
