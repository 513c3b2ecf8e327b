//! What arguments mean, and commands against a broker in this process.

use super::amqp::{Client, Event, Target};
use super::http_client::{Broker, escaped, read_answer};
use super::*;
use crate::http::Mailboxes;
use crate::http::{self, Endpoints};
use crate::reactor::{self, Mailbox};
use crate::settings::{Settings, Sources};
use angarium_journal::{Disk, Storage};
use angarium_protocol::amqp091::codec::Properties;
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

mod connection_rate;
mod refused;
mod sessions;
mod subjects;
mod users;

/// A broker on free ports of this host; ends with its value.
pub(super) struct Running {
    pub(super) mailbox: Mailbox,
    pub(super) settings: Settings,
    pub(super) shards: Option<reactor::Running>,
    amqp: String,
    pub(super) nats: String,
    pub(super) http: String,
    pub(super) nats_monitoring: String,
    pub(super) folder: tempfile::TempDir,
}

impl Running {
    pub(super) fn start() -> Running {
        Running::start_in(tempfile::tempdir().unwrap())
    }

    /// One with these settings besides.
    pub(super) fn start_with(further: &[(&str, &str)]) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path().join("journal")).unwrap();
        Running::start_on_with(Arc::new(disk), folder, further)
    }

    fn start_in(folder: tempfile::TempDir) -> Running {
        let disk = Disk::open(folder.path().join("journal")).unwrap();
        Running::start_on(Arc::new(disk), folder)
    }

    fn start_on(storage: Arc<dyn Storage>, folder: tempfile::TempDir) -> Running {
        Running::start_on_with(storage, folder, &[])
    }

    fn start_on_with(
        storage: Arc<dyn Storage>,
        folder: tempfile::TempDir,
        further: &[(&str, &str)],
    ) -> Running {
        let data = folder.path().display().to_string();
        let amqp = format!("127.0.0.1:0,unix:{data}/amqp.sock");
        let flags = [
            ("amqp", amqp.as_str()),
            ("nats", "127.0.0.1:0"),
            ("stomp", "127.0.0.1:0"),
            ("mqtt", "127.0.0.1:0"),
            ("segment-bytes", "1MiB"),
            ("connections-max", "3"),
            ("data", &data),
        ];
        let flags = flags.iter().chain(further);
        let flags = flags.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let sources = Sources { flags: flags.collect(), ..Sources::default() };
        let settings: Settings = sources.read().unwrap();
        let http_settings = settings.clone();
        let broker =
            reactor::start(serve::start(settings, storage, None, [0; 32]).unwrap()).unwrap();
        let mailboxes = Mailboxes::new(broker.mailboxes.clone());
        let port = |name: &str| {
            let mut shown = broker.shown.iter();
            shown.find_map(|port| port.strip_prefix(name)).unwrap().to_owned()
        };
        let (amqp, nats) = (port("amqp on "), port("nats on "));
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        let http = tcp.local_addr().unwrap().to_string();
        let socket = folder.path().join("admin.sock");
        // An earlier broker may have been in the same folder.
        let _ = std::fs::remove_file(&socket);
        let unix = UnixListener::bind(socket).unwrap();
        unix.set_nonblocking(true).unwrap();
        let monitoring = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        monitoring.set_nonblocking(true).unwrap();
        let nats_monitoring = monitoring.local_addr().unwrap().to_string();
        let endpoints = Endpoints {
            tcp: Some(tcp),
            nats_monitoring: Some(monitoring),
            unix: Some(unix),
            connections_max: 8,
        };
        http::start(endpoints, mailboxes.clone(), http_settings.clone()).unwrap();
        let mailbox = mailboxes.home().clone();
        let (settings, shards) = (http_settings, Some(broker));
        Running { mailbox, settings, shards, amqp, nats, http, nats_monitoring, folder }
    }

    fn uri(&self) -> String {
        format!("amqp://guest:guest@{}/", self.amqp)
    }

    pub(super) fn client(&self) -> Client {
        Client::connect(&target(self.uri())).unwrap()
    }

    /// One that comes by the Unix socket.
    fn neighbour(&self) -> Client {
        let socket = Some(self.folder.path().join("amqp.sock"));
        Client::connect(&Target { socket, ..target(self.uri()) }).unwrap()
    }

    pub(super) fn broker(&self, password: &str) -> Broker {
        Broker::Address {
            address: self.http.clone(),
            user: "guest".into(),
            password: password.into(),
        }
    }

    fn stop(&mut self) {
        self.mailbox.tell(|shard| shard.drain()).unwrap();
        self.shards.take().unwrap().wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.shards.is_some() {
            self.stop();
        }
    }
}

