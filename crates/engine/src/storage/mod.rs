//! The durable state: records, recovery, snapshots, compaction.

pub(crate) mod codec;
pub(crate) mod compaction;
pub(crate) mod incremental_snapshot;
pub(crate) mod moving_page;
pub(crate) mod page_search;
pub(crate) mod rebuild;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod rescued;
pub(crate) mod snapshot;
