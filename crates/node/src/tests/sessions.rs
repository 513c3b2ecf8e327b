//! Named sessions, claimed by in-process clients of any shard.

use super::host::Host;
use crate::InProcessEvent;
use angarium_engine::{
    ClaimSession, ClaimedSession, ConnectionId, RefusalKind, Reply, Request, SessionExpiry,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// A broker, and its in-process clients by name.
pub(super) struct Script {
    pub(super) host: Host,
    clients: BTreeMap<String, Client>,
    /// Events of all clients in the order in which they got them.
    log: Vec<String>,
}

struct Client {
    shard: usize,
    id: ConnectionId,
}

fn text(event: InProcessEvent) -> String {
    match event {
        InProcessEvent::Reply(Ok(Reply::Session(claimed))) => {
            let ClaimedSession { name, is_resumed, state, .. } = *claimed;
            let how = if is_resumed { "resumed" } else { "new" };
            format!("{how} {name} {}", String::from_utf8_lossy(&state)).trim_end().to_owned()
        }
        InProcessEvent::Reply(Ok(Reply::Queue { name, consumers, .. })) => {
            format!("queue {name} {consumers}")
        }
        InProcessEvent::Reply(Ok(Reply::Created { name })) => format!("created {name}"),
        InProcessEvent::Reply(Ok(Reply::Subscription(found))) => {
            format!("{} {} {}", found.queue, found.source, found.keys.join(","))
        }
        InProcessEvent::Reply(Ok(_)) => "ok".to_owned(),
        InProcessEvent::Reply(Err(refusal)) => format!("{:?}", refusal.kind),
        InProcessEvent::SessionLost { session, why } => format!("lost {session} {why:?}"),
        InProcessEvent::Closed(_) => "closed".to_owned(),
    }
}

fn request(words: &[&str]) -> Request {
    let name = words[1].to_owned();
    let value = |key| words.iter().find_map(|word| word.strip_prefix(key));
    let expiry = value("expiry=").map(|millis| match millis {
        "-" => SessionExpiry::Never,
        millis => SessionExpiry::After(Duration::from_millis(millis.parse().unwrap())),
    });
    match words[0] {
        "claim" => Request::ClaimSession(ClaimSession {
            name,
            fresh: words.contains(&"fresh"),
            expiry: expiry.unwrap_or_default(),
            recorded: words.contains(&"recorded"),
            state: value("state=").map(|state| state.to_owned().into()),
            queue: None,
        }),
        "detach" => Request::DetachSession { name, expiry },
        "end" => Request::EndSession { name },
        _ => super::named_subscriptions::request(words),
    }
}

impl Script {
    pub(super) fn new(shards: usize) -> Script {
        Script { host: Host::new(shards), clients: BTreeMap::new(), log: Vec::new() }
    }

    /// Plays a script: `NAME@SHARD` connects, `NAME REQUEST` requests, `NAME gone` disconnects, `hold` and
    /// `work` stop and start the disk, `pass MILLIS`, `crash`, `close`; `> EVENTS`, parted by commas, is what
    /// clients got since, in order.
    #[track_caller]
    pub(super) fn play(&mut self, script: &str) {
        for line in script.lines().map(str::trim) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [">", ..] => {
                    let got = std::mem::take(&mut self.log).join(", ");
                    assert_eq!(got, line[1..].trim(), "{line}");
                }
                _ => {
                    assert_eq!(self.log, [""; 0], "before {line}");
                    self.act(&words);
                }
            }
        }
        assert_eq!(self.log, [""; 0], "at the end");
    }

    fn act(&mut self, words: &[&str]) {
        let now = self.host.now;
        match *words {
            ["hold"] => self.host.holds_jobs = true,
            ["work"] => self.host.holds_jobs = false,
            ["pass", millis] => self.host.pass(millis.parse().unwrap()),
            ["crash"] => {
                self.clients.clear();
                self.host.crash();
            }
            ["close"] => {
                self.clients.clear();
                self.host.nodes.iter_mut().for_each(|node| node.shutdown(now, "closed"));
                self.host.close();
            }
            [connect] => {
                let (name, shard) = connect.split_once('@').unwrap();
                let shard = shard.parse::<usize>().unwrap() % self.host.nodes.len();
                let id = self.host.nodes[shard].connect_in_process("user", "/").unwrap();
                self.clients.insert(name.to_owned(), Client { shard, id });
            }
            [name, "gone"] => {
                let Client { shard, id } = self.clients.remove(name).unwrap();
                self.host.nodes[shard].disconnect_in_process(now, id);
            }
            [name, ..] => {
                let Client { shard, id } = self.clients[name];
                self.host.nodes[shard].request_in_process(now, id, request(&words[1..]));
            }
            [] => {}
        }
        while self.host.turn() {
            self.take_events();
        }
        self.take_events();
    }

    fn take_events(&mut self) {
        for (shard, node) in self.host.nodes.iter_mut().enumerate() {
            while let Some((id, event)) = node.next_in_process_event() {
                let is_its = |client: &Client| (client.shard, client.id) == (shard, id);
                let name = self.clients.iter().find(|(_, client)| is_its(client));
                let name = name.map_or("?", |(name, _)| name);
                self.log.push(format!("{name} {}", text(event)));
            }
        }
    }

    /// Sessions at home: their names, and whether each is held.
    fn sessions(&mut self) -> Vec<(String, bool)> {
        let listed = self.host.node().engine().list_sessions();
        listed.map(|it| (it.name.to_owned(), it.detached_at.is_none())).collect()
    }
}