fn target(uri: String) -> Target {
    Target { uri, password_file: None, socket: None, authorities: None }
}

fn arguments(line: &str) -> Vec<OsString> {
    with_command(line.split(' ').map(OsString::from))
}

fn call_of(line: &str) -> Result<administer::Call, String> {
    let matches = command_line().try_get_matches_from(arguments(line)).unwrap();
    let (command, matches) = matches.subcommand().unwrap();
    let (verb, matches) = matches.subcommand().unwrap_or(("", matches));
    administer::call(command, verb, matches, || Ok("from-stdin".into()))
}

/// Has the broker carry out what this command asks.
fn ask(broker: &Broker, line: &str) -> Result<Value, String> {
    let call = call_of(line).unwrap();
    broker.ask(call.method, &call.path, call.body.as_ref())
}

#[track_caller]
fn asks(line: &str, method: &str, path: &str, body: Option<Value>) {
    let call = call_of(line).unwrap();
    assert_eq!((call.method, call.path.as_str(), call.body), (method, path, body), "{line}");
}

fn publish(running: &Running, queue_and_messages: &str) -> Result<(), String> {
    let line = format!("angarium publish --uri {} --queue {queue_and_messages}", running.uri());
    let matches = command_line().try_get_matches_from(arguments(&line)).unwrap();
    publish::run(&parsed(matches.subcommand().unwrap().1).unwrap())
}

#[test]
fn the_command_line_is_consistent() {
    command_line().debug_assert();
}

#[test]
fn without_a_command_it_serves() {
    for (line, second) in [
        ("angarium", "serve"),
        ("angarium --amqp off", "serve"),
        ("angarium serve --data x", "serve"),
        ("angarium queue list", "queue"),
        ("angarium --help", "--help"),
        ("angarium help", "help"),
    ] {
        assert_eq!(arguments(line)[1], *second, "{line}");
    }
}

#[test]
fn commands_become_requests() {
    asks("angarium status", "GET", "/v1/overview", None);
    asks("angarium queue list --vhost /", "GET", "/v1/queues?vhost=%2F", None);
    asks("angarium queue purge a/b", "DELETE", "/v1/queues/%2F/a%2Fb/messages", None);
    asks("angarium queue delete q --if-empty", "DELETE", "/v1/queues/%2F/q?if_empty=true", None);
    asks("angarium vhost add v", "PUT", "/v1/vhosts/v", None);
    asks("angarium connection close 7", "DELETE", "/v1/connections/7", None);
    asks(
        "angarium user quota u --slow-consumer-policy spool --connections 3 --bytes-per-second 2MiB",
        "PUT",
        "/v1/users/u/quota",
        Some(
            json!({ "slow_consumer_policy": "spool", "connections": 3, "bytes_per_second": 2 << 20 }),
        ),
    );
    asks(
        "angarium permission subjects u --vhost v --publish a.>,b --subscribe-deny c",
        "PUT",
        "/v1/permissions/v/u/subjects",
        Some(json!({
            "publish": { "allow": ["a.>", "b"], "deny": [] },
            "subscribe": { "allow": [], "deny": ["c"] },
        })),
    );
    asks("angarium permission clear u --vhost v", "DELETE", "/v1/permissions/v/u", None);
    asks(
        "angarium queue add q --max-length 3 --transient",
        "PUT",
        "/v1/queues/%2F/q",
        Some(json!({ "max_length": 3, "durable": false })),
    );
    asks(
        "angarium user add ada --administrator",
        "PUT",
        "/v1/users/ada",
        Some(json!({ "password": "from-stdin", "administrator": true })),
    );
    asks(
        "angarium user add UABC --no-password",
        "PUT",
        "/v1/users/UABC",
        Some(json!({ "password": null, "administrator": false })),
    );
    asks(
        "angarium exchange add e --type topic",
        "PUT",
        "/v1/exchanges/%2F/e",
        Some(json!({ "type": "topic", "durable": true })),
    );
    asks(
        "angarium binding add e --queue q --key a.#",
        "PUT",
        "/v1/bindings/%2F",
        Some(json!({ "source": "e", "queue": "q", "key": "a.#", "arguments": {} })),
    );
    let error = call_of("angarium binding add e").unwrap_err();
    assert_eq!(error, "binding add needs either --queue or --exchange");
    for (flag, value) in [("max-length", "x"), ("max-length-bytes", "1.5"), ("expires", "1s")] {
        let error = call_of(&format!("angarium queue add q --{flag} {value}")).unwrap_err();
        assert_eq!(error, format!("--{flag}: expected a whole number"));
    }
}

