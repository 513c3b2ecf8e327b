//! The work of a case as a value.

use crate::client::amqp091::Argument;
use crate::client::{Protocol, Target};
use crate::exchange::ExchangePlan;
use crate::load::Plan;
use crate::load::idle::IdlePlan;
use crate::load::isolation::IsolationPlan;
use std::time::Duration;

/// The most octets in flight between publishers and subscribers where a protocol has no flow control: a
/// broker may drop what exceeds its limits, which would falsify rates.
const AHEAD_BYTES: u64 = 4 << 20;

/// A broker as presets see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Broker<'a> {
    /// The address that loads use.
    pub(crate) target: &'a Target,
    /// Its addresses, one for each protocol that both support.
    pub(crate) targets: &'a [Target],
}

/// One point of one series.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The series; empty if there is one only.
    pub(crate) series: String,
    /// The place on the axis.
    pub(crate) x: f64,
    /// Octets of a message, for the bare machine beside it.
    pub(crate) size_bytes: usize,
    /// The work.
    pub(crate) work: Work,
}

/// The work.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// A load.
    Load(Plan),
    /// The same load with several numbers of parallel groups; the fastest counts.
    Fastest(Vec<Plan>),
    /// Request and reply, one at a time.
    RoundTrips { target: Target, size_bytes: usize, span: Duration },
    /// The time from a subscriber's connect to its first message while others are published.
    FirstMessage { target: Target, size_bytes: usize, rate: u64, attempts: usize },
    /// Fill queues without consumers, then drain them without publishing.
    Spool(Plan),
    /// Idle clients with a subscription each, and messages to all of them.
    Idle { target: Target, plan: IdlePlan },
    /// Memory that stored messages take.
    Stored { target: Target, messages: u64, size_bytes: usize },
    /// A stock exchange of three programs.
    Exchange(ExchangePlan),
    /// Healthy clients alone, then beside misbehaving ones.
    Isolation(IsolationPlan),
    /// Kill the broker amid confirms, restart it, and count confirmed messages that it lost.
    Durability { plan: Plan, kill_after: Duration },
}

impl Work {
    /// Why it cannot be divided among workers, if it cannot: they run producers and consumers of a load only.
    pub(crate) fn indivisible(&self) -> Option<&'static str> {
        Some(match self {
            Work::Load(_) | Work::Fastest(_) => return None,
            Work::RoundTrips { .. } => "a round trip is made by one client, which waits for itself",
            Work::FirstMessage { .. } => "one subscriber connects after the other",
            Work::Spool(_) => {
                "what was filled is drained by the client that knows how much that was"
            }
            Work::Idle { .. } => "the broker's memory is looked at between steps of the clients",
            Work::Stored { .. } => {
                "the broker's memory is looked at before and after one publisher"
            }
            Work::Exchange(_) => "its three programs share a book of orders and a clock",
            Work::Isolation(_) => "the misbehaving clients begin and end with those who measure",
            Work::Durability { .. } => "the kill must fall between confirms that are counted here",
        })
    }

    /// Whether messages are stored, but none of them has to survive a restart.
    pub(crate) fn is_kept_in_memory(&self) -> bool {
        let in_memory = |plan: &Plan| plan.is_kept() && !plan.persistent;
        match self {
            Work::Load(plan) | Work::Spool(plan) => in_memory(plan),
            Work::Fastest(plans) => plans.iter().all(in_memory),
            Work::Stored { .. } => true,
            _ => false,
        }
    }

    /// Adds arguments to durable queues for persistent messages.
    pub(crate) fn add_durable_queue_arguments(&mut self, arguments: &[(&str, &str)]) {
        let plans = match self {
            Work::Load(plan) | Work::Spool(plan) | Work::Durability { plan, .. } => {
                std::slice::from_mut(plan)
            }
            Work::Fastest(plans) => plans,
            _ => return,
        };
        for plan in plans.iter_mut().filter(|plan| plan.persistent && plan.durable_queues) {
            plan.queue_arguments.extend(
                arguments
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), Argument::from_text(value))),
            );
        }
    }

    /// Sets the time without progress after which missing messages count as lost.
    pub(crate) fn set_drain(&mut self, drain: Duration) {
        match self {
            Work::Load(plan) | Work::Spool(plan) | Work::Durability { plan, .. } => {
                plan.drain = drain
            }
            Work::Fastest(plans) => plans.iter_mut().for_each(|plan| plan.drain = drain),
            Work::Isolation(plan) => plan.healthy.drain = drain,
            Work::Idle { plan, .. } => plan.drain = drain,
            _ => {}
        }
    }
}

impl Case {
    /// A load.
    pub(crate) fn load(series: impl Into<String>, x: f64, plan: Plan) -> Case {
        let size_bytes = plan.size_bytes;
        Case { series: series.into(), x, size_bytes, work: Work::Load(plan) }
    }

    /// A case of any work.
    pub(crate) fn of(series: impl Into<String>, x: f64, size_bytes: usize, work: Work) -> Case {
        Case { series: series.into(), x, size_bytes, work }
    }
}

/// The most messages of that size in flight between one publisher and its consumer.
fn ahead(size_bytes: usize) -> u64 {
    (AHEAD_BYTES / size_bytes.max(1) as u64).clamp(16, 20_000)
}

impl Broker<'_> {
    /// A plan of messages of that size, with checksums if the size has room for them.
    pub(crate) fn plan(&self, size_bytes: usize) -> Plan {
        let mut plan = Plan {
            size_bytes,
            checksum: size_bytes >= 16,
            latency: size_bytes >= 24,
            ..Plan::new(self.target.clone())
        };
        if matches!(self.target.protocol(), Protocol::Nats | Protocol::JetStream | Protocol::Resp) {
            plan.ahead = ahead(size_bytes);
        }
        plan
    }

    /// A plan of direct messages with at most `AHEAD_BYTES` in flight per pair, whatever the protocol:
    /// unbounded publishers would measure queues instead of messaging.
    pub(crate) fn direct(&self, size_bytes: usize, pairs: usize) -> Plan {
        Plan { ahead: ahead(size_bytes) * pairs.max(1) as u64, ..self.plan(size_bytes) }
    }

    /// A plan of direct messages to `subscribers`: the bound counts each copy.
    pub(crate) fn direct_fan_out(&self, size_bytes: usize, subscribers: usize) -> Plan {
        let ahead = (ahead(size_bytes) / subscribers.max(1) as u64).max(64);
        Plan { ahead, ..self.plan(size_bytes) }.fanned_out(subscribers)
    }

    /// A plan of persistent messages with confirms and acknowledgements.
    pub(crate) fn persistent(&self, size_bytes: usize, window: u64) -> Plan {
        Plan {
            persistent: true,
            window: window as usize,
            ack_every: 50,
            prefetch: 500,
            ahead: 0,
            ..self.plan(size_bytes)
        }
    }

    /// Whether the protocol may drop published messages silently.
    pub(crate) fn at_most_once(&self) -> bool {
        self.target.protocol() == Protocol::Nats
    }
}
