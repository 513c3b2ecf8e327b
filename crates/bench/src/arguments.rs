//! The command line of the benchmark: its commands, and the dispatch to what they run.

use crate::campaign::{self, DiffArguments, PeersArguments, PresetArguments, Progress};
use crate::client::Target;
use crate::client::amqp091::Argument;
use crate::compare::{self, CompareArguments};
use crate::differ::{self, DifferArguments};
use crate::interrupt;
use crate::load::drivers::{self, DriversPlan, Step};
use crate::load::idle::IdlePlan;
use crate::load::isolation::IsolationPlan;
use crate::load::{
    self, End, Misbehaving, Plan, Verdict, first_message, idle, isolation, round_trip,
};
use crate::measure::{bare_sockets, disk};
use crate::output::{self, text};
use crate::preset;
use crate::process_reaper;
use crate::report;
use clap::{Args, Parser, Subcommand};
use serde::Serialize;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The longest span of any kind.
const SECONDS_MAX: f64 = 7.0 * 24.0 * 3600.0;

/// Measures any broker over a socket, and the machine below it.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// What to measure
    #[command(subcommand)]
    command: BenchCommand,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Publish and consume; count, time and check every message
    Load(Box<LoadArguments>),
    /// Send a request and wait for its reply, again and again: the time of a round trip
    Ping(PingArguments),
    /// Healthy clients alone, then beside stalled, slow and flooding ones: the rate and latency they keep;
    /// the preset `isolation` with more settings
    Neighbours(IsolationArguments),
    /// Open idle connections, each with a subscription: the broker's memory for each, and the time
    /// of one message to all
    Idle(IdleArguments),
    /// Start a broker; the time until its first message is delivered
    Start(StartArguments),
    /// The sockets alone: bare TCP through a relay, and without one
    Raw(RawArguments),
    /// The tool's own cost: CPU per message of each driver's producer and consumer, beside bare sockets
    Drivers(DriversArguments),
    /// The disk alone: plain sequential writes, each with fdatasync
    Disk(DiskArguments),
    /// Our broker beside RabbitMQ, Artemis, nats-server or Mosquitto, under the same loads in turn, against
    /// targets
    Compare(CompareArguments),
    /// The same frames to our broker and to RabbitMQ or nats-server: what they answer differently
    Differ(DifferArguments),
    /// Run a part of the load of a coordinator on another machine: `bench load --worker HOST:PORT`
    Worker(WorkerArguments),
    /// Name the presets: the classic measurements, with a line each
    List,
    /// Name the brokers that can be started here
    Peers(PeersArguments),
    /// What changed between two results of presets
    Diff(DiffArguments),
    /// Presets by name: `bench pang-1a --quick` is the same as `bench run pang-1a --quick`
    Run(Box<PresetArguments>),
    /// Kill the brokers that were started and not stopped when the tool has ended
    #[command(name = process_reaper::COMMAND, hide = true)]
    ProcessReaper,
    /// Presets by name
    #[command(external_subcommand)]
    Named(Vec<OsString>),
}

#[derive(Debug, Args)]
struct BrokerArguments {
    /// The broker: `amqp://...` (0-9-1), `amqp10://...`, `nats://...`, `jetstream://...`, `mqtt://...`,
    /// `mqtt5://...`, `stomp://...` or `redis://...`; the password of its user from ANGARIUM_PASSWORD, or
    /// from the file that ANGARIUM_PASSWORD_FILE names
    #[arg(long, alias = "uri", default_value = "amqp://127.0.0.1:5672", value_parser = Target::given)]
    target: Target,
    /// The broker's process, to measure its CPU and memory [default: the one that listens on the port here]
    #[arg(long)]
    pid: Option<u32>,
}

impl BrokerArguments {
    fn pid(&self) -> Option<u32> {
        self.pid.or_else(|| campaign::listener_of(&self.target))
    }
}

