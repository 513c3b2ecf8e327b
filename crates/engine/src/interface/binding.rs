//! Bindings: what leads messages from an exchange on.

use crate::Arguments;
use crate::selector::Filter;

/// What a binding leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingTarget {
    /// A queue of that name.
    Queue(String),
    /// An exchange of that name.
    Exchange(String),
}

/// What leads messages from an exchange to a queue or another exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The exchange it leads from.
    pub source: String,
    /// What it leads to.
    pub target: BindingTarget,
    /// Its key or pattern.
    pub key: String,
    /// What headers have to be; empty for most kinds of exchange.
    pub arguments: Arguments,
    /// It takes only messages that this selects.
    pub filter: Option<Filter>,
    /// It takes nothing that was published by the client of this name ([`crate::Engine::name_client`]).
    pub not_from: Option<String>,
}
