//! `angarium serve`: puts the process together and waits for its end.

use super::administer::SOCKET_NAME;
use super::{journal, output};
use crate::authenticate::{GUEST, login_secret};
use crate::hints;
use crate::http::{self, Endpoints, Mailboxes};
use crate::logs::{self, LevelSwitch};
use crate::memory;
use crate::reactor::listeners::Bound;
use crate::reactor::{self, Clock, HandedOutFile, Mailbox, Start, listeners};
use crate::settings::{self, Encryption, FileMode, LogFormat, SessionOverflow, Settings, Sources};
use crate::signals;
use angarium_engine::limits::Limits;
use angarium_engine::{self as engine, HandedOut, Overflow, Quota, Time};
use angarium_journal::{Disk, Storage};
use angarium_node::{MemoryLimits, Node, Options, SpillOptions};
use angarium_protocol::{UndecidedSettings, amqp10, amqp091, mqtt, nats, stomp, websocket};
use clap::ArgMatches;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

/// The part of all memory for peers that bodies of queues' messages may take.
const RESIDENT_PART: u64 = 4;
/// The part of it that delayed messages may, and what each takes.
const DELAYED_PART: u64 = 8;
const DELAYED_BYTES: u64 = 80;
/// The same of retained messages.
const RETAINED_PART: u64 = 4;
const RETAINED_BYTES: u64 = 200;

/// The user that exists from the first start on, and its virtual host.
const DEFAULT_USER: &str = "guest";
const DEFAULT_VHOST: &str = "/";
/// The program's name.
const NAME: &str = "angarium";

/// Serves until a signal or request stops it.
pub(super) fn run(matches: &ArgMatches) -> Result<(), String> {
    let sources = sources(matches);
    let settings = sources.read()?;
    let format = settings.log_format;
    let level = logs::start(settings.log, format);
    signals::survive_file_limits()?;
    let data = settings.data.clone();
    let private = DirBuilder::new().recursive(true).mode(0o700).create(&data);
    private.map_err(|error| hints::in_data_folder(&data, &error))?;
    let folder = data.join(journal::FOLDER);
    let disk = Disk::open(&folder).map_err(|error| hints::in_data_folder(&folder, &error))?;
    let tcp = settings.http.map(|address| listeners::bind("http", address)).transpose()?;
    let monitoring = settings
        .nats_monitoring
        .map(|address| listeners::bind("nats-monitoring", address))
        .transpose()?;
    memory::start()?;
    // It is dropped after the broker has ended.
    let (clock, _time_keeper) = Clock::of(&data)?;
    let (handed_out, marks) = HandedOutFile::open(&folder);
    let secret = login_secret(&data)?;
    let start = start(settings.clone(), Arc::new(disk), marks, secret)?;
    let start = Start { clock, handed_out: Some(handed_out), ..start };
    // The socket exists before any port is open.
    let unix = administration(&data);
    let socket = data.join(SOCKET_NAME);
    let running = reactor::start(start).inspect_err(|_| drop(std::fs::remove_file(&socket)))?;
    let mut shown = running.shown.clone();
    let mailboxes = Mailboxes::new(running.mailboxes.clone());
    let tcp = tcp.map(Bound::listen).transpose()?;
    if let Some(address) = tcp.as_ref().and_then(|listener| listener.local_addr().ok()) {
        shown.push(format!("http on {address}"));
    }
    let nats_monitoring = monitoring.map(Bound::listen).transpose()?;
    if let Some(address) = nats_monitoring.as_ref().and_then(|listener| listener.local_addr().ok())
    {
        shown.push(format!("nats-monitoring on {address}"));
    }
    let connections_max = http::CONNECTIONS_MAX;
    let endpoints = Endpoints { tcp, nats_monitoring, unix, connections_max };
    http::take_definitions(mailboxes.clone(), &settings)
        .inspect_err(|_| drop(std::fs::remove_file(&socket)))?;
    http::start(endpoints, mailboxes.clone(), settings.clone())?;
    listen_to_signals(sources, settings, level, mailboxes.home().clone())?;
    let say = |text: &str| {
        if format == LogFormat::Text {
            say(text)
        }
    };
    let (version, listeners) = (env!("CARGO_PKG_VERSION"), shown.join(", "));
    tracing::info!(version, listeners, data = data.display().to_string(), "the broker serves");
    say(&welcome(&program(std::env::args_os().next()), &shown, &data));
    let ended = running.wait();
    // It is only there while a broker is.
    let _ = std::fs::remove_file(&socket);
    ended?;
    HandedOutFile::end(&folder);
    tracing::info!("the broker has stopped in order");
    say("stopped in order\n");
    Ok(())
}

