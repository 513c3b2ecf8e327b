//! How far a client has come that authenticates itself by AUTH.

use crate::scram::Dialogue;

/// What is known of a client that authenticates itself so.
#[derive(Debug, Default)]
pub(super) struct Enhanced {
    pub(super) dialogue: Option<Dialogue>,
    pub(super) step: Step,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Step {
    /// The client's first message.
    #[default]
    First,
    /// Its final message.
    Final,
    /// The answer of who checks it.
    Checked,
    /// Nothing: the client has proved itself.
    Done,
}
