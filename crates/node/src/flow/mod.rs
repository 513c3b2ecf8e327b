//! How fast clients may send, and what becomes of those that receive too slowly.

pub(crate) mod publisher_stall;
pub(crate) mod quota;
pub(crate) mod rate;
pub(crate) mod slow_consumer_events;
pub(crate) mod slow_consumers;
mod stalling;
pub(crate) mod throttle;

use crate::options::Options;
use angarium_engine::ConnectionId;

/// What a shard knows of how fast its clients send and receive.
#[derive(Debug)]
pub(crate) struct FlowControl {
    pub(crate) slowed: throttle::Slowed,
    pub(crate) company: throttle::Company,
    /// At home: the run of input of one remote connection.
    pub(crate) remote_input: Option<throttle::RemoteInput>,
    pub(crate) rates: rate::Rates,
    /// At home: remote connections that outran consumers in this turn.
    pub(crate) outran: Vec<ConnectionId>,
    /// How often a quota had been set when quotas were last applied.
    pub(crate) quota_changes: u64,
    pub(crate) slow_consumer_events: slow_consumer_events::SlowConsumerEvents,
}

impl FlowControl {
    pub(crate) fn new(options: &Options) -> FlowControl {
        FlowControl {
            slowed: throttle::Slowed::new(options.limits.backlog_bytes_per_second),
            company: throttle::Company::default(),
            remote_input: None,
            rates: rate::Rates::new(options.shards),
            outran: Vec::new(),
            quota_changes: 0,
            slow_consumer_events: slow_consumer_events::SlowConsumerEvents::default(),
        }
    }
}