/// Writes to the standard output; the broker serves even if that fails.
fn say(text: &str) {
    if let Err(error) = output::put(text) {
        output::complain(&error);
    }
}

/// What was said on the command line and in the environment.
fn sources(matches: &ArgMatches) -> Sources {
    let flag = |definition: &settings::Definition| {
        let value = matches.get_one::<String>(definition.name)?;
        Some((definition.name.to_owned(), value.clone()))
    };
    let text = |value: std::ffi::OsString| value.into_string().ok();
    Sources {
        file: matches.get_one::<String>("config").map(Into::into),
        environment: std::env::vars_os()
            .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
            .collect(),
        flags: settings::DEFINITIONS.iter().filter_map(flag).collect(),
    }
}

/// The socket for administration, which only the folder's owner can reach.
fn administration(data: &Path) -> Option<UnixListener> {
    let path = data.join(SOCKET_NAME);
    let listener = listeners::unix(None, &path, FileMode(0o600));
    listener.inspect_err(|error| tracing::warn!(%error, "no administration by socket")).ok()
}

/// What shards with these settings are started with; `handed_out`: how far the last process handed messages
/// out, if that is known.
pub(crate) fn start(
    settings: Settings,
    storage: Arc<dyn Storage>,
    handed_out: Option<HandedOut>,
    login_secret: [u8; 32],
) -> Result<Start, String> {
    let shards = settings.shards.number();
    let others = options(&settings, shards, login_secret)?;
    let home = Options { handed_out, ..others.clone() };
    let join = move |shard, introduction: &[Vec<u8>]| {
        // What a shard draws cannot be guessed from what another one drew.
        let options = Options { shard, seed: random()?, ..others.clone() };
        Node::join(options, introduction)
    };
    Ok(Start {
        settings,
        shards,
        clock: Clock::start(),
        handed_out: None,
        storage,
        recover: Box::new(move |storage, now| recover(home, storage, now)),
        join: Arc::new(join),
    })
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
    Ok(bytes)
}

