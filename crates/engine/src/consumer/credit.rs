//! How much may be out unsettled, in messages and in bytes.

use crate::Credit;

/// A credit and what of it is used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    pub(crate) credit: Credit,
    pub(crate) messages: u32,
    pub(crate) bytes: u64,
}

impl Account {
    /// Whether another message of `bytes` may go out. One always passes.
    #[inline]
    pub(crate) fn allows(&self, bytes: u32) -> bool {
        let Credit { messages: messages_max, bytes: bytes_max } = self.credit;
        (messages_max == 0 || self.messages < messages_max)
            && (bytes_max == 0
                || self.messages == 0
                || self.bytes.saturating_add(bytes.into()) <= bytes_max)
    }

    #[inline]
    pub(crate) fn take(&mut self, bytes: u32) {
        self.messages += 1;
        self.bytes += u64::from(bytes);
    }

    #[inline]
    pub(crate) fn give_back(&mut self, bytes: u32) {
        self.messages -= 1;
        self.bytes -= u64::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(messages: u32, bytes: u64, taken: &[u32], next: u32, expect: bool) {
        let mut account = Account { credit: Credit { messages, bytes }, ..Account::default() };
        for taken in taken {
            account.take(*taken);
        }
        assert_eq!(account.allows(next), expect, "{messages} messages, {bytes} bytes, {taken:?}");
    }

    #[test]
    fn zero_means_no_limit() {
        check(0, 0, &[u32::MAX; 100], u32::MAX, true);
    }

    #[test]
    fn messages_are_counted() {
        check(2, 0, &[1], 1, true);
        check(2, 0, &[1, 1], 1, false);
    }

    #[test]
    fn bytes_are_counted_and_one_message_always_passes() {
        check(0, 10, &[], 1000, true);
        check(0, 10, &[4], 6, true);
        check(0, 10, &[4], 7, false);
        check(0, 10, &[1000], 0, false);
    }
}