#[derive(Debug, Args)]
struct LoadArguments {
    #[command(flatten)]
    broker: BrokerArguments,
    /// Connections that publish
    #[arg(short, long, default_value_t = 1)]
    producers: usize,
    /// Connections that consume; with 0, queues are read back after the measurement
    #[arg(short, long, default_value_t = 1)]
    consumers: usize,
    /// Queues, or subjects [default: 1; with --fan-out, one for each consumer]
    #[arg(short, long)]
    queues: Option<usize>,
    /// Send every message to every queue through a fanout exchange, or to one subject of all
    #[arg(long)]
    fan_out: bool,
    /// Octets of a body
    #[arg(short, long, default_value_t = 100)]
    size: usize,
    /// Persistent messages in durable queues
    #[arg(long)]
    persistent: bool,
    /// Publish and consume exactly once (MQTT's QoS 2); needs a window and acknowledgements
    #[arg(long)]
    exactly_once: bool,
    /// Acknowledge every N deliveries; 0 is automatic acknowledgement
    #[arg(long, default_value_t = 0, value_name = "N")]
    ack_every: u32,
    /// Unacknowledged deliveries per consumer; 0 is no limit
    #[arg(long, default_value_t = 0)]
    prefetch: u16,
    /// Unconfirmed messages per producer; 0 is no confirms
    #[arg(short, long, default_value_t = 0)]
    window: usize,
    /// Messages published and not yet delivered, over all producers; 0 is no limit: a broker may then drop
    /// messages, which the verdict counts
    #[arg(long, default_value_t = 0)]
    ahead: u64,
    /// Messages per second over all producers; 0 is as fast as it goes
    #[arg(long, default_value_t = 0)]
    rate: u64,
    /// Seconds measured
    #[arg(short, long, default_value_t = 10.0)]
    duration: f64,
    /// Seconds of warm-up before the measurement
    #[arg(long, default_value_t = 1.0)]
    warm_up: f64,
    /// Publish this many messages in all instead of measuring for a time
    #[arg(long, conflicts_with_all = ["duration", "warm_up"])]
    count: Option<u64>,
    /// Seconds without any progress after which missing messages count as lost
    #[arg(long, default_value_t = load::DRAIN.as_secs_f64())]
    drain: f64,
    /// Check bodies by a checksum
    #[arg(long)]
    checksum: bool,
    /// Take latencies
    #[arg(long)]
    latency: bool,
    /// Subscriptions of another connection, or patterns of another queue, that match nothing
    #[arg(long, default_value_t = 0)]
    bystanders: usize,
    /// Subjects that the messages of each queue's subject take in turn (NATS, Redis); labels, each of which
    /// has a selective subscription (AMQP 1.0)
    #[arg(long, default_value_t = 0)]
    spread: u64,
    /// Count the broker's instructions, where the machine allows it
    #[arg(long)]
    instructions: bool,
    /// Let a worker at HOST:PORT run a part of the load; may be given several times. Workers get the target
    /// with its password, in the clear
    #[arg(long, value_name = "HOST:PORT")]
    worker: Vec<String>,
    /// An argument of the queues, such as x-queue-type=quorum; may be given several times
    #[arg(long = "queue-argument", value_name = "NAME=VALUE", value_parser = queue_argument)]
    queue_arguments: Vec<(String, Argument)>,
}

impl LoadArguments {
    fn plan(&self) -> Result<Plan, String> {
        let measured = seconds(self.duration)?;
        let end = match self.count {
            Some(count) => End::Count(count),
            None => End::After { warm_up: seconds(self.warm_up)?, measured },
        };
        let queues_default = if self.fan_out { self.consumers.max(1) } else { 1 };
        let plan = Plan {
            producers: self.producers,
            consumers: self.consumers,
            queues: self.queues.unwrap_or(queues_default),
            fan_out: self.fan_out,
            size_bytes: self.size,
            persistent: self.persistent,
            exactly_once: self.exactly_once,
            ack_every: self.ack_every,
            prefetch: self.prefetch,
            window: self.window,
            ahead: self.ahead,
            rate: self.rate,
            end,
            drain: seconds(self.drain)?,
            checksum: self.checksum,
            latency: self.latency,
            bystanders: self.bystanders,
            spread: self.spread,
            instructions: self.instructions,
            queue_arguments: self.queue_arguments.clone(),
            ..Plan::new(self.broker.target.clone())
        };
        plan.check()?;
        Ok(plan)
    }
}