/// The node's options, from the settings.
pub(crate) fn options(
    settings: &Settings,
    shards: usize,
    scram_secret: [u8; 32],
) -> Result<Options, String> {
    let (seed, server_id) = (random::<32>()?, random::<8>()?);
    let count = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let memory = settings.memory_max.bytes();
    let resident_max = memory / RESIDENT_PART;
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Ok(Options {
        limits: Limits {
            vhosts_max: count(settings.vhosts_max),
            queues_max: count(settings.queues_max),
            exchanges_max: count(settings.exchanges_max),
            bindings_max: count(settings.bindings_max),
            consumers_max: count(settings.consumers_max),
            user_connections_max: settings.user_connections_max.unwrap_or(u64::MAX),
            subscriptions_max: count(settings.subscriptions_max),
            pattern_words_max: count(settings.pattern_words_max),
            pattern_states_max: settings.pattern_states_max,
            user_subscriptions_max: settings.user_subscriptions_max.unwrap_or(u64::MAX),
            sessions_max: count(settings.sessions_max),
            vhost_sessions_max: count(settings.sessions_max),
            user_sessions_max: settings.user_sessions_max.map_or(usize::MAX, count),
            session_expiry_max: settings.session_expiry_max.map(|span| span.0),
            unsettled_max: narrow(settings.unsettled_max),
            body_bytes_max: settings.body_bytes_max.0,
            transactions_max: count(settings.transactions_max),
            transaction_timeout: settings.transaction_timeout.map(|span| span.0),
            transaction_operations_max: count(settings.transaction_operations_max),
            transaction_bytes_max: settings.transaction_bytes_max.0,
            resident_bytes_max: settings.resident_bytes_max.0.min(resident_max),
            queue_resident_bytes_max: settings.queue_resident_bytes_max.0.min(resident_max),
            backlog_bytes_per_second: settings.backlog_bytes_per_second.bytes(),
            retained_max: count(retained_max(settings)),
            retained_bytes_max: settings.retained_bytes_max.0,
            delay_max: settings.delay_max.0,
            delayed_max: count(delayed_max(settings)),
            settle_timeout: settings.settle_timeout.0,
            delivery_limit: settings.delivery_limit.map(narrow),
            ..Limits::default()
        },
        journal: angarium_journal::Options {
            segment_bytes: narrow(settings.segment_bytes.0),
            checkpoint_bytes: settings.checkpoint_bytes.0,
            ..angarium_journal::Options::default()
        },
        amqp091: Arc::new(amqp091::Settings {
            body_bytes_max: settings.body_bytes_max.0,
            handshake_timeout: settings.handshake_timeout.0,
            ..amqp091::Settings::default()
        }),
        amqp10: Arc::new(amqp10_settings(settings, scram_secret)),
        mqtt: Arc::new(mqtt_settings(settings, scram_secret)),
        nats: Arc::new(nats_settings(settings, &server_id)),
        stomp: Arc::new(stomp_settings(settings)),
        websocket: Arc::new(websocket_settings(settings)),
        undecided: undecided_settings(settings),
        quota: quota(settings),
        memory: memory_limits(settings, memory),
        send_timeout: settings.send_timeout.map(|timeout| timeout.0),
        spill: SpillOptions { bytes_max: settings.spool_bytes_max.0, ..SpillOptions::default() },
        local_users: settings.loopback_users.clone(),
        shards,
        ..Options::alone(seed)
    })
}

/// What peers may hold of `all` memory for them.
fn memory_limits(settings: &Settings, all: u64) -> MemoryLimits {
    let of = |most: Option<settings::ByteCount>| most.map_or(u64::MAX, |bytes| bytes.0);
    let (user, connection) = (of(settings.user_memory_max), of(settings.connection_memory_max));
    MemoryLimits { all, user, connection }
}

/// Delayed messages for which there is memory, as many as there may be.
fn delayed_max(settings: &Settings) -> u64 {
    let fit = settings.memory_max.bytes() / DELAYED_PART / DELAYED_BYTES;
    settings.delayed_messages.min(fit)
}

/// Retained messages for which there is memory, as many as there may be.
fn retained_max(settings: &Settings) -> u64 {
    let fit = settings.memory_max.bytes() / RETAINED_PART / RETAINED_BYTES;
    settings.retained_messages_max.min(fit)
}

/// The quota of all users without their own.
fn quota(settings: &Settings) -> Quota {
    use engine::Bound::{Bytes, ConnectionBytes, ConnectionMessages, Messages, UnsentBytes};
    let mut quota = Quota::default().with_slow_consumer_policy(settings.slow_consumer_policy);
    for (bound, value) in [
        (UnsentBytes, Some(settings.direct_bytes_max.0)),
        (Messages, settings.user_messages_per_second),
        (Bytes, settings.user_bytes_per_second.map(|bytes| bytes.0)),
        (ConnectionMessages, settings.connection_messages_per_second),
        (ConnectionBytes, settings.connection_bytes_per_second.map(|bytes| bytes.0)),
    ] {
        quota.set(bound, value);
    }
    quota
}

