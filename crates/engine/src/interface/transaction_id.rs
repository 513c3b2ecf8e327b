//! The name of a transaction.

/// A transaction of a connection, which all its channels may use. No number is used again while the
/// connection lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub u64);
