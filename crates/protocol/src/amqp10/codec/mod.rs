//! Bytes to and from values, performatives and message sections, in both directions: brokers and clients use
//! the same. Names no engine type.
//!
//! What is read is borrowed from the bytes and allocates nothing. Compound values are checked to their depths
//! when they are read; then they are walked where they lie.

mod composite;
mod conditions;
mod delivery_state;
mod error;
mod field;
mod lookup;
mod malformed;
mod owned;
mod performative;
mod properties;
mod put;
mod sasl;
mod sections;
mod symbols;
mod terminus;
mod transaction;
mod union;
mod value;
pub mod wire;
mod write;

pub use composite::{CompositeInfo, descriptor_code};
pub use conditions::Condition;
pub use delivery_state::{
    ACCEPTED, Accepted, Declared, DeliveryState, Modified, Outcome, RELEASED, Received, Rejected,
    Released, TransactionalState,
};
pub use error::Error;
pub use field::Field;
pub use lookup::{element, entry_named, section_value};
pub use malformed::{Malformed, Place};
pub use owned::OwnedValue;
pub use performative::{
    Attach, Begin, Close, DELIVERY_TAG_BYTES_MAX, DeliveryTag, Detach, Disposition, End, Flow,
    Open, Performative, ReceiverSettleMode, Role, SenderSettleMode, Transfer, decode_body,
    write_frame,
};
pub use properties::{Header, MessageId, Properties};
pub use sasl::{
    SaslChallenge, SaslCode, SaslInit, SaslMechanisms, SaslOutcome, SaslPerformative, SaslResponse,
};
pub use sections::{
    Body, BodyKind, Limits, Section, SectionKind, Sections, put_map_section, put_section,
};
pub use symbols::Symbols;
pub use terminus::{
    AnyTarget, Coordinator, DeleteOnClose, DeleteOnNoLinks, DeleteOnNoLinksOrMessages,
    DeleteOnNoMessages, DistributionMode, LifetimePolicy, Source, Target, TerminusDurability,
    TerminusExpiryPolicy,
};
pub use transaction::{CoordinatorRequest, Declare, Discharge};
pub use union::Union;
pub use value::{
    Array, DEPTH_MAX, Described, Descriptor, List, Map, Symbol, Timestamp, Uuid, Value,
    ZERO_WIDTH_ELEMENTS_MAX, entries,
};
pub use write::{ArrayItem, ListWriter, MapWriter, put_array, put_list, put_map};

#[cfg(test)]
mod tests;
