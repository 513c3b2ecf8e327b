//! Every setting, defined once: name, type, default, bounds, whether a running broker can change
//! it, and what it does.

use super::network::Networks;
use super::place::{FileMode, Places};
use super::value::{
    BacklogRate, Bounds, ByteCount, CertificateUser, Encryption, HostPort, LogFormat, LogLevel,
    MemoryLimit, MetricsAccess, SessionOverflow, SettingValue, ShardCount, Span, at_least, between,
};
use angarium_engine::SlowConsumerPolicy;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Whether a running broker takes a changed value over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// On SIGHUP.
    Now,
    /// When it is started the next time.
    Restart,
}

/// One setting, as help, file and documentation need it.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// As a flag: `tls-certificate`.
    pub name: &'static str,
    /// What a value looks like.
    pub form: fn() -> String,
    /// What it does, in sentences.
    pub text: &'static str,
    /// Which values it may have, in words, where its form does not say it.
    pub allowed: fn() -> Option<String>,
    /// Whether a running broker takes a change over.
    pub reload: Reload,
    /// Sets it from text; the error says what is wrong with the text.
    pub set: fn(&mut Settings, &str) -> Result<(), String>,
    /// The present value, as it would be written.
    pub show: fn(&Settings) -> String,
}

impl Definition {
    /// The default, as it would be written.
    pub fn default(&self) -> String {
        (self.show)(&Settings::default())
    }

    /// The environment variable: `ANGARIUM_TLS_CERTIFICATE`.
    pub fn variable(&self) -> String {
        format!("ANGARIUM_{}", self.key().to_ascii_uppercase())
    }

    /// The key in the file: `tls_certificate`.
    pub fn key(&self) -> String {
        self.name.replace('-', "_")
    }
}

macro_rules! settings {
    ($(
        $(#[doc = $text:literal])+
        $field:ident ($name:literal): $type:ty = $default:expr, $reload:ident $(, $allowed:expr)?;
    )+) => {
        /// All settings with their values.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings { $( $(#[doc = $text])+ pub $field: $type, )+ }

        impl Default for Settings {
            fn default() -> Self {
                Settings { $( $field: $default, )+ }
            }
        }

        /// Every setting, in the order of the documentation.
        pub static DEFINITIONS: &[Definition] = &[ $( Definition {
            name: $name,
            form: <$type as SettingValue>::form,
            text: concat!($($text),+),
            allowed: || None::<Bounds<$type>>$(.or(Some($allowed)))?.map(|bounds| bounds.words()),
            reload: Reload::$reload,
            set: |settings, text| {
                let value = <$type as SettingValue>::parse(text)?;
                $(Bounds::<$type>::check(&$allowed, &value)?;)?
                settings.$field = value;
                Ok(())
            },
            show: |settings| settings.$field.show(),
        }, )+ ];
    };
}

const fn at(address: [u8; 4], port: u16) -> SocketAddr {
    let [a, b, c, d] = address;
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), port)
}

/// On all interfaces.
fn on(port: u16) -> Places {
    Places::tcp(at([0, 0, 0, 0], port))
}

const fn off() -> Places {
    Places(Vec::new())
}

const fn kib(count: u64) -> ByteCount {
    ByteCount(count << 10)
}

const fn mib(count: u64) -> ByteCount {
    ByteCount(count << 20)
}

const fn seconds(seconds: u64) -> Span {
    Span(Duration::from_secs(seconds))
}

/// The least that a client may have unsent before it is too slow: some messages, whatever their size.
pub const DIRECT_BYTES_LEAST: ByteCount = kib(64);

const MILLISECOND: Span = Span(Duration::from_millis(1));
const MOMENT: Span = Span(Duration::from_millis(50));
const SECOND: Span = seconds(1);
const DAY: Span = seconds(86_400);
const YEAR: Span = seconds(365 * 86_400);
const COUNT: Bounds<Option<u64>> = at_least(Some(1)).or(None);
const MEMORY: Bounds<Option<ByteCount>> = at_least(Some(mib(1))).or(None);
const BYTES: Bounds<Option<ByteCount>> = at_least(Some(ByteCount(1))).or(None);

