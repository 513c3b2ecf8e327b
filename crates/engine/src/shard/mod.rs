//! What an engine does as one shard of several.

pub(crate) mod message_codec;
pub(crate) mod remote_home;