#[derive(Debug, Args)]
struct PingArguments {
    #[command(flatten)]
    broker: BrokerArguments,
    /// Octets of a request and of a reply
    #[arg(short, long, default_value_t = 100)]
    size: usize,
    /// Seconds measured
    #[arg(short, long, default_value_t = 5.0)]
    duration: f64,
    /// Seconds without an answer after which what is missing counts as lost
    #[arg(long, default_value_t = load::DRAIN.as_secs_f64())]
    drain: f64,
}

#[derive(Debug, Args)]
struct IsolationArguments {
    #[command(flatten)]
    broker: BrokerArguments,
    /// Healthy pairs, each with a queue or a subject
    #[arg(short, long, default_value_t = 20)]
    pairs: usize,
    /// Messages per second over all pairs
    #[arg(long, default_value_t = 20_000)]
    rate: u64,
    /// Octets of a body
    #[arg(short, long, default_value_t = 1_024)]
    size: usize,
    /// Seconds measured, without misbehaving clients and again with them
    #[arg(short, long, default_value_t = 10.0)]
    duration: f64,
    /// Seconds of warm-up before the measurement
    #[arg(long, default_value_t = 3.0)]
    warm_up: f64,
    /// Clients that subscribe and never read
    #[arg(long, default_value_t = 1)]
    stalled: usize,
    /// Clients that read a twentieth of what is sent to them
    #[arg(long, default_value_t = 10)]
    slow: usize,
    /// Clients that publish as fast as the broker lets them
    #[arg(long, default_value_t = 1)]
    flooding: usize,
    /// Clients that consume and never acknowledge (queues)
    #[arg(long, default_value_t = 0)]
    unacking: usize,
    /// Octets of a durable queue that another client drains (queues)
    #[arg(long, default_value_t = 0, value_parser = compare::octets)]
    backlog_bytes: u64,
}

impl IsolationArguments {
    fn plan(&self) -> Result<IsolationPlan, String> {
        let (warm_up, measured) = (seconds(self.warm_up)?, seconds(self.duration)?);
        let healthy = Plan {
            size_bytes: self.size,
            rate: self.rate,
            end: End::After { warm_up, measured },
            latency: true,
            ..Plan::new(self.broker.target.clone())
        }
        .in_pairs(self.pairs);
        let misbehaving = Misbehaving {
            stalled: self.stalled,
            slow: self.slow,
            flooding: self.flooding,
            unacking: self.unacking,
            backlog_bytes: self.backlog_bytes,
        };
        let plan = IsolationPlan { healthy, misbehaving };
        plan.check()?;
        Ok(plan)
    }
}

#[derive(Debug, Args)]
struct IdleArguments {
    #[command(flatten)]
    broker: BrokerArguments,
    /// Connections to open
    #[arg(short, long, default_value_t = 1_000)]
    connections: usize,
    /// Seconds of rest before each look at the broker's memory
    #[arg(long, default_value_t = 2.0)]
    settle: f64,
    /// Timed messages to all of them, one after the other; with 0, one message that is not timed checks that
    /// all of them receive
    #[arg(long, default_value_t = 0)]
    waves: usize,
    /// Seconds without any message after which what is missing counts as lost
    #[arg(long, default_value_t = load::DRAIN.as_secs_f64())]
    drain: f64,
}