/// The data folder where none is set: the user's own, so that commands find a running broker
/// whatever folder they are called in.
fn default_data() -> PathBuf {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match (from("XDG_DATA_HOME"), from("HOME")) {
        (Some(base), _) => PathBuf::from(base).join("angarium"),
        (None, Some(home)) => PathBuf::from(home).join(".local/share/angarium"),
        (None, None) => PathBuf::from("angarium-data"),
    }
}

settings! {
    /// The data folder: journal, users, topology. Created with access for its owner only; locked against a
    /// second broker. The default is `$XDG_DATA_HOME/angarium`, or `~/.local/share/angarium`, so that
    /// commands find the broker from any folder.
    data("data"): PathBuf = default_data(), Restart;

    /// Threads that serve clients, each with its own connections. `auto`: one per processor, but one on a
    /// machine with two. The first shard has the queues. NATS clients are spread over all shards; AMQP
    /// clients over all but the first, if there are three or more. The first `clients-together` clients of
    /// a protocol share one shard.
    shards("shards"): ShardCount = ShardCount(None), Restart;
    /// Clients of a protocol that one shard takes before further ones are spread over several: for AMQP the
    /// shard with the queues, for NATS the last one. A few clients are fastest on one shard, because a
    /// message between shards is copied twice more and wakes the other thread. Many clients that wait for
    /// each answer are fastest on all shards.
    clients_together("clients-together"): u64 = 4, Now;

    /// Where AMQP clients connect: all interfaces by default. The default user `guest` can log in from this
    /// host only (see `loopback-users`). This listener and all others may have several places, parted by
    /// commas, and `unix:PATH` is a Unix socket for clients of this host: less work per message than TCP.
    amqp("amqp"): Places = on(5672), Restart;
    /// Where AMQP clients connect with TLS, usually on port 5671. Needs `tls-certificate` and
    /// `tls-key`.
    amqps("amqps"): Places = off(), Restart;
    /// Where MQTT clients connect.
    mqtt("mqtt"): Places = on(1883), Restart;
    /// Where MQTT clients connect with TLS, usually on port 8883. Needs `tls-certificate` and `tls-key`.
    mqtts("mqtts"): Places = off(), Restart;
    /// Where NATS clients connect. With `tls-certificate` and `tls-key` they may begin TLS after the
    /// broker's INFO.
    nats("nats"): Places = on(4222), Restart;
    /// Whether clients of `nats` must begin TLS: `optional`, `required`. Some libraries begin it only if it
    /// is required.
    nats_encryption("nats-encryption"): Encryption = Encryption::Optional, Restart;
    /// Where NATS clients connect that begin with the TLS handshake. Needs `tls-certificate` and
    /// `tls-key`.
    nats_tls("nats-tls"): Places = off(), Restart;
    /// The address in the INFO that NATS clients get, if it is not the one listened on: behind a proxy, or in
    /// a container (nats-server: `client_advertise`).
    nats_advertise("nats-advertise"): Option<HostPort> = None, Restart;
    /// The user that NATS clients without credentials are, from this host only if it is one of
    /// `loopback-users` (nats-server: `no_auth_user`). `off`: they are refused.
    nats_no_auth_user("nats-no-auth-user"): Option<String> = Some("guest".into()), Restart;
    /// The user that AMQP 1.0 clients are that log in by SASL ANONYMOUS or without SASL, from this host only
    /// if it is one of `loopback-users`. `off`: they are refused.
    amqp_no_auth_user("amqp-no-auth-user"): Option<String> = Some("guest".into()), Restart;
    /// Where STOMP clients connect.
    stomp("stomp"): Places = on(61_613), Restart;
    /// Where STOMP clients connect with TLS, usually on port 61614. Needs `tls-certificate` and `tls-key`.
    stomps("stomps"): Places = off(), Restart;
    /// The user that STOMP clients without a `login` header are, from this host only if it is one of
    /// `loopback-users`. `off`: they are refused.
    stomp_no_auth_user("stomp-no-auth-user"): Option<String> = Some("guest".into()), Restart;
    /// The user that MQTT clients without credentials are, from this host only if it is one of
    /// `loopback-users`. `off`: they are refused.
    mqtt_no_auth_user("mqtt-no-auth-user"): Option<String> = Some("guest".into()), Restart;
    /// Longest keep-alive of MQTT clients: those of version 5 that ask for more, or for none, get this one
    /// from the broker. `off`: any.
    mqtt_keep_alive_max("mqtt-keep-alive-max"): Option<Span> = None, Restart,
        at_least(Some(SECOND)).or(None);
    /// Messages with QoS 1 and 2 that wait for an MQTT session at most, whether or not its client is there:
    /// for sessions that begin from then on. They wait on the disk. `off`: any number.
    mqtt_session_messages_max("mqtt-session-messages-max"): Option<u64> = None, Restart,
        at_least(Some(1)).or(None);
    /// Bytes of these messages. `off`: any number.
    mqtt_session_bytes_max("mqtt-session-bytes-max"): Option<ByteCount> = None, Restart,
        at_least(Some(kib(1))).or(None);
    /// What becomes of one more: `drop-oldest` makes room for it; with `refuse` its publisher gets `0x97`,
    /// also where others took it.
    mqtt_session_overflow("mqtt-session-overflow"): SessionOverflow = SessionOverflow::DropOldest,
        Restart;
    /// How often the broker tells MQTT clients about itself, in topics below `$SYS/broker`. `off`: never.
    mqtt_sys_interval("mqtt-sys-interval"): Option<Span> = Some(Span(Duration::from_secs(10))), Restart,
        at_least(Some(SECOND)).or(None);
    /// Where clients of any protocol connect by WebSocket: browsers. The subprotocol (`mqtt`, `v12.stomp`,
    /// `amqp`, `nats`) or else the path (`/mqtt`, `/stomp`, `/amqp`, `/nats`) says what is spoken inside; at
    /// `/` and `/ws` the first bytes do. Pages of other sites are refused: see `ws-origins`.
    ws("ws"): Places = off(), Restart;
    /// The same with TLS. Needs `tls-certificate` and `tls-key`.
    wss("wss"): Places = off(), Restart;
    /// Origins, such as `https://app.example.com`, whose web pages may connect by WebSocket, or `*` for all.
    /// Pages of the address that they connect to may without it. The broker is addressed by an IP address,
    /// as `localhost`, or by one of `http-hosts`.
    ws_origins("ws-origins"): Vec<String> = Vec::new(), Restart;
    /// One port for clients of all protocols, with and without WebSocket and, where there is a certificate,
    /// TLS: the first bytes say which. A NATS client waits to be greeted: see `nats-silence`.
    any("any"): Places = off(), Restart;
    /// How long a client of `any`, or of a WebSocket at `/` or `/ws`, is silent before it is greeted as a
    /// NATS client. `off`: none is.
    nats_silence("nats-silence"): Option<Span> = Some(Span(Duration::from_millis(100))), Restart,
        between(Some(MILLISECOND), Some(SECOND)).or(None);
    /// Who may connect to Unix sockets, as `chmod` has it: with `600` the user that the broker runs as alone,
    /// with `660` its group too, with `666` everybody on this host.
    unix_socket_mode("unix-socket-mode"): FileMode = FileMode(0o600), Restart;
    /// From where proxies connect that say first, by the PROXY protocol (version 1 or 2), for whom they do:
    /// networks such as `10.1.0.0/16`. Clients have to connect from there so, on every port for clients, and
    /// their addresses are those that are said. Clients of a proxy that does not know are not of this host.
    proxy_protocol_from("proxy-protocol-from"): Networks = Networks::default(), Restart;
    /// The certificate chain shown to TLS clients, PEM. Read again when the file changes; adding or removing
    /// the setting needs a restart.
    tls_certificate("tls-certificate"): Option<PathBuf> = None, Now;
    /// The private key of the certificate, PEM.
    tls_key("tls-key"): Option<PathBuf> = None, Now;
    /// Certificates of the authorities that sign client certificates, PEM. With them, clients may show a
    /// certificate and log in by it (SASL EXTERNAL), as the user that `tls-client-user` takes from it.
    tls_client_authorities("tls-client-authorities"): Option<PathBuf> = None, Now;
    /// Whether clients must show a certificate when they begin TLS: `optional`, `required`. `required` needs
    /// `tls-client-authorities`, and makes clients of `nats` begin TLS. `amqp`, `mqtt`, `stomp` and `ws` have
    /// no TLS: set them to `off`, or make them reachable for trusted clients alone.
    tls_client_verify("tls-client-verify"): Encryption = Encryption::Optional, Restart;
    /// What in a client's certificate is the user's name: `common-name` and `distinguished-name` (as in
    /// `CN=ada,OU=dev,O=Example`, RFC 4514) of its subject, or the first `email`, `dns` or `uri` of its
    /// alternative names. A certificate without it logs nobody in. `none`: certificates are checked, and
    /// users log in by passwords.
    tls_client_user("tls-client-user"): CertificateUser = CertificateUser::CommonName, Now;
    /// Revoked client certificates: the list (CRL) of each authority in their chains, PEM, one after the
    /// other. Read again when the file changes. Certificates on it are refused, and so are those of an
    /// authority without a list, and all if the list has expired. Open connections of theirs are ended.
    tls_client_revocations("tls-client-revocations"): Option<PathBuf> = None, Now;
    /// Where health, metrics and the administration API are served. This host only by default: it is plain
    /// HTTP, and passwords sent to it from elsewhere can be read on the way.
    http("http"): Option<SocketAddr> = Some(at([127, 0, 0, 1], 15672)), Restart;

    /// Definitions that are taken over at each start, a file as `angarium definitions export` or RabbitMQ
    /// writes it. What is there already stays; what cannot be taken over is logged with the reason. Without
    /// the file, or where it is none, the broker does not start.
    definitions_file("definitions-file"): Option<PathBuf> = None, Restart;
    /// Names by which HTTP requests may address the broker, besides IP addresses, `localhost` and the
    /// machine's own name, or `*` for any. Requests to other names are refused: a web page whose name is made
    /// to lead here (DNS rebinding) could else read what this broker says. `/health` and `/ready` answer to
    /// any name.
    http_hosts("http-hosts"): Vec<String> = Vec::new(), Restart;
    /// Origins, such as `https://mq.example.com`, whose web pages may use HTTP here: that of a proxy in front
    /// of it. Requests of pages from elsewhere are refused.
    http_origins("http-origins"): Vec<String> = Vec::new(), Restart;
    /// Who sees `/metrics`. `totals`: everybody sees what all queues have together, and administrators and
    /// `metrics-users` see each queue with its name. `open`: everybody sees all. `users`: only administrators
    /// and `metrics-users` see any.
    metrics_access("metrics-access"): MetricsAccess = MetricsAccess::Totals, Restart;
    /// Users that may see all of `/metrics` without being administrators.
    metrics_users("metrics-users"): Vec<String> = Vec::new(), Restart;
    /// Where NATS's monitoring is served as nats-server does on port 8222: `/varz`, `/connz`, `/subsz`,
    /// `/healthz`. `metrics-access` says who sees totals and names.
    nats_monitoring("nats-monitoring"): Option<SocketAddr> = None, Restart;

    /// Users that can log in from this host only.
    loopback_users("loopback-users"): Vec<String> = vec!["guest".into()], Restart;
    /// Connections at once; further ones are refused. If the limit of open files is lower, connections get
    /// what the journal leaves of it.
    connections_max("connections-max"): u64 = 20_000, Now, between(1, 4_000_000);
    /// Connections that clients begin per second, all together; further ones are refused. `off`: as many as
    /// come.
    connections_per_second("connections-per-second"): Option<u64> = None, Now, COUNT;
    /// How long a client may take to complete the TLS handshake.
    handshake_timeout("handshake-timeout"): Span = seconds(10), Now, between(SECOND, DAY);
    /// How long a NATS client may take to log in (nats-server: `timeout` of `authorization`).
    nats_login_timeout("nats-login-timeout"): Span = seconds(10), Restart, between(MOMENT, DAY);
    /// How long a NATS client may be silent before it gets PING.
    nats_ping_interval("nats-ping-interval"): Span = seconds(120), Restart, between(MOMENT, DAY);
    /// PINGs that a NATS client may leave unanswered; instead of a further one it is disconnected
    /// (nats-server: `ping_max`).
    nats_pings_out_max("nats-pings-out-max"): u64 = 2, Restart, between(1, 1_000);
    /// Password checks at once, of all shards together, each on its own thread with 19 MiB of memory while it
    /// runs.
    password_checks_max("password-checks-max"): u64 = 2, Restart, between(1, 64);

    /// What clients may make the broker hold in memory, all together: unfinished messages, unsent output,
    /// open transactions, unsettled deliveries, subscriptions, definitions with their arguments, messages of
    /// queues. A connection may hold as much as is free, its user three times that: those that hold most
    /// wait or are refused first. `auto`: half of the memory of the machine, or of what the broker's control
    /// group or a limit of the process (`ulimit -v`) leaves it.
    memory_max("memory-max"): MemoryLimit = MemoryLimit(None), Restart;
    /// What the connections and definitions of one user may hold of that, whatever is free.
    user_memory_max("user-memory-max"): Option<ByteCount> = None, Restart, MEMORY;
    /// What one connection may hold of it, whatever is free.
    connection_memory_max("connection-memory-max"): Option<ByteCount> = None, Restart, MEMORY;
    /// How long a client may take nothing of what is sent to it, whether or not it sends heartbeats. Then it
    /// is disconnected, unless it is a NATS client whose slow-consumer policy keeps it. For AMQP that
    /// includes what the machine holds for it.
    send_timeout("send-timeout"): Option<Span> = Some(seconds(30)), Restart, at_least(Some(SECOND)).or(None);

    /// Largest message body.
    body_bytes_max("body-bytes-max"): ByteCount = mib(128), Restart, at_least(kib(1));
    /// Largest payload of a NATS client, its headers included.
    nats_payload_bytes_max("nats-payload-bytes-max"): ByteCount = mib(1), Restart,
        between(ByteCount(1), mib(64));
    /// Longest control line of a NATS client, without its verb (nats-server: `max_control_line`).
    nats_control_line_bytes_max("nats-control-line-bytes-max"): ByteCount = kib(4), Restart,
        between(ByteCount(256), kib(64));
    /// Bytes of message bodies that all queues together keep in memory; further bodies stay on disk only. A
    /// quarter of `memory-max` at most.
    resident_bytes_max("resident-bytes-max"): ByteCount = mib(128), Restart, at_least(mib(1));
    /// Bytes of message bodies that one queue keeps in memory; further bodies stay on disk only.
    queue_resident_bytes_max("queue-resident-bytes-max"): ByteCount = mib(32), Restart, at_least(kib(64));
    /// Bytes per second that one queue delivers of its backlog, besides new messages, while the broker
    /// serves other traffic; at least 1 MiB. A message counts for its body and 256 bytes. Without other
    /// traffic there is no limit. More drains a backlog sooner and delays other traffic more. Publishers
    /// that outrun consumers, and floods, are read at about half this rate meanwhile. `auto`: 16 MiB per
    /// processor, at most 128 MiB.
    backlog_bytes_per_second("backlog-bytes-per-second"): BacklogRate = BacklogRate(None), Restart;
    /// Virtual hosts.
    vhosts_max("vhosts-max"): u64 = 1_000, Restart, between(1, 1_000_000);
    /// Queues per virtual host.
    queues_max("queues-max"): u64 = 100_000, Restart, between(1, 100_000_000);
    /// Exchanges per virtual host.
    exchanges_max("exchanges-max"): u64 = 100_000, Restart, between(8, 100_000_000);
    /// Bindings per virtual host.
    bindings_max("bindings-max"): u64 = 10_000_000, Restart, between(1, 1_000_000_000);
    /// Consumers per channel.
    consumers_max("consumers-max"): u64 = 10_000, Restart, between(1, 1_000_000);
    /// Subscriptions of one connection, unless its user's quota says otherwise. Queues do not count.
    subscriptions_max("subscriptions-max"): u64 = 1_000_000, Restart, between(1, 100_000_000);
    /// Words of a pattern that is subscribed to. The default is what a subject's 4,096 bytes hold, as in
    /// nats-server. Topic bindings hold 128 words, as in RabbitMQ.
    pattern_words_max("pattern-words-max"): u64 = 2_048, Restart, between(1, 2_048);
    /// How many index nodes a message may be compared with because of the patterns of one user's
    /// subscriptions in a virtual host, or of one topic exchange's bindings. Only patterns with many
    /// wildcards count, and only by where these are. A further one is refused. A processor compares about ten
    /// thousand per millisecond.
    pattern_states_max("pattern-states-max"): u64 = 8_192, Restart, between(128, 10_000_000);
    /// Unsent bytes from which on a client is a slow consumer.
    direct_bytes_max("direct-bytes-max"): ByteCount = mib(64), Restart, at_least(DIRECT_BYTES_LEAST);
    /// What happens to direct messages of a slow consumer. `spool`: from 1 MiB of unsent bytes on they wait
    /// on the disk. `drop-oldest`, `drop-new`: it misses the oldest or the new ones, and learns how many.
    /// `conflate`: it gets the last message of each subject, and learns how many came before that.
    /// `disconnect`: it is disconnected. A user's quota and the client itself can choose another policy.
    slow_consumer_policy("slow-consumer-policy"): SlowConsumerPolicy =
        SlowConsumerPolicy::Disconnect, Restart;
    /// `slow-consumer-policy` for clients of `nats-tls`, if it differs.
    nats_tls_slow_consumer_policy("nats-tls-slow-consumer-policy"): Option<SlowConsumerPolicy> =
        None, Restart;
    /// Disk space for direct messages that wait for slow consumers (`spool`); each is stored once per shard.
    /// Above it the slowest consumers miss their oldest messages, on shards that use more than their part;
    /// each shard may use 2 MiB more, or two larger messages, before that, and up to 32 MiB of memory. If
    /// persistent messages find no space on the disk, everything that waits there is missed, and for a
    /// minute no more waits than fits memory. If the disk is too slow, messages are missed while 32 MiB of a
    /// shard are unwritten. 0: none wait, and `spool` acts as `drop-new`.
    spool_bytes_max("spool-bytes-max"): ByteCount = mib(1024), Restart, at_least(mib(4)).or(ByteCount(0));
    /// Connections of one user, unless its quota says otherwise; further ones are refused.
    user_connections_max("user-connections-max"): Option<u64> = None, Restart, COUNT;
    /// Subscriptions of all connections of one user, unless its quota says otherwise. Queues do not count.
    user_subscriptions_max("user-subscriptions-max"): Option<u64> = None, Restart, COUNT;
    /// Sessions, each of which lives on for its expiry while no connection has it; one more is refused.
    sessions_max("sessions-max"): u64 = 1_000_000, Restart, between(1, 100_000_000);
    /// Sessions of one user.
    user_sessions_max("user-sessions-max"): Option<u64> = None, Restart, COUNT;
    /// Longest time that a session lives on without a connection, whatever its client asks for.
    session_expiry_max("session-expiry-max"): Option<Span> = None, Restart,
        between(Some(SECOND), Some(YEAR)).or(None);
    /// Messages per second that all connections of one user publish, unless its quota says otherwise. A
    /// faster publisher is read from more slowly, and loses nothing.
    user_messages_per_second("user-messages-per-second"): Option<u64> = None, Restart, COUNT;
    /// Bytes per second that all connections of one user send, unless its quota says otherwise.
    user_bytes_per_second("user-bytes-per-second"): Option<ByteCount> = None, Restart, BYTES;
    /// Messages per second that one connection publishes, unless its user's quota says otherwise.
    connection_messages_per_second("connection-messages-per-second"): Option<u64> = None, Restart, COUNT;
    /// Bytes per second that one connection sends, unless its user's quota says otherwise.
    connection_bytes_per_second("connection-bytes-per-second"): Option<ByteCount> = None, Restart, BYTES;
    /// Unsettled deliveries per channel if the client sets no prefetch.
    unsettled_max("unsettled-max"): u64 = 1_000_000, Restart, between(1, u32::MAX as u64);
    /// Transactions that one connection has open, those of AMQP 0-9-1's channels not counted.
    transactions_max("transactions-max"): u64 = 1_000, Restart, between(1, 1_000_000);
    /// How long a transaction may be open after its first publish or settle. Then it is rolled back, and its
    /// commit refused. `off`: any time.
    transaction_timeout("transaction-timeout"): Option<Span> = None, Restart,
        between(Some(SECOND), Some(YEAR)).or(None);
    /// Publishes and settled deliveries in one transaction.
    transaction_operations_max("transaction-operations-max"): u64 = 100_000, Restart, between(1, 100_000_000);
    /// Message bodies that one transaction holds until it is committed.
    transaction_bytes_max("transaction-bytes-max"): ByteCount = mib(128), Restart, at_least(kib(1));
    /// How long a delivery may stay unsettled before its channel is closed and all it holds goes back to its
    /// queue, for queues and consumers without a time of their own.
    settle_timeout("settle-timeout"): Span = seconds(30 * 60), Restart, between(SECOND, YEAR);
    /// Longest time a message may be delayed.
    delay_max("delay-max"): Span = YEAR, Restart;
    /// Delayed messages at once; each takes some 80 bytes of memory besides its body, and all together an
    /// eighth of `memory-max` at most. One user may have three quarters of them.
    delayed_messages("delayed-messages"): u64 = 4_000_000, Restart;
    /// Retained messages at once; one more is refused. Each takes some 200 bytes of memory besides its topic,
    /// and all together a quarter of `memory-max` at most. 0: messages are not retained.
    retained_messages_max("retained-messages-max"): u64 = 1_000_000, Restart;
    /// Bytes of all retained messages, on the disk; memory has those for which it has room.
    retained_bytes_max("retained-bytes-max"): ByteCount = mib(1024), Restart;
    /// Requeues after which a message is dead-lettered, for queues without a limit of their own. `off`: 20
    /// for quorum queues, none for classic ones.
    delivery_limit("delivery-limit"): Option<u64> = None, Restart,
        between(Some(1), Some(u32::MAX as u64)).or(None);
    /// Size of a journal segment: the unit in which disk space is taken and given back.
    segment_bytes("segment-bytes"): ByteCount = mib(64), Restart, between(mib(1), mib(1024));
    /// Bytes written to the journal between two checkpoints. More means a slower start.
    checkpoint_bytes("checkpoint-bytes"): ByteCount = mib(128), Restart, at_least(mib(1));

    /// How long a stop waits for clients to answer and for the disk.
    drain_timeout("drain-timeout"): Span = seconds(10), Now, between(seconds(0), DAY);
    /// How long a stop lets NATS clients stay after INFO with `ldm`, to answer requests and to connect
    /// elsewhere; it ends sooner if all have gone. A client that does not read has until `drain-timeout`,
    /// which bounds the whole stop.
    nats_lame_duck("nats-lame-duck"): Span = Span(Duration::from_millis(500)), Restart,
        between(seconds(0), DAY);
    /// The least severe level that is logged, to standard error.
    log("log"): LogLevel = LogLevel::Info, Now;
    /// How a log line is written. With `json` nothing is written to standard output.
    log_format("log-format"): LogFormat = LogFormat::Text, Restart;
}

impl Settings {
    /// Whether there is what TLS needs.
    pub fn has_certificate(&self) -> bool {
        self.tls_certificate.is_some() && self.tls_key.is_some()
    }
}