/// Plays a script with every number of shards.
#[track_caller]
pub(super) fn check(script: &str) {
    for shards in [1, 2, 3, 5] {
        Script::new(shards).play(script);
    }
}

#[test]
fn sessions_are_found_from_any_shard() {
    check(
        "c@1
         d@2
         c claim s expiry=-
         > c new s
         c detach s
         > c ok
         d claim s expiry=- state=1
         > d resumed s
         d gone
         c claim s
         > c resumed s 1
         c end s
         > c ok
         c detach s
         > c NotFound",
    );
}

#[test]
fn the_holder_is_told_before_the_claim_is_answered() {
    for kind in ["", "recorded", "fresh", "recorded fresh"] {
        let how = if kind.contains("fresh") { "new" } else { "resumed" };
        // Of several events of one turn, those on lower shards come first here.
        for (c, d) in [(2, 1), (1, 2), (0, 1), (1, 0), (2, 0), (1, 1)] {
            check(&format!(
                "c@{c}
                 d@{d}
                 c claim s expiry=- {kind}
                 > c new s
                 d claim s expiry=- {kind}
                 > c lost s TakenOver, d {how} s
                 c claim s expiry=- {kind}
                 > d lost s TakenOver, c {how} s
                 d gone
                 c claim s
                 > c resumed s"
            ));
        }
    }
}

#[test]
fn a_session_is_detached_once_when_its_holder_goes() {
    for shards in [1, 3] {
        let mut script = Script::new(shards);
        script.play("c@1\nc claim s expiry=1000\n> c new s\nc claim t\n> c new t\nc gone");
        assert_eq!(script.sessions(), [("s".to_owned(), false)]);
        script.play("d@2\nd claim s expiry=1000\n> d resumed s\npass 5000");
        assert_eq!(script.sessions(), [("s".to_owned(), true)]);
        // One that goes after it was taken over from detaches nothing.
        script.play("c@1\nc claim s expiry=1000\n> d lost s TakenOver, c resumed s\nd gone");
        assert_eq!(script.sessions(), [("s".to_owned(), true)]);
        script.play("c gone\npass 1000");
        assert_eq!(script.sessions(), []);
    }
}

#[test]
fn a_holder_that_goes_while_it_is_taken_over_from_is_no_matter() {
    for shards in [2, 3] {
        let mut script = Script::new(shards);
        script.play("c@1\nd@2\nc claim s expiry=-\n> c new s");
        let now = script.host.now;
        for (name, is_claim) in [("c", false), ("d", true)] {
            let Client { shard, id } = script.clients[name];
            let node = &mut script.host.nodes[shard];
            match is_claim {
                true => node.request_in_process(now, id, request(&["claim", "s", "expiry=-"])),
                false => node.disconnect_in_process(now, id),
            }
        }
        script.clients.remove("c");
        script.act(&[]);
        script.play("> d resumed s");
        assert_eq!(script.sessions(), [("s".to_owned(), true)]);
    }
}

#[test]
fn a_recorded_claim_is_answered_once_it_is_flushed_and_survives_a_crash() {
    check(
        "c@1
         d@2
         hold
         c claim s expiry=- recorded state=1
         d claim t expiry=-
         > d new t
         crash
         work
         c@1
         c claim s expiry=-
         > c new s
         c claim s expiry=- recorded state=2
         > c resumed s
         crash
         d@2
         d claim s expiry=- recorded
         > d resumed s 2
         d claim t
         > d new t
         close
         c@1
         c claim s
         > c resumed s 2",
    );
}

#[test]
fn a_claim_that_is_taken_over_before_it_is_answered_is_refused() {
    check(
        "c@1
         d@2
         hold
         c claim s expiry=- recorded
         d claim s expiry=- recorded
         > c ResourceLocked
         work
         > d resumed s
         c claim s
         > d lost s TakenOver, c resumed s",
    );
}

#[test]
fn sessions_end_with_their_user() {
    for shards in [1, 3] {
        let mut script = Script::new(shards);
        script.play("c@1\nc claim s expiry=- recorded\n> c new s");
        assert_eq!(script.host.operate("/", Request::EndSession { name: "s".to_owned() }), Ok(()));
        script.take_events();
        script.play("> c lost s Ended\nc claim s expiry=- recorded\n> c new s");
        let unknown = Request::EndSession { name: "t".to_owned() };
        assert_eq!(script.host.operate("/", unknown), Err(RefusalKind::NotFound));
        script.host.operate("/", Request::DeleteUser { name: "user".to_owned() }).unwrap();
        script.take_events();
        script.play("> c closed");
        assert_eq!(script.sessions(), []);
        // The user is made anew at the start.
        script.play("crash\nc@1\nc claim s\n> c new s");
    }
}
