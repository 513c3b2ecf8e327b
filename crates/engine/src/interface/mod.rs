//! What goes into the engine and what comes out: requests, effects, refusals, listings, and the
//! values in them.

pub(crate) mod binding;
pub(crate) mod client_listings;
pub(crate) mod conventions;
pub(crate) mod counters;
pub(crate) mod declaration;
pub(crate) mod effects;
pub(crate) mod facts;
pub(crate) mod ids;
pub(crate) mod lifetime;
pub mod limits;
pub(crate) mod listings;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod name;
pub(crate) mod named_subscription;
pub(crate) mod options;
pub(crate) mod owned_message;
pub(crate) mod page_search;
pub(crate) mod policy;
pub(crate) mod refusal;
pub(crate) mod request;
pub(crate) mod retained;
pub(crate) mod rights;
pub(crate) mod session;
pub(crate) mod storage_state;
pub(crate) mod time;
pub(crate) mod transaction_id;
pub(crate) mod value;
