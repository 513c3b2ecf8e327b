//! The cases of each preset: its parameters as work against one broker.

use super::{Broker, Case, Parameters, Preset, Work};
use crate::client::Protocol;
use crate::exchange::{self, ExchangePlan};
use crate::load::idle::IdlePlan;
use crate::load::isolation::IsolationPlan;
use crate::load::{End, Misbehaving, Plan};
use std::time::Duration;

/// Travel times of JORAM's text are means of this many deliveries: of a queue, of a topic.
const JORAM_GROUPS: [u32; 2] = [10, 50];
/// JORAM: messages that wait for their confirms, where only what is confirmed is kept.
const JORAM_WINDOW: usize = 1_000;
/// Stock exchange: seconds of a run with a rate, where no number of orders is given.
const ORDERS_SECONDS: u64 = 2;
/// Stock exchange: orders of a run without a rate, where no number is given.
const ORDERS: u64 = 50_000;

impl Preset {
    /// The cases against one broker.
    pub(crate) fn cases(&self, parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
        let build = Builder { parameters, broker };
        let (size, end) = (parameters.size(), || build.timed());
        match self.name.as_str() {
            "pang-1a" => build.loads("subscribers", |count| build.counted(1).fanned_out(count)),
            "pang-1b" => {
                build.loads("publishers", |count| Plan { producers: count, ..build.counted(count) })
            }
            "pang-2" => build.loads("pairs", |count| build.counted(count).in_pairs(count)),
            "pang-3" => build.first_message(),
            "pang-4" => build.loads("pairs", |count| {
                Plan { end: end(), ..broker.direct(size, count) }.in_pairs(count)
            }),
            "pang-ping" => build.overload(),
            "joram" => build.transactions(),
            "osu-de-spsc" => build.loads("sizes", |size| {
                let set = parameters.count("set_bytes") / (size as u64).max(1);
                let count = set.clamp(1, parameters.count("messages").max(1));
                Plan { end: End::Count(count), ..broker.direct(size, 1) }
            }),
            "osu-de-mpmc" => {
                build.by_size("pairs", |size, pairs| broker.direct(size, pairs).in_pairs(pairs))
            }
            "osu-de-pp" => build.round_trips("sizes"),
            "osu-te-spsc" => build.by_size("bindings", |size, bindings| Plan {
                bystanders: bindings.saturating_sub(1),
                topic: true,
                ..broker.direct(size, 1)
            }),
            "stock-exchange" => build.exchange(),
            "solace-t2" => build.in_groups(|size, groups| broker.direct(size, groups)),
            "osu-fe-spmc" | "solace-t3" => {
                build.by_size(&self.axis, |size, count| broker.direct_fan_out(size, count))
            }
            "solace-t4" => build.in_groups(|size, _| build.persistent(size)),
            "solace-t5" => {
                build.by_size(&self.axis, |size, count| build.persistent(size).fanned_out(count))
            }
            "solace-t6" => build.each("queues", |queues| {
                let (end, drain) =
                    (End::Count(parameters.count("messages")), Duration::from_secs(20));
                let plan = Plan { end, drain, ..build.persistent(size) }.in_pairs(queues as usize);
                Case::of("", queues, size, Work::Spool(plan))
            }),
            "xmlblaster-throughput" => build.one_by_one(),
            "xmlblaster-clients" => build.idle(parameters.count("waves") as usize, false),
            "xmlblaster-burst" => build.burst(),
            "xmlblaster-latency" => build.round_trips("size"),
            "xmlblaster-memory" => build.each("messages", |messages| {
                let target = broker.target.clone();
                let work = Work::Stored { target, messages: messages as u64, size_bytes: size };
                Case::of("", messages, size, work)
            }),
            "xmlblaster-protocols" => build.protocols(),
            "latency" => build.loads("rates", |rate| Plan {
                rate: rate as u64,
                ahead: 0,
                end: end(),
                ..broker.plan(size)
            }),
            "isolation" => build.isolation(),
            "connections" => build.idle(0, true),
            "durability" => build.durability(),
            "soak" => build.soak(),
            name => unreachable!("{name} is in `texts` and not here"),
        }
    }
}

/// What cases are made of.
struct Builder<'a> {
    parameters: &'a Parameters,
    broker: &'a Broker<'a>,
}

