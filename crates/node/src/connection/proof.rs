//! By what connections log in, as far as later changes of their users matter.

/// By what a connection has logged in, or tries to.
#[derive(Debug, Default)]
pub(crate) enum Proof {
    /// Nothing yet, or what no change of a password concerns: a certificate, an nkey.
    #[default]
    Other,
    /// A password; while it is checked, the user's hash that it is checked against.
    Password(Option<Box<str>>),
}

impl Proof {
    pub(crate) fn is_password(&self) -> bool {
        matches!(self, Proof::Password(_))
    }
}
