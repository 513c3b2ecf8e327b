//! Output from which the oldest direct messages can be taken out again: small pieces, each with marks where
//! its messages lie, so that dropping costs what is dropped and not what waits. A message with a large body
//! is a piece.

use super::Outbox;
use super::marks::{Marks, Message, Whose};
use super::piece::Piece;
use angarium_engine::Lost;
use angarium_protocol::SharedBody;

/// Bytes of a piece, and about what goes at once.
const PIECE_BYTES: usize = 64 << 10;
/// A piece is at most that part of what may be unsent.
const PIECE_PART: usize = 16;

/// The droppable messages in an outbox; only for connections that have some.
#[derive(Debug, Default)]
pub(super) struct Droppable {
    /// The messages in what is being written, behind all pieces.
    open: Marks,
    /// Bytes of the marks of all pieces.
    marks_bytes: usize,
    /// Pieces, from the front on, from which nothing can be taken out any more.
    spent: usize,
    /// Bytes that were copied since the beginning, or fewer; only tests count them.
    copied: usize,
}

impl Droppable {
    #[inline]
    fn note_copied(&mut self, bytes: usize) {
        if cfg!(test) {
            self.copied += bytes;
        }
    }

    /// What is being written becomes a piece, with the large body that belongs to it.
    pub(super) fn close(&mut self, bytes: Vec<u8>, large: Option<Box<SharedBody>>) -> Piece {
        let piece = Piece::marked(bytes, self.open.close(), large);
        self.note_copied(piece.bytes().len());
        self.marks_bytes += piece.marks_len();
        piece
    }

    /// The first piece is sent, and what is now the first one is to be the next.
    pub(super) fn first_left(&mut self, piece: &Piece, next: Option<&mut Piece>) {
        self.marks_bytes -= piece.marks_len();
        self.spent = self.spent.saturating_sub(1);
        if let Some(next) = next
            && self.spent > 0
        {
            self.marks_bytes -= next.marks_len();
            let copied = next.close_holes(0, 0);
            self.marks_bytes += next.marks_len();
            self.note_copied(copied);
        }
    }

    pub(super) fn all_left(&mut self) {
        self.open.all_left();
    }
}

impl Outbox {
    /// Bytes of a piece of output from which something may be taken out.
    pub(super) fn small_piece_bytes(&self) -> usize {
        (self.unsent_max / PIECE_PART).min(PIECE_BYTES)
    }

    /// Bytes of memory that the output has, and how many were copied within it since the beginning.
    #[cfg(test)]
    pub(crate) fn room_and_copied(&self) -> (usize, usize) {
        let pieces: usize = self.pieces.iter().map(|it| size_of::<Piece>() + it.room()).sum();
        let row = self.pieces.capacity() * size_of::<Box<Piece>>();
        let open = self.droppable.as_ref().map_or(0, |it| it.open.capacity());
        let copied = self.droppable.as_ref().map_or(0, |it| it.copied);
        (pieces + row + open + self.writer.output.bytes.capacity(), copied)
    }

    /// How many bytes are unsent, with those that it takes to know what may be taken out of them.
    pub(crate) fn held(&self) -> usize {
        let droppable = self.droppable.as_ref();
        self.unsent() + droppable.map_or(0, |it| it.marks_bytes + it.open.len())
    }

    /// Prepares for a droppable message of about `bytes` bytes, or with a large body, which gets a piece of
    /// its own. Returns where it begins.
    pub(crate) fn prepare_droppable(&mut self, bytes: usize, has_large: bool) -> usize {
        self.droppable.get_or_insert_default();
        let most = self.small_piece_bytes();
        let written = self.writer.output.bytes.len();
        if written > 0 && (has_large || written + bytes > most) {
            self.end_piece();
        }
        let room = most.max(bytes);
        if !has_large
            && self.writer.output.bytes.is_empty()
            && self.writer.output.bytes.capacity() < room
        {
            self.writer.output.bytes = Vec::with_capacity(room);
        }
        self.writer.output.bytes.len()
    }

    /// What was written from `start` on is that message, up to its body where that is large, and with it what
    /// it tells of.
    pub(crate) fn written_droppable(&mut self, start: usize, whose: Whose, untold: u64) {
        let bytes = self.writer.output.bytes.len() - start;
        let droppable = self.droppable.get_or_insert_default();
        droppable.open.push(Message { start, bytes, whose, untold });
        let output = &mut self.writer.output;
        if let Some(large) = output.shared_body.take() {
            let piece = droppable.close(output.bytes.clone(), Some(large));
            output.bytes.clear();
            self.push_piece(piece);
        }
    }

    /// Takes the oldest of those out, those of whole pieces, until less is held than may be unsent or none is
    /// left. Says which subscription misses what.
    pub(crate) fn drop_oldest(&mut self, mut lost: impl FnMut(Whose, Lost)) {
        while self.held() >= self.unsent_max
            && let Some(at) = self.first_droppable()
        {
            self.drop_in(at, &mut lost);
        }
    }

    /// The first piece from which something may be taken out.
    fn first_droppable(&mut self) -> Option<usize> {
        let droppable = self.droppable.as_ref()?;
        let spent = droppable.spent;
        if spent == self.pieces.len() {
            if droppable.open.is_empty() {
                return None;
            }
            self.end_piece();
        }
        Some(spent)
    }

    /// Takes all messages out of a piece that are not sent in part.
    fn drop_in(&mut self, at: usize, lost: impl FnMut(Whose, Lost)) {
        let (sent, promised) = if at == 0 { (self.sent, self.promised()) } else { (0, 0) };
        let Some(droppable) = &mut self.droppable else { return };
        let piece = &mut self.pieces[at];
        droppable.spent += 1;
        droppable.marks_bytes -= piece.marks_len();
        let dropped = piece.take_out(sent + promised, lost);
        self.pieces_bytes -= dropped;
        if dropped == 0 || (at > 0 && piece.may_keep_holes()) {
            droppable.marks_bytes += piece.marks_len();
            return;
        }
        droppable.note_copied(piece.close_holes(sent, promised));
        self.pieces_bytes -= sent;
        self.sent -= sent;
        self.tidy_piece(at);
    }

    /// A piece has become smaller: what is left of it goes to the one before it, where there is room.
    fn tidy_piece(&mut self, at: usize) {
        let most = self.small_piece_bytes();
        let Some(droppable) = &mut self.droppable else { return };
        let mut is_gone = self.pieces[at].len() == 0;
        if !is_gone && at > 0 {
            let piece = std::mem::take(&mut *self.pieces[at]);
            let copied = self.pieces[at - 1].append(&piece, most);
            is_gone = copied.is_some();
            droppable.note_copied(copied.unwrap_or(0));
            *self.pieces[at] = piece;
        }
        if is_gone {
            self.pieces.remove(at);
            droppable.spent -= 1;
        }
    }
}
