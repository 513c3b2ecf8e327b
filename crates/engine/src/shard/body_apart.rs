//! Large bodies go to other shards beside the encoded message, as one shared buffer.

/// The body, which is large, goes along beside the bytes.
pub(crate) const BODY_APART: u8 = 128;

/// Whether a message's body goes along beside its bytes, those that [`MessageView::write`],
/// [`Publish::write`] or [`crate::Forward::write`] wrote.
#[must_use]
pub fn is_body_apart(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|flags| flags & BODY_APART != 0)
}
