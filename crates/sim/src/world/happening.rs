//! What the world schedules: faults, work for the node, batches between shards, and the stage of a run.

use crate::client::Round;
use angarium_engine::Time;
use angarium_journal::{Done, Job};
use angarium_node::{ReadDone, ReadJob, SpillDone, SpillJob, Verification};

/// Something scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happening {
    /// A client's deadline.
    Client(usize),
    /// The deadline of a client of named sessions.
    Claimant(usize),
    /// Bytes arrive at the node.
    Up(u64),
    /// Bytes arrive at the client.
    Down(u64),
    /// The node's end of a connection learns that it is gone.
    NodeLost(u64),
    /// The client's end of a connection learns that it is gone.
    ClientLost(u64),
    /// Disk work is carried out.
    Work(u64),
    /// Its result reaches the node.
    Worked(u64),
    /// The answer to credentials reaches the node.
    Verified(u64),
    /// A shard ends its turn.
    Turn(usize),
    /// A shard's deadline.
    Deadline(usize),
    /// Batches arrive at a shard.
    Batches(Route),
    /// Something goes wrong.
    Fault(Fault),
    /// The node starts again.
    Restart,
    /// The stage of the run is checked.
    Stage,
}

/// A fault, or the end of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The node crashes.
    Crash,
    /// Power fails during one of the next disk operations.
    CrashInWork,
    /// The node is closed in order.
    Close,
    /// Connections that did not end in time when it is closed are dropped.
    CloseNow,
    /// Flushes fail from now on.
    SyncErrors,
    /// The disk has no space left.
    DiskFull,
    /// The disk has space again.
    DiskSpace,
    /// A change of the spill disk fails.
    SpillFails,
    /// The spill disk has no space left.
    SpillFull,
    /// Files of the spill disk are damaged.
    SpillCorrupted,
    /// Faults of the spill disk end.
    SpillHeals,
    /// A connection is cut.
    Cut,
    /// One direction of a connection stalls.
    Stall,
}

/// A pair of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Route {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Clients work, faults happen.
    Working,
    /// No more faults; clients finish what they began.
    Finishing(Time),
    /// Messages arrive before the next round.
    Resting(Time, Round),
    /// Clients carry out the round.
    Calling(Time, Round),
    /// Clients disconnect.
    Retiring(Time),
    /// The node may be restarted.
    Closing,
    /// One client empties the queues.
    Draining(Time),
    /// Done.
    Over,
    /// The node rightly refused to start on a damaged disk.
    Refused,
}

/// Work under way.
#[derive(Debug)]
pub(super) enum Flight {
    Job(Job),
    JobDone(Done),
    Read(ReadJob),
    ReadDone(ReadDone),
    /// For a shard.
    Spill(usize, SpillJob),
    SpillDone(usize, SpillDone),
    /// For a shard.
    Verification(usize, Verification),
}