/// MQTT's settings.
fn mqtt_settings(settings: &Settings, scram_secret: [u8; 32]) -> mqtt::Settings {
    let bytes = usize::try_from(settings.body_bytes_max.0).unwrap_or(usize::MAX);
    mqtt::Settings {
        handshake_timeout: settings.handshake_timeout.0,
        packet_bytes_max: bytes.min(mqtt::PACKET_BYTES_MAX),
        retain_available: settings.retained_messages_max > 0,
        keep_alive_max: settings.mqtt_keep_alive_max.map(|span| span.0),
        session_messages_max: settings.mqtt_session_messages_max,
        session_bytes_max: settings.mqtt_session_bytes_max.map(|bytes| bytes.0),
        session_overflow: match settings.mqtt_session_overflow {
            SessionOverflow::DropOldest => Overflow::DropHead,
            SessionOverflow::Refuse => Overflow::RejectPublish,
        },
        anonymous_user: settings.mqtt_no_auth_user.clone(),
        scram_secret,
        ..mqtt::Settings::default()
    }
}

/// Which requests open a WebSocket.
fn websocket_settings(settings: &Settings) -> websocket::Settings {
    let names = settings.http_hosts.iter().cloned().chain(http::machine_name());
    websocket::Settings { names: names.collect(), origins: settings.ws_origins.clone() }
}

/// How long it may be unknown what a client speaks.
fn undecided_settings(settings: &Settings) -> UndecidedSettings {
    UndecidedSettings {
        patience: settings.handshake_timeout.0,
        silence: settings.nats_silence.map(|span| span.0),
    }
}

/// STOMP's settings.
fn stomp_settings(settings: &Settings) -> stomp::Settings {
    stomp::Settings {
        body_bytes_max: settings.body_bytes_max.0,
        handshake_timeout: settings.handshake_timeout.0,
        anonymous_user: settings.stomp_no_auth_user.clone(),
        ..stomp::Settings::default()
    }
}

/// AMQP 1.0's settings.
fn amqp10_settings(settings: &Settings, scram_secret: [u8; 32]) -> amqp10::Settings {
    amqp10::Settings {
        body_bytes_max: settings.body_bytes_max.0,
        handshake_timeout: settings.handshake_timeout.0,
        anonymous_user: settings.amqp_no_auth_user.clone(),
        scram_secret,
        ..amqp10::Settings::default()
    }
}

/// The NATS protocol's settings.
fn nats_settings(settings: &Settings, server_id: &[u8; 8]) -> nats::Settings {
    let listen = settings.nats.addresses().chain(settings.nats_tls.addresses()).next();
    let defaults = nats::Settings::default();
    let advertised = settings.nats_advertise.as_ref();
    let (host, port) = (advertised.map(|it| it.host.clone()), advertised.and_then(|it| it.port));
    let narrow = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    nats::Settings {
        server_id: server_id.iter().map(|byte| format!("{byte:02X}")).collect(),
        host: host.or(listen.map(|listen| listen.ip().to_string())).unwrap_or(defaults.host),
        port: port.or(listen.map(|listen| listen.port())).unwrap_or(defaults.port),
        payload_bytes_max: narrow(settings.nats_payload_bytes_max.0),
        control_line_bytes_max: narrow(settings.nats_control_line_bytes_max.0),
        ping_interval: settings.nats_ping_interval.0,
        pings_out_max: u32::try_from(settings.nats_pings_out_max).unwrap_or(u32::MAX),
        anonymous_user: settings.nats_no_auth_user.clone(),
        login_timeout: settings.nats_login_timeout.0,
        lame_duck: settings.nats_lame_duck.0,
        tls: match (
            settings.has_certificate(),
            settings.nats_encryption.max(settings.tls_client_verify),
        ) {
            (_, Encryption::Required) => nats::Tls::Required,
            (true, Encryption::Optional) => nats::Tls::Available,
            (false, Encryption::Optional) => nats::Tls::None,
        },
        tls_verify: settings.tls_client_verify == Encryption::Required,
        ..defaults
    }
}