impl Builder<'_> {
    /// A case for each value of a parameter.
    fn each(&self, name: &str, case: impl Fn(f64) -> Case) -> Vec<Case> {
        self.parameters.list(name).into_iter().map(case).collect()
    }

    /// A load for each value of a parameter.
    fn loads(&self, name: &str, plan: impl Fn(usize) -> Plan) -> Vec<Case> {
        self.each(name, |value| Case::load("", value, plan(value as usize)))
    }

    /// A load for each size and each value of another parameter.
    fn by_size(&self, name: &str, plan: impl Fn(usize, usize) -> Plan) -> Vec<Case> {
        let of_size = |size: f64| {
            self.each(name, |value| {
                let plan = Plan { end: self.timed(), ..plan(size as usize, value as usize) };
                Case::load(octets(size), value, plan)
            })
        };
        self.parameters.list("sizes").into_iter().flat_map(of_size).collect()
    }

    /// For each size the same load in several numbers of parallel groups.
    fn in_groups(&self, plan: impl Fn(usize, usize) -> Plan) -> Vec<Case> {
        self.each("sizes", |size| {
            let in_groups = |groups: f64| {
                let plan = plan(size as usize, groups as usize);
                Plan { end: self.timed(), ..plan }.in_pairs(groups as usize)
            };
            let plans: Vec<Plan> =
                self.parameters.list("groups").into_iter().map(in_groups).collect();
            let work = match <[Plan; 1]>::try_from(plans) {
                Ok([plan]) => Work::Load(plan),
                Err(plans) => Work::Fastest(plans),
            };
            Case::of("", size, size as usize, work)
        })
    }

    /// The end of a plan by the parameters `seconds` and `warm_up`.
    fn timed(&self) -> End {
        End::After { warm_up: self.seconds("warm_up"), measured: self.seconds("seconds") }
    }

    fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs_f64(self.parameters.real(name))
    }

    /// A plan of `messages` for each of several publishers.
    fn counted(&self, publishers: usize) -> Plan {
        let end = End::Count(self.parameters.count("messages") * publishers as u64);
        Plan { end, ..self.broker.plan(self.parameters.size()) }
    }

    fn persistent(&self, size_bytes: usize) -> Plan {
        self.broker.persistent(size_bytes, self.parameters.count("window"))
    }

    fn first_message(&self) -> Vec<Case> {
        let work = Work::FirstMessage {
            target: self.broker.target.clone(),
            size_bytes: self.parameters.size(),
            rate: self.parameters.count("rate"),
            attempts: self.parameters.count("attempts") as usize,
        };
        vec![Case::of("", self.parameters.real("size"), self.parameters.size(), work)]
    }

    fn overload(&self) -> Vec<Case> {
        self.each("megabytes", |megabytes| {
            let size = self.parameters.size();
            let count = (megabytes * 1e6) as u64 / (size as u64).max(1);
            // Without queues, only persistent messages are kept while nobody consumes.
            let protocol = self.broker.target.protocol();
            let plan = match protocol.drops() {
                // A stream of Redis keeps messages that are not persistent, too, as queues do.
                true => Plan {
                    persistent: protocol != Protocol::Resp,
                    ..self.broker.persistent(size, 100)
                },
                false => self.broker.plan(size),
            };
            let plan = Plan { end: End::Count(count), ahead: 0, ..plan };
            Case::of("", megabytes, size, Work::Spool(plan))
        })
    }

    fn transactions(&self) -> Vec<Case> {
        let Builder { parameters, broker } = self;
        let transaction = parameters.count("transaction") as u32;
        let window = match parameters.count("window") as usize {
            0 if broker.target.protocol().keeps_confirmed_only() => JORAM_WINDOW,
            window => window,
        };
        let mut cases = Vec::new();
        for (series, fan_out, durable) in
            [("queue", false, true), ("topic", true, false), ("durable topic", true, true)]
        {
            cases.extend(self.each("cases", |case| {
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
                    travel_group: JORAM_GROUPS[usize::from(fan_out)],
                    ahead: 0,
                    ..self.counted(1)
                };
                Case::load(series, case, plan)
            }));
        }
        cases
    }

    fn round_trips(&self, sizes: &str) -> Vec<Case> {
        self.each(sizes, |size| {
            let (target, size_bytes) = (self.broker.target.clone(), size as usize);
            let work = Work::RoundTrips { target, size_bytes, span: self.seconds("seconds") };
            Case::of("", size, size_bytes, work)
        })
    }

    fn exchange(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for coalesce in self.parameters.list("coalesce") {
            let coalesce = coalesce != 0.0;
            let series = if coalesce { "coalescing" } else { "no coalescing" };
            cases.extend(self.each("rates", |x| {
                let (target, rate) = (self.broker.target.clone(), x as u64);
                let orders = match (self.parameters.count("orders"), rate) {
                    (0, 0) => ORDERS,
                    (0, rate) => rate * ORDERS_SECONDS,
                    (orders, _) => orders,
                };
                let work = Work::Exchange(ExchangePlan { target, rate, orders, coalesce });
                Case::of(series, x, exchange::MESSAGE_BYTES, work)
            }));
        }
        cases
    }

    fn one_by_one(&self) -> Vec<Case> {
        let acknowledged = !self.broker.at_most_once();
        let plan = Plan {
            persistent: acknowledged,
            window: usize::from(acknowledged),
            ack_every: u32::from(acknowledged),
            prefetch: if acknowledged { 100 } else { 0 },
            ..self.counted(1)
        };
        vec![Case::load("", 1.0, plan)]
    }

    fn burst(&self) -> Vec<Case> {
        let window = if self.broker.at_most_once() { 0 } else { self.parameters.count("window") };
        let plan = Plan { consumers: 0, ahead: 0, window: window as usize, ..self.counted(1) };
        vec![Case::load("", 1.0, plan)]
    }

    fn idle(&self, waves: usize, storm: bool) -> Vec<Case> {
        self.each("clients", |clients| {
            let (target, settle) = (self.broker.target.clone(), self.seconds("settle"));
            let plan = IdlePlan { waves, settle, storm, ..IdlePlan::of(clients as usize) };
            Case::of("", clients, 100, Work::Idle { target, plan })
        })
    }

    fn protocols(&self) -> Vec<Case> {
        let case = |target| {
            let broker = Broker { target, ..*self.broker };
            let plan = Plan { end: self.timed(), ..broker.direct(self.parameters.size(), 1) };
            Case::load(target.direct_name(), 1.0, plan)
        };
        self.broker.targets.iter().map(case).collect()
    }

    fn isolation(&self) -> Vec<Case> {
        let Builder { parameters, broker } = self;
        let count = |name| parameters.count(name) as usize;
        let (pairs, rate) = (count("pairs"), parameters.count("rate"));
        let healthy = Plan { rate, ahead: 0, end: self.timed(), ..broker.plan(parameters.size()) };
        let misbehaving = Misbehaving {
            stalled: count("stalled"),
            slow: count("slow"),
            flooding: count("flooding"),
            unacking: 0,
            backlog_bytes: 0,
        };
        let plan = IsolationPlan { healthy: healthy.in_pairs(pairs), misbehaving };
        vec![Case::of("", pairs as f64, parameters.size(), Work::Isolation(plan))]
    }

    fn durability(&self) -> Vec<Case> {
        let (size, producers) = (self.parameters.size(), self.parameters.count("producers"));
        let plan = Plan { end: End::Count(u64::MAX / 2), ..self.persistent(size) };
        let plan = plan.in_pairs(producers as usize);
        let work = Work::Durability { plan, kill_after: self.seconds("seconds") };
        vec![Case::of("", producers as f64, size, work)]
    }

    fn soak(&self) -> Vec<Case> {
        let Builder { parameters, broker } = self;
        let (pairs, rate) = (parameters.count("pairs"), parameters.count("rate"));
        let plan = Plan { rate, end: self.timed(), ..broker.plan(parameters.size()) };
        let plan = plan.in_pairs(pairs as usize);
        let mut cases = vec![Case::load("direct", pairs as f64, Plan { ahead: 0, ..plan.clone() })];
        if !broker.at_most_once() {
            let window = 200;
            let kept = Plan { persistent: true, window, ack_every: 50, prefetch: 500, ..plan };
            cases.push(Case::load("persistent", pairs as f64, kept));
        }
        cases
    }
}

/// The name of a series of messages of `size` octets.
fn octets(size: f64) -> String {
    match size {
        _ if size >= 1_048_576.0 && size % 1_048_576.0 == 0.0 => {
            format!("{} MB", size / 1_048_576.0)
        }
        _ if size >= 1_024.0 && size % 1_024.0 == 0.0 => format!("{} KB", size / 1_024.0),
        _ => format!("{size} B"),
    }
}