#[derive(Debug, Args)]
struct StartArguments {
    /// Where the started broker will listen
    #[arg(long, alias = "uri", default_value = "amqp://127.0.0.1:5672", value_parser = Target::given)]
    target: Target,
    /// Seconds to wait for it
    #[arg(long, default_value_t = 30.0)]
    patience: f64,
    /// The command, which must stay in the foreground
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

#[derive(Debug, Args)]
struct WorkerArguments {
    /// Address for coordinators; anyone who reaches it can have it load any broker, so use a private
    /// network's
    #[arg(long, default_value = "127.0.0.1:7070")]
    listen: String,
}

#[derive(Debug, Args)]
struct RawArguments {
    /// Octets of a message
    #[arg(short, long, default_value_t = 100)]
    size: usize,
    /// Seconds of the stream, and of the round trips
    #[arg(short, long, default_value_t = 3.0)]
    duration: f64,
}

/// Each driver publishes to a counterpart that discards, and consumes from one that plays back, over loopback
/// and with the code of any load. CPU time is that of the one thread. A thread that hands the same octets
/// over a bare socket, in the same pieces, measures the kernel's part; the rest is the driver's own share: at
/// most 100 ns per message and side, for messages of 100 octets. With more, the exit code is 2.
#[derive(Debug, Args)]
struct DriversArguments {
    /// Octets of a message
    #[arg(short, long, default_value_t = drivers::LIMIT_SIZE_BYTES)]
    size: usize,
    /// Seconds of each run
    #[arg(short, long, default_value_t = 0.5)]
    duration: f64,
    /// Only the driver of this scheme (amqp, amqp10, nats, mqtt, mqtt5, stomp, redis); may be given several
    /// times
    #[arg(long, value_name = "SCHEME")]
    driver: Vec<String>,
    /// Runs of each driver and side; the median counts
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Messages without checksums, which presets have
    #[arg(long)]
    no_checksum: bool,
    /// No latencies, which presets take
    #[arg(long)]
    no_latency: bool,
}

impl DriversArguments {
    fn plan(&self) -> Result<DriversPlan, String> {
        let plan = DriversPlan {
            size_bytes: self.size,
            span: seconds(self.duration)?,
            runs: self.runs,
            checksum: !self.no_checksum,
            latency: !self.no_latency,
            schemes: self.driver.clone(),
        };
        plan.check()?;
        Ok(plan)
    }
}

#[derive(Debug, Args)]
struct DiskArguments {
    /// A folder on the disk to measure
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// Octets of each write
    #[arg(long, default_value_t = 64 * 1024)]
    flush_bytes: u64,
    /// Seconds
    #[arg(short, long, default_value_t = 5.0)]
    duration: f64,
}

/// A command line that begins with a preset's name.
#[derive(Debug, Parser)]
#[command(name = "bench", bin_name = "bench")]
struct Named {
    #[command(flatten)]
    presets: PresetArguments,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Named {
    /// Exits with an error message if the words are wrong, as for any other command.
    fn of(words: &[OsString]) -> Named {
        Named::parse_from(std::iter::once("bench".into()).chain(words.iter().cloned()))
    }
}

fn presets(arguments: &PresetArguments, json: bool) -> Result<bool, String> {
    process_reaper::start().map_err(text)?;
    campaign::run(arguments, json)
}

fn measure_load(load: &LoadArguments, json: bool) -> Result<bool, String> {
    interrupt::install().map_err(text)?;
    let outcome = load::run_by(&load.plan()?, &load.worker, load.broker.pid()).map_err(text)?;
    print(json, &outcome, report::load)?;
    let clean = outcome.verdict.is_none_or(|verdict| verdict.is_clean());
    Ok(clean && !outcome.interrupted)
}

fn measure_drivers(arguments: &DriversArguments, json: bool) -> Result<bool, String> {
    interrupt::install().map_err(text)?;
    let plan = arguments.plan()?;
    let mut progress = Progress::new(plan.steps(), false);
    let costs = drivers::measure(&plan, |step| match step {
        Step::Begin(driver, side) => progress.begin(&format!("{driver}, {}", side.name())),
        Step::End(cost) => {
            let what = format!("{}, {}", cost.driver, cost.side.name());
            progress.end(&what, &format!("{:.1} ns/msg of its own", cost.own_ns));
        }
    });
    drop(progress);
    let costs = costs.map_err(text)?;
    print(json, &costs, report::drivers)?;
    Ok(costs.is_good())
}

/// Serves coordinators until a signal ends it.
fn serve(worker: &WorkerArguments) -> Result<(), String> {
    interrupt::install().map_err(text)?;
    let listener =
        TcpListener::bind(&worker.listen).map_err(|error| format!("{}: {error}", worker.listen))?;
    eprintln!("waiting for coordinators at {}", worker.listen);
    load::worker::serve(&listener, None).map_err(text)
}

fn list() {
    let mut text = "";
    for preset in preset::all() {
        if preset.text != text {
            text = &preset.text;
            output::line(&format!("\n{text}"));
        }
        output::line(&format!("  {:<22} {}", preset.name, preset.about));
    }
    output::line(
        "\nA text's name stands for all of its presets (pang, osu, solace, xmlblaster), `all` for \
         everything.",
    );
}

/// Runs what the command line asks for and prints the result. Fails if the broker lost or harmed a
/// message.
pub fn run(arguments: BenchArguments) -> ExitCode {
    match execute(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

/// `false` if what was measured is not clean.
fn execute(arguments: &BenchArguments) -> Result<bool, String> {
    let json = arguments.json;
    match &arguments.command {
        BenchCommand::Load(load) => return measure_load(load, json),
        BenchCommand::Ping(ping) => {
            if ping.size > round_trip::SIZE_BYTES_MAX {
                return Err(format!("at most {} octets", round_trip::SIZE_BYTES_MAX));
            }
            let (span, drain) = (seconds(ping.duration)?, seconds(ping.drain)?);
            let BrokerArguments { target, .. } = &ping.broker;
            let trips = round_trip::measure(target, ping.broker.pid(), ping.size, span, drain);
            let trips = trips.map_err(text)?;
            print(json, &trips, report::round_trips)?;
            return Ok(trips.verdict.is_clean());
        }
        BenchCommand::Neighbours(arguments) => {
            let found = isolation::measure(&arguments.plan()?, arguments.broker.pid());
            let found = found.map_err(text)?;
            print(json, &found, report::isolation)?;
            return Ok(found.verdicts().all(Verdict::is_clean));
        }
        BenchCommand::Idle(idle) => {
            if idle.connections > idle::CONNECTIONS_MAX {
                return Err(format!("at most {} connections", idle::CONNECTIONS_MAX));
            }
            let pid = idle.broker.pid().ok_or("which process is the broker? Name it by --pid")?;
            let (settle, drain) = (seconds(idle.settle)?, seconds(idle.drain)?);
            let (waves, plan) = (idle.waves, IdlePlan::of(idle.connections));
            let plan = IdlePlan { settle, waves, drain, ..plan };
            let cost = idle::measure(&idle.broker.target, pid, &plan).map_err(text)?;
            print(json, &cost, report::idle)?;
            return Ok(cost.verdict.is_clean());
        }
        BenchCommand::Start(start) => {
            process_reaper::start().map_err(text)?;
            let patience = seconds(start.patience)?;
            let time = first_message::measure_start(&start.command, &start.target, patience)
                .map_err(text)?;
            print(json, &time, report::start)?;
        }
        BenchCommand::Raw(raw) => {
            let speed = bare_sockets::measure(raw.size, seconds(raw.duration)?).map_err(text)?;
            print(json, &speed, report::sockets)?;
        }
        BenchCommand::Drivers(drivers) => return measure_drivers(drivers, json),
        BenchCommand::Disk(disk) => {
            let span = seconds(disk.duration)?;
            let speed = disk::measure(&disk.folder, disk.flush_bytes, span).map_err(text)?;
            print(json, &speed, report::disk)?;
        }
        BenchCommand::Compare(arguments) => {
            process_reaper::start().map_err(text)?;
            return compare::run(arguments);
        }
        BenchCommand::Differ(arguments) => return differ::run(arguments),
        BenchCommand::Worker(worker) => serve(worker)?,
        BenchCommand::ProcessReaper => process_reaper::reap().map_err(text)?,
        BenchCommand::List => list(),
        BenchCommand::Peers(arguments) => campaign::peers(arguments)?,
        BenchCommand::Diff(arguments) => campaign::diff(arguments)?,
        BenchCommand::Run(arguments) => return presets(arguments, json),
        BenchCommand::Named(words) => {
            let named = Named::of(words);
            return presets(&named.presets, json || named.json);
        }
    }
    Ok(true)
}

fn print<T: Serialize>(json: bool, value: &T, render: fn(&T) -> String) -> Result<(), String> {
    if json {
        output::line(&serde_json::to_string(value).map_err(text)?);
    } else {
        output::put(&render(value));
    }
    Ok(())
}

fn seconds(value: f64) -> Result<Duration, String> {
    if !(0.0..=SECONDS_MAX).contains(&value) {
        return Err(format!("{value} seconds is not a span of 0 to {SECONDS_MAX} seconds"));
    }
    Ok(Duration::from_secs_f64(value))
}

fn queue_argument(text: &str) -> Result<(String, Argument), String> {
    let (name, value) = text.split_once('=').ok_or("an argument is NAME=VALUE")?;
    Ok((name.to_owned(), Argument::from_text(value)))
}