#[test]
fn answers_are_taken_apart() {
    let ok = read_answer(200, b"{\"a\":1}").unwrap();
    assert_eq!(ok, json!({ "a": 1 }));
    let error = read_answer(404, b"{\"error\":\"no queue 'q'\"}");
    assert_eq!(error.unwrap_err(), "no queue 'q'");
    for strange in [&b""[..], b"<html>"] {
        assert!(read_answer(200, strange).is_err());
    }
    let error = read_answer(502, b"bad gateway\n").unwrap_err();
    assert_eq!(error, "the broker answers with status 502: bad gateway");
    assert_eq!(escaped("a/b ü"), "a%2Fb%20%C3%BC");
}

#[test]
fn tables_align_and_escape() {
    let rows = [json!({ "name": "a\u{1b}[31m", "ready": 5 }), json!({ "name": "", "ready": null })];
    let text = output::table(&rows, "name ready");
    assert_eq!(text, "NAME         READY\na\\u{1b}[31m  5\n''           -\n");
    let text = output::table(&[json!({ "name": r#"^ada\.'"|"# })], "name");
    assert_eq!(text, "NAME\n^ada\\.'\"|\n");
}

#[test]
fn a_message_goes_through_and_survives_a_stop() {
    let mut running = Running::start();
    let mut client = running.client();
    client.declare("hello").unwrap();
    client.close().unwrap();
    publish(&running, "hello one two").unwrap();
    running.stop();

    let folder = std::mem::replace(&mut running.folder, tempfile::tempdir().unwrap());
    let running = Running::start_in(folder);
    let mut client = running.client();
    client.put(&angarium_protocol::amqp091::codec::Method::BasicConsume {
        ticket: 0,
        queue: "hello",
        consumer_tag: "",
        no_local: false,
        no_ack: true,
        exclusive: false,
        no_wait: true,
        arguments: Default::default(),
    });
    client.flush().unwrap();
    for expected in ["one", "two"] {
        let Some(Event::Delivered(message)) = client.next(None).unwrap() else { panic!() };
        assert_eq!(message.body, expected.as_bytes());
    }
}

#[test]
fn an_unroutable_message_is_an_error() {
    let running = Running::start();
    assert!(publish(&running, "nowhere x").unwrap_err().contains("1 returned"));
}

#[test]
fn one_client_too_many_hears_so() {
    let running = Running::start();
    let connect = || TcpStream::connect(&running.nats).unwrap();
    let there: Vec<_> = (0..3).map(|_| connect()).collect();
    for mut client in &there {
        assert_eq!(client.read(&mut [0; 5]).unwrap(), 5);
    }
    let mut said = String::new();
    connect().read_to_string(&mut said).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let [info, error] = lines[..] else { panic!("{said}") };
    assert!(info.starts_with("INFO {") && info.contains("\"nonce\":\""), "{info}");
    assert_eq!(error, "-ERR 'maximum connections exceeded'");
}

#[test]
fn a_wrong_password_is_refused() {
    let running = Running::start();
    let uri = format!("amqp://guest:wrong@{}/", running.amqp);
    let error = Client::connect(&target(uri)).err().unwrap();
    assert!(error.contains("ACCESS_REFUSED") || error.contains("cannot log in"), "{error}");
    let error = running.broker("wrong").ask("GET", "/v1/queues", None).unwrap_err();
    assert_eq!(error, "wrong user name or password");
}

#[test]
fn a_password_is_read_from_a_file() {
    let running = Running::start();
    let file = running.folder.path().join("password");
    std::fs::write(&file, "secret\n").unwrap();
    let file = file.display();
    ask(&running.broker("guest"), &format!("angarium user add ada --new-password-file {file}"))
        .unwrap();
    ask(&running.broker("guest"), "angarium permission set ada").unwrap();
    let uri = format!("amqp://ada@{}/", running.amqp);
    let login = Target { password_file: Some(file.to_string().into()), ..target(uri.clone()) };
    Client::connect(&login).unwrap().close().unwrap();
    assert!(Client::connect(&target(uri)).is_err());
}

#[test]
fn so_many_clients_are_served_and_no_more() {
    let running = Running::start();
    let mut clients: Vec<Client> = (0..3).map(|_| running.client()).collect();
    assert!(Client::connect(&target(running.uri())).is_err(), "one more than three");
    clients.pop();
    // The broker learns of the end a moment later.
    let begun = std::time::Instant::now();
    while Client::connect(&target(running.uri())).is_err() {
        assert!(begun.elapsed().as_secs() < 30, "no room after one has gone");
    }
}

#[test]
fn a_request_of_so_many_bytes_is_read_and_no_more() {
    let running = Running::start();
    let broker = running.broker("guest");
    let bytes_max = http::BODY_BYTES_MAX;
    for (bytes, is_read) in [(bytes_max - 1, true), (bytes_max, true), (bytes_max + 1, false)] {
        let password = "p".repeat(bytes - json!({ "password": "" }).to_string().len());
        let body = json!({ "password": password });
        assert_eq!(body.to_string().len(), bytes);
        let answer = broker.ask("PUT", &format!("/v1/users/ada-{bytes}"), Some(&body));
        assert_eq!(answer.is_ok(), is_read, "{bytes}: {answer:?}");
    }
}

#[test]
fn a_reload_reaches_the_shard() {
    let running = Running::start();
    let (sender, receiver) = std::sync::mpsc::channel();
    let task = move |shard: &mut reactor::Shard| {
        shard.reload(Settings { clients_together: 9, ..shard.settings.clone() });
        sender.send(shard.settings.clients_together).unwrap();
    };
    running.mailbox.tell(task).unwrap();
    assert_eq!(receiver.recv().unwrap(), 9);
}

#[test]
fn draining_tells_clients_why() {
    let mut running = Running::start();
    let mut client = running.client();
    running.mailbox.tell(|shard| shard.drain()).unwrap();
    let error = client.next(None).unwrap_err();
    assert!(error.contains("320"), "{error}");
    drop(client);
    running.shards.take().unwrap().wait().unwrap();
}

#[test]
fn everything_can_be_administered() {
    let running = Running::start();
    let broker = running.broker("guest");
    let ask = |method: &str, path: &str, body: Value| {
        let body = Some(&body).filter(|body| !body.is_null());
        broker.ask(method, path, body)
    };
    ask("PUT", "/v1/vhosts/v", json!(null)).unwrap();
    ask("PUT", "/v1/users/ada", json!({ "password": "secret" })).unwrap();
    ask("PUT", "/v1/permissions/v/ada", json!({ "read": ".*" })).unwrap();
    let subjects = json!({ "subscribe": { "deny": ["secret.>"] } });
    let quota = json!({ "slow_consumer_policy": "drop-oldest", "connections": 2 });
    ask("PUT", "/v1/users/ada/quota", quota.clone()).unwrap();
    let users = ask("GET", "/v1/users", Value::Null).unwrap();
    let listed = users.as_array().unwrap().iter().find(|user| user["name"] == "ada").unwrap();
    assert_eq!(listed["quota"], quota);
    for wrong in [
        json!({ "slow_consumer_policy": "never" }),
        json!({ "conections": 1 }),
        json!({ "bytes_per_second": "x" }),
    ] {
        ask("PUT", "/v1/users/ada/quota", wrong).unwrap_err();
    }
    ask("PUT", "/v1/permissions/v/ada/subjects", subjects).unwrap();
    ask("PUT", "/v1/exchanges/v/e", json!({ "type": "topic" })).unwrap();
    ask("PUT", "/v1/queues/v/q", json!({ "max_length": 3 })).unwrap();
    ask("PUT", "/v1/bindings/v", json!({ "source": "e", "queue": "q", "key": "a.#" })).unwrap();
    let names = |path: &str, field: &str| -> Vec<String> {
        let rows = ask("GET", path, json!(null)).unwrap();
        let text = |row: &Value| row[field].as_str().unwrap().to_owned();
        rows.as_array().unwrap().iter().map(text).collect()
    };
    assert_eq!(names("/v1/vhosts", "name"), ["/", "v"]);
    assert_eq!(names("/v1/users", "name"), ["ada", "guest"]);
    assert_eq!(names("/v1/queues?vhost=v", "name"), ["q"]);
    assert_eq!(names("/v1/bindings?vhost=v", "key"), ["a.#"]);
    assert!(names("/v1/exchanges?vhost=v", "name").contains(&"e".to_owned()));
    let client = running.client();
    assert_eq!(names("/v1/connections", "user"), ["guest"]);
    client.close().unwrap();
    ask("DELETE", "/v1/queues/v/q/messages", json!(null)).unwrap();
    ask("DELETE", "/v1/vhosts/v", json!(null)).unwrap();
    assert_eq!(names("/v1/queues", "name"), Vec::<String>::new());
    let unknown = ask("PUT", "/v1/queues/%2F/q", json!({ "lenght_max": 3 })).unwrap_err();
    assert!(unknown.contains("lenght_max"), "{unknown}");
    let missing = ask("DELETE", "/v1/queues/none/q", json!(null)).unwrap_err();
    assert!(missing.contains("none"), "{missing}");
    for (path, what) in [("/v1/queues/%2F/gone", "queue"), ("/v1/exchanges/%2F/gone", "exchange")] {
        let missing = ask("DELETE", path, json!(null)).unwrap_err();
        assert_eq!(missing, format!("no {what} 'gone' in vhost '/'"));
    }
    let mut client = running.client();
    ask("PUT", "/v1/vhosts/v", json!(null)).unwrap();
    ask("DELETE", "/v1/vhosts/v", json!(null)).unwrap();
    client.declare("q").unwrap();
    let rows = ask("GET", "/v1/queues", json!(null)).unwrap();
    assert_eq!(rows[0]["state"], "running", "{rows}");
    assert_eq!(rows[0]["stopped_at"], json!(null), "{rows}");
}

#[test]
fn who_sets_a_quota_hears_what_holds_then() {
    let running = Running::start();
    let broker = running.broker("guest");
    for (line, now) in [
        (
            "--connections 2 --slow-consumer-policy spool",
            "connections 2, slow-consumer-policy spool",
        ),
        ("--bytes-per-second 1KiB", "bytes-per-second 1024"),
        ("", "all is as for everybody"),
    ] {
        let answer = ask(&broker, format!("angarium user quota guest {line}").trim()).unwrap();
        let expected = format!("done\nfor user 'guest' this holds now: {now}\n");
        assert_eq!(administer::said(&answer), expected, "{line}");
    }
}

#[test]
fn commands_about_subscriptions_become_requests() {
    asks("angarium subscription list", "GET", "/v1/subscriptions", None);
    asks(
        "angarium subscription add s --client c --source amq.topic --key a.# --key b --shared",
        "PUT",
        "/v1/subscriptions/%2F/s",
        Some(json!({
            "client": "c", "source": "amq.topic", "keys": ["a.#", "b"], "shared": true, "selector": null
        })),
    );
    asks(
        "angarium subscription delete s --client c/d",
        "DELETE",
        "/v1/subscriptions/%2F/s?client=c%2Fd",
        None,
    );
}

#[test]
fn named_subscriptions_are_added_listed_and_deleted() {
    let running = Running::start();
    let broker = running.broker("guest");
    let add = "angarium subscription add s --client c --source amq.topic --key a.#";
    assert_eq!(ask(&broker, add).unwrap()["name"], "amq.durable-c/s");
    ask(&broker, "angarium subscription add s --source amq.fanout --shared --selector size>1")
        .unwrap();
    let wrong = "angarium subscription add t --source amq.fanout --selector size>";
    let error = ask(&broker, wrong).unwrap_err();
    assert!(error.starts_with("selector: "), "{error}");
    let listed = ask(&broker, "angarium subscription list").unwrap();
    let of = |at: usize| {
        let row = &listed[at];
        json!([
            row["client"],
            row["name"],
            row["source"],
            row["keys"],
            row["shared"],
            row["selector"]
        ])
    };
    assert_eq!(of(0), json!([null, "s", "amq.fanout", [""], true, "size>1"]));
    assert_eq!(of(1), json!(["c", "s", "amq.topic", ["a.#"], false, null]));
    let queues = broker.ask("GET", "/v1/queues", None).unwrap();
    assert_eq!(queues.as_array().unwrap().len(), 2);
    ask(&broker, "angarium subscription delete s --client c").unwrap();
    let again = ask(&broker, "angarium subscription delete s --client c").unwrap_err();
    assert_eq!(again, "no durable subscription 's' of client 'c' in vhost '/'");
    assert_eq!(ask(&broker, "angarium subscription list").unwrap().as_array().unwrap().len(), 1);
}

#[test]
fn a_wildcard_of_nats_in_a_binding_is_warned_of() {
    let running = Running::start();
    let broker = running.broker("guest");
    let add = |line: &str| ask(&broker, line).unwrap();
    add("angarium queue add caught");
    for (exchange, key, meant) in [
        ("amq.topic", "orders.>", Some("'orders.#'")),
        ("amq.topic", ">", Some("'#'")),
        ("amq.topic", "orders.#", None),
        ("amq.topic", "orders.a>", None),
        ("amq.direct", "orders.>", None),
    ] {
        let answer = add(&format!("angarium binding add {exchange} --queue caught --key {key}"));
        assert_eq!(administer::said(&answer), "done\n", "{exchange} {key}");
        let warning = answer["warning"].as_str();
        assert_eq!(warning.is_some(), meant.is_some(), "{exchange} {key}: {answer}");
        let is_said = warning.zip(meant).is_none_or(|(warning, meant)| warning.contains(meant));
        assert!(is_said, "{exchange} {key}: {answer}");
    }
}

#[test]
fn only_administrators_administer_and_web_pages_never() {
    let running = Running::start();
    let body = json!({ "password": "secret" });
    running.broker("guest").ask("PUT", "/v1/users/ada", Some(&body)).unwrap();
    let ada = Broker::Address {
        address: running.http.clone(),
        user: "ada".into(),
        password: "secret".into(),
    };
    let error = ada.ask("GET", "/v1/users", None).unwrap_err();
    assert_eq!(error, "only administrators may");
}

#[test]
fn what_a_client_sent_before_it_went_is_taken_though_it_waits() {
    let running = Running::start();
    let broker = running.broker("guest");
    let quota = json!({ "messages_per_second": 1_000 });
    broker.ask("PUT", "/v1/users/guest/quota", Some(&quota)).unwrap();
    let mut publisher = running.neighbour();
    publisher.declare("q").unwrap();
    for _ in 0..1_500 {
        publisher.put_message("", "q", &Properties::default(), b"x");
    }
    publisher.flush().unwrap();
    drop(publisher);
    let messages = || broker.ask("GET", "/v1/queues", None).unwrap()[0]["ready"].as_u64();
    let until = Instant::now() + Duration::from_secs(20);
    while messages() != Some(1_500) {
        assert!(Instant::now() < until, "{:?} of 1,500", messages());
        std::thread::sleep(Duration::from_millis(20));
    }
}