/// Recovers a node; one without any user gets the default one.
pub(crate) fn recover(options: Options, storage: &dyn Storage, now: Time) -> Result<Node, String> {
    let mut node = Node::recover(options, storage, now)?;
    for note in node.journal().notes() {
        tracing::warn!("the journal: {note}");
    }
    if node.engine().list_users().next().is_some() {
        return Ok(node);
    }
    // What is lost before it is flushed is made again by the next start.
    let user =
        angarium_node::NewUser { name: DEFAULT_USER, password_hash: GUEST, administrator: true };
    node.make_user(now, DEFAULT_VHOST, &user)
        .map_err(|refusal| format!("cannot make the default user: {}", refusal.text))?;
    Ok(node)
}

/// Reacts to signals for the rest of the process's life.
fn listen_to_signals(
    sources: Sources,
    mut settings: Settings,
    level: LevelSwitch,
    mailbox: Mailbox,
) -> Result<(), String> {
    let home = mailbox.clone();
    let stop = move || {
        // A shard that has ended has stopped already.
        let _ = home.tell(|shard| shard.drain());
    };
    signals::listen(stop, move || match sources.read() {
        Ok(after) => reload(&mut settings, &after, &level, &mailbox),
        Err(error) => tracing::warn!(%error, "settings not reloaded"),
    })
}

fn reload(settings: &mut Settings, after: &Settings, level: &LevelSwitch, mailbox: &Mailbox) {
    level.set(after.log);
    let reloaded = settings.reload(after);
    let names = |list: &[&str]| (!list.is_empty()).then(|| list.join(", "));
    let taken_over = names(&reloaded.taken_over);
    match names(&reloaded.need_a_restart) {
        None => tracing::info!(taken_over, "{}", reloaded.summary()),
        need_a_restart => tracing::warn!(taken_over, need_a_restart, "{}", reloaded.summary()),
    }
    let reloaded = settings.clone();
    // A shard that has ended needs none.
    let _ = mailbox.tell(move |shard| shard.reload(reloaded));
}

/// How this program is called: by its name where the shell found it so, else by the path that was given.
fn program(called: Option<OsString>) -> String {
    let called = called.and_then(|called| called.into_string().ok());
    called.filter(|called| called.contains('/')).unwrap_or_else(|| NAME.to_owned())
}

/// What the operator reads first; `program` is how to call it.
fn welcome(program: &str, shown: &[String], data: &Path) -> String {
    let mut text = format!("Angarium {} serves\n", env!("CARGO_PKG_VERSION"));
    for listener in shown {
        text += &format!("  {listener}\n");
    }
    text += &format!("  data in {}\n", data.display());
    text += "Try next, in another terminal:\n";
    if let Some(way) = way_in(shown) {
        text += &format!("  {program} publish{way} --queue hello --declare 'good day'\n");
        text += &format!("  {program} consume{way} hello --count 1\n");
    }
    let is_default = data == Settings::default().data;
    let folder = if is_default { String::new() } else { format!(" --data {}", data.display()) };
    text += &format!("  {program} queue list{folder}\n");
    if let Some(way) = nats_way_in(shown) {
        text += "Over NATS, with its own tool, in two more:\n";
        text += &format!("  nats{way} subscribe hello\n");
        text += &format!("  nats{way} publish hello 'good day'\n");
    }
    let help = format!("`{program} help` tells more.");
    text += &format!("Clients on this host connect as guest with password guest. {help}\n");
    text
}

/// The option that leads `publish` and `consume` to the first AMQP listener: empty where they find it
/// by themselves, none where there is no listener without TLS.
fn way_in(shown: &[String]) -> Option<String> {
    let place = shown.iter().find_map(|listener| listener.strip_prefix("amqp on "))?;
    Some(match from_here(place) {
        None => format!(" --socket {place}"),
        Some(address) if is_default(address, "amqp") => String::new(),
        Some(address) => format!(" --uri amqp://{address}"),
    })
}

/// The option that leads NATS's tool to the first NATS listener that greets before TLS.
fn nats_way_in(shown: &[String]) -> Option<String> {
    let place = shown.iter().find_map(|listener| listener.strip_prefix("nats on "))?;
    let address = from_here(place)?;
    Some(if is_default(address, "nats") { String::new() } else { format!(" -s nats://{address}") })
}

