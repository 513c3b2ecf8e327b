//! What the tests of all protocols share: a host without sockets, and a seeded generator.

pub(crate) mod host;
pub(crate) mod random;
