//! JORAM 3.5: persistence per message, seen by travel times under a saturating producer.

use super::work::Case;
use super::{Broker, PLAIN, Parameters, Plot, Preset};
use crate::load::{End, Plan};

const GROUPS_PTP: u32 = 10;
const GROUPS_PUB_SUB: u32 = 50;
/// Messages that wait for their confirms, where only what is confirmed is kept.
const WINDOW: usize = 1_000;

/// The presets.
pub(super) static PRESETS: &[Preset] = &[Preset {
    name: "joram",
    text: "JORAM 3.5",
    about: "travel times under a saturating producer: {queue, topic, durable topic} x transactions, 12 cases",
    notes: &[
        "cases: 1 non-transacted, 2 transacted producer, 3 transacted consumer, 4 both",
        "the text gives no number of messages; without transactions the producer does not wait, but where \
         nothing is kept without a confirm (MQTT, JetStream): there 1,000 messages wait for theirs at most",
        "messages are persistent; a topic's subscriber that is not durable has a queue that is not",
        "the text prints curves only: in 3.4 a queue's travel time grew exponentially, in 3.5 \
         linearly; flat is better than both",
    ],
    axis: "case",
    columns: &[
        "mean_us",
        "first_third_us",
        "last_third_us",
        "growth",
        "p99_us",
        "out_rate",
        "broker_us",
    ],
    plots: &[Plot::Travels],
    parameters: &[
        ("messages", "50000"),
        ("size", "1024"),
        ("transaction", "10"),
        ("window", "0"),
        ("cases", "1..4"),
        ("runs", "3"),
    ],
    quick: &[("messages", "10000"), ("runs", "1")],
    cases,
    ..PLAIN
}];

fn cases(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let mut cases = Vec::new();
    let window = match parameters.count("window") as usize {
        0 if broker.target.protocol().keeps_confirmed_only() => WINDOW,
        window => window,
    };
    for (series, fan_out, durable) in
        [("queue", false, true), ("topic", true, false), ("durable topic", true, true)]
    {
        for case in parameters.list("cases") {
            let transaction = parameters.count("transaction") as u32;
            let (producer, consumer) = (case == 2.0 || case == 4.0, case == 3.0 || case == 4.0);
            let plan = Plan {
                persistent: true,
                durable_queues: durable,
                fan_out,
                window: if producer { 0 } else { window },
                commit_publishes: if producer { transaction } else { 0 },
                commit_acks: consumer,
                ack_every: if consumer { transaction } else { 1 },
                prefetch: 1_000,
                travel_group: if fan_out { GROUPS_PUB_SUB } else { GROUPS_PTP },
                end: End::Count(parameters.count("messages")),
                ahead: 0,
                ..broker.plan(parameters.size())
            };
            cases.push(Case::load(series, case, plan));
        }
    }
    cases
}