/// Whether clients of that listener find this address by themselves.
fn is_default(address: SocketAddr, listener: &str) -> bool {
    address.ip() == Ipv4Addr::LOCALHOST && settings::default_port(listener) == Some(address.port())
}

/// How this host reaches an address that is listened on; none: it is a Unix socket.
fn from_here(place: &str) -> Option<SocketAddr> {
    let mut address = place.parse::<SocketAddr>().ok()?;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Span;
    use std::time::Duration;

    #[test]
    fn nats_clients_have_the_time_to_go_that_is_set() {
        let lame_duck = |settings: &Settings| nats_settings(settings, &[0; 8]).lame_duck;
        let mut settings = Settings::default();
        assert_eq!(lame_duck(&settings), nats::Settings::default().lame_duck);
        settings.nats_lame_duck = Span(Duration::from_secs(3));
        assert_eq!(lame_duck(&settings), Duration::from_secs(3));
    }

    #[test]
    fn the_program_is_called_as_it_was() {
        for (called, shown) in [
            (Some("angarium"), "angarium"),
            (Some("target/release/angarium"), "target/release/angarium"),
            (Some("/usr/bin/angarium"), "/usr/bin/angarium"),
            (None, "angarium"),
        ] {
            assert_eq!(program(called.map(Into::into)), shown);
        }
        let text = welcome("target/release/angarium", &[], Path::new("/srv/mq"));
        assert!(text.contains("  target/release/angarium queue list --data /srv/mq\n"), "{text}");
    }

    #[test]
    fn the_welcome_leads_to_where_it_listens() {
        let check = |shown: &[&str], data: &Path, expected: &[&str]| {
            let shown: Vec<String> = shown.iter().map(|&listener| listener.to_owned()).collect();
            let text = welcome(NAME, &shown, data);
            let tried: Vec<&str> = text
                .lines()
                .filter_map(|line| line.strip_prefix("  "))
                .map(|line| line.strip_prefix("angarium ").unwrap_or(line))
                .skip(shown.len() + 1)
                .collect();
            assert_eq!(tried, expected, "{shown:?}");
        };
        let usual = Settings::default().data;
        let publish = |way: &str| format!("publish{way} --queue hello --declare 'good day'");
        let consume = |way: &str| format!("consume{way} hello --count 1");
        for (shown, way) in [
            (&["amqp on 0.0.0.0:5672", "http on 127.0.0.1:15672"][..], ""),
            (&["amqp on [::]:5672"], ""),
            (&["amqp on 127.0.0.1:5673"], " --uri amqp://127.0.0.1:5673"),
            (&["amqps on 0.0.0.0:5671", "amqp on 10.0.0.1:5672"], " --uri amqp://10.0.0.1:5672"),
            (&["amqp on [::1]:5672"], " --uri amqp://[::1]:5672"),
            (&["amqp on /run/mq.sock"], " --socket /run/mq.sock"),
        ] {
            check(shown, &usual, &[&publish(way), &consume(way), "queue list"]);
        }
        let subscribe = |way: &str| format!("nats{way} subscribe hello");
        let say = |way: &str| format!("nats{way} publish hello 'good day'");
        for (place, way) in [
            ("0.0.0.0:4222", ""),
            ("127.0.0.1:4223", " -s nats://127.0.0.1:4223"),
            ("[::1]:4222", " -s nats://[::1]:4222"),
        ] {
            let nats = [subscribe(way), say(way)];
            let listener = format!("nats on {place}");
            let list = "queue list --data /srv/mq";
            check(&[&listener], Path::new("/srv/mq"), &[list, &nats[0], &nats[1]]);
        }
        let both = ["amqp on 0.0.0.0:5672", "nats on 0.0.0.0:4222"];
        let all = [&publish(""), &consume(""), "queue list", &subscribe(""), &say("")];
        check(&both, &usual, &all);
    }
}
