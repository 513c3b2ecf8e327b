//! An engine, its host, and what a line of a scenario means.

use super::access_requests::access_request;
use super::options::{exchange_options, queue_options};
use super::recorder::Recorder;
use crate::channel::After;
use crate::interface::limits::Limits;
use crate::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// An engine with a host in memory.
#[derive(Debug)]
pub(crate) struct TestHost {
    pub(crate) engine: Engine,
    pub(crate) fx: Recorder,
    pub(crate) now: Time,
    limits: Limits,
    channels: BTreeMap<String, ChannelId>,
    connected: BTreeSet<ConnectionId>,
    /// Those that have logged in.
    clients: BTreeSet<ConnectionId>,
    hold_loads: bool,
    /// What a host keeps across kills.
    handed_out: crate::HandedOut,
    /// A snapshot, the number of records before it, and the references at that time.
    snapshot: Option<(Vec<u8>, usize, BTreeMap<u32, i64>)>,
    /// Records that were there when it was complete: they are flushed before it.
    pub(crate) flushed: usize,
    /// One that is being taken, a part after each line, and what is to come of it.
    taking: Option<(Vec<u8>, usize, BTreeMap<u32, i64>)>,
}

fn engine(limits: &Limits) -> Engine {
    Engine::new(Options { limits: limits.clone(), ..Options::alone([7; 32], &super::CONVENTIONS) })
}

/// `key=value` and plain words of a line.
pub(super) struct Words<'a>(pub(super) Vec<&'a str>);

impl<'a> Words<'a> {
    pub(super) fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }
    pub(super) fn value(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }
    pub(super) fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T>
    where
        T::Err: std::fmt::Debug,
    {
        self.value(key).map(|value| value.parse().unwrap())
    }
    pub(super) fn millis(&self, key: &str) -> Option<Duration> {
        self.number(key).map(Duration::from_millis)
    }
}

impl TestHost {
    pub(crate) fn new() -> TestHost {
        TestHost::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> TestHost {
        TestHost {
            engine: engine(&limits),
            fx: Recorder::default(),
            now: Time(1_000_000_000),
            limits,
            channels: BTreeMap::new(),
            connected: BTreeSet::new(),
            clients: BTreeSet::new(),
            hold_loads: false,
            handed_out: crate::HandedOut::new(),
            snapshot: None,
            flushed: 0,
            taking: None,
        }
    }

    /// The channel of that name, opened at its first mention.
    pub(crate) fn channel(&mut self, name: &str) -> ChannelId {
        if let Some(channel) = self.channels.get(name) {
            return *channel;
        }
        let letter = name.chars().next().unwrap();
        let connection = ConnectionId(u32::from(letter) - u32::from('a'));
        let number = name[1..].parse().unwrap_or(1);
        if self.connected.insert(connection) {
            self.engine.connect_internal(connection, "/").unwrap();
        }
        let channel = ChannelId { connection, number };
        self.engine.open(channel);
        self.channels.insert(name.to_owned(), channel);
        self.fx.names.insert(channel, name.to_owned());
        channel
    }

    /// Has that name stand for a channel in another virtual host.
    pub(crate) fn enter_vhost(&mut self, name: &str, channel: ChannelId, vhost: &str) {
        self.engine.connect_internal(channel.connection, vhost).unwrap();
        self.engine.open(channel);
        self.connected.insert(channel.connection);
        self.channels.insert(name.to_owned(), channel);
        self.fx.names.insert(channel, name.to_owned());
    }

    pub(crate) fn set_snapshot_at_once(&mut self, messages: usize) {
        self.limits.snapshot_at_once = messages;
        self.engine = engine(&self.limits);
    }

    /// The same, of a client that has logged in; the others may do everything.
    pub(crate) fn client(&mut self, name: &str) -> ChannelId {
        self.run("a user ann hash");
        self.run("a permit ann .* .* .*");
        self.login(name, "ann")
    }

    /// The same of a user that is there.
    pub(crate) fn login(&mut self, name: &str, user: &str) -> ChannelId {
        let letter = name.chars().next().unwrap();
        let connection = ConnectionId(u32::from(letter) - u32::from('a'));
        self.engine.connect(connection, user, "/").unwrap();
        self.connected.insert(connection);
        self.clients.insert(connection);
        self.channel(name)
    }

    /// Runs a line and returns its effects.
    pub(crate) fn run(&mut self, line: &str) -> Vec<String> {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap();
        let rest = Words(words.collect());
        match first {
            "time" => self.now = self.now.plus(Duration::from_millis(rest.0[0].parse().unwrap())),
            "flush" => {
                let end = self.fx.end();
                self.engine.durable(end, &mut self.fx);
            }
            "storage" => {
                let state = match rest.0[0] {
                    "full" => StorageState::Full,
                    "exhausted" => StorageState::Exhausted,
                    "failed" => StorageState::Failed,
                    _ => StorageState::Ready,
                };
                self.engine.storage_changed(state, &mut self.fx);
            }
            "room" => {
                let connection = self.channel(rest.0[0]).connection;
                self.fx.crowded.remove(&connection);
                if rest.has("off") {
                    self.fx.full.insert(connection);
                } else if rest.has("little") {
                    self.fx.crowded.insert(connection);
                } else {
                    self.fx.full.remove(&connection);
                    self.engine.writable(connection);
                }
            }
            "name" => {
                let connection = self.channel(rest.0[0]).connection;
                self.engine.name_client(connection, rest.0[1]);
            }
            "login" => {
                self.login(rest.0[0], rest.0[1]);
            }
            "load" => self.answer_one(),
            "loads" => self.hold_loads = rest.has("hold"),
            "damage" if rest.has("pages") => self.fx.damage_pages(),
            "damage" => self.fx.damage(rest.0[0]),
            "repair" if rest.has("drop") => self.fx.give_up_damaged(),
            "repair" => self.fx.damaged.clear(),
            "snapshot" => self.take_snapshot(),
            "checkpoint" => self.begin_snapshot(),
            "restart" => self.restart(&rest),
            "relocate" => {
                let segment = rest.0[0].parse().unwrap();
                self.engine.compact_segment(segment, &mut self.fx);
            }
            _ => self.act_on(line),
        }
        self.settle_down();
        // What takes several turns is answered after them.
        if matches!(rest.0.first(), Some(&"purge" | &"delete-vhost")) {
            let channel = self.channel(first);
            self.answer_at_once(channel);
        }
        self.take_part();
        std::mem::take(&mut self.fx.lines)
    }

    /// Dispatches, expires and answers loads until nothing is left to do.
    pub(crate) fn settle_down(&mut self) {
        loop {
            if self.engine.deadline().is_some_and(|at| at <= self.now) {
                self.engine.expire(self.now, &mut self.fx);
            }
            self.engine.dispatch(self.now, &mut self.fx);
            self.engine.check_invariants(&self.fx.references);
            if !self.hold_loads && !self.fx.loads.is_empty() {
                let load = self.fx.loads.remove(0);
                let answer = self.fx.answer(&load);
                self.engine.finish_load(self.now, load.id, answer, &mut self.fx);
            } else if !self.engine.has_work() {
                break;
            }
        }
    }

    /// Answers the oldest load.
    fn answer_one(&mut self) {
        if !self.fx.loads.is_empty() {
            let load = self.fx.loads.remove(0);
            let answer = self.fx.answer(&load);
            self.engine.finish_load(self.now, load.id, answer, &mut self.fx);
        }
    }

    pub(crate) fn take_snapshot(&mut self) {
        let mut bytes = Vec::new();
        self.engine.snapshot(&mut bytes);
        self.flushed = self.fx.records.len();
        self.snapshot = Some((bytes, self.flushed, self.fx.references.clone()));
    }

    /// Begins a snapshot. If there is one that is not complete, that is forgotten.
    pub(crate) fn begin_snapshot(&mut self) {
        let mut whole = Vec::new();
        self.engine.snapshot(&mut whole);
        self.engine.begin_snapshot();
        self.taking = Some((whole, self.fx.records.len(), self.fx.references.clone()));
    }

    /// Goes on with a snapshot that was begun. Once complete it says the same as one that was taken as a
    /// whole when it was begun.
    pub(crate) fn take_part(&mut self) {
        if let Some(pieces) = self.engine.take_snapshot() {
            let (whole, records, references) = self.taking.take().expect("it was begun");
            let bytes = pieces.concat();
            assert_eq!(self.contents(&bytes), self.contents(&whole));
            self.flushed = self.fx.records.len();
            self.snapshot = Some((bytes, records, references));
        }
    }

    /// The contents of a snapshot, without what records may repeat: how often messages were
    /// requeued, that they were unsettled, and sessions.
    fn contents(&self, snapshot: &[u8]) -> (Vec<String>, Vec<u8>) {
        let mut engine = engine(&self.limits);
        engine.restore(snapshot).unwrap();
        let mut messages = Vec::new();
        for (_, queue) in engine.queues.iter_mut() {
            for entry in queue.lanes.iter_mut().flat_map(|lane| lane.entries_mut()) {
                (entry.requeues, entry.redelivered) = (0, false);
                messages.push(format!("{} {entry:?}", queue.name));
            }
        }
        // Which part of its lane an entry is in does not matter.
        messages.sort_unstable();
        engine.sessions = crate::session::Sessions::default();
        let mut rest = Vec::new();
        engine.snapshot(&mut rest);
        (messages, rest)
    }

    /// Drops the engine and makes it again from what was stored.
    fn restart(&mut self, words: &Words<'_>) {
        while !words.has("early") && self.taking.is_some() {
            self.take_part();
        }
        self.taking = None;
        if words.has("clean") {
            self.take_snapshot();
        }
        let lost: usize = words.number("lose").unwrap_or(0);
        let kept = self.fx.records.len().saturating_sub(lost).max(self.flushed);
        self.fx.records.truncate(kept);
        self.fx.groups.clear();
        self.channels.clear();
        self.connected.clear();
        self.clients.clear();
        self.fx.loads.clear();
        self.fx.full.clear();
        self.fx.references.clear();
        let marks = self.engine.take_handed_out();
        self.handed_out.extend(marks);
        self.engine = engine(&self.limits);
        let mut from = 0;
        if self.fx.records.iter().any(Vec::is_empty) {
            self.engine.expect_gaps();
        }
        if let Some((snapshot, records, references)) = &self.snapshot {
            self.engine.restore(snapshot).unwrap();
            from = *records;
            self.fx.references = references.clone();
        }
        for index in from..kept {
            let record = self.fx.records[index].clone();
            if record.is_empty() {
                // A repair gave it up.
                continue;
            }
            let position = Recorder::position_of(index);
            let replayed = self.engine.replay(position, &record, &mut self.fx);
            assert!(replayed.is_ok() || self.fx.records.iter().any(Vec::is_empty), "{replayed:?}");
            assert_eq!(self.fx.records.len(), kept, "a replay appends nothing");
        }
        if words.has("killed") {
            self.engine.recover_handed_out(&self.handed_out);
        } else {
            self.handed_out.clear();
        }
        self.engine.take_rescued();
        self.engine.end_recovery(self.now, words.has("clean"), &mut self.fx);
    }

    /// Has a channel do something, and nothing else happen.
    pub(crate) fn act_on(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        self.act(name, &Words(words.collect()));
    }

    fn act(&mut self, name: &str, words: &Words<'_>) {
        let channel = self.channel(name);
        let arguments = &words.0[1..];
        match words.0[0] {
            "publish" => self.publish(name, arguments),
            "emit" => self.emit(channel, arguments, &mut None),
            "emits" => {
                let mut cached_route = None;
                for body in arguments[1..].iter().filter(|word| **word != "silent") {
                    let silent = words.has("silent").then_some("silent");
                    let one: Vec<&str> = [arguments[0], body].into_iter().chain(silent).collect();
                    self.emit(channel, &one, &mut cached_route);
                }
            }
            "subscribe" => {
                let subscribe = Subscribe {
                    subject: arguments[0],
                    group: words.value("group"),
                    name: arguments[1],
                    slow_consumer_policy: None,
                };
                if let Err(refusal) = self.engine.subscribe(channel, subscribe, &mut self.fx) {
                    self.fx.reply(channel, Err(refusal));
                }
            }
            "unsubscribe" => {
                let after = words.number("after");
                self.engine.unsubscribe(channel, arguments[0], after, &mut self.fx);
            }
            "accept" | "requeue" | "release" | "discard" => {
                let settle = settle(words);
                let annotations = words.value("changed").unwrap_or_default().as_bytes();
                let (now, fx) = (self.now, &mut self.fx);
                let settled = self.engine.settle_annotated(now, channel, settle, annotations, fx);
                if let Err(refusal) = settled {
                    self.fx.reply(channel, Err(refusal));
                }
            }
            "grant" => {
                let up_to = arguments[1].parse().unwrap();
                let grant = Grant { up_to, drain: words.has("drain") };
                self.engine.grant(channel, arguments[0], grant, &mut self.fx);
            }
            "close" => {
                self.engine.close(self.now, channel, &mut self.fx);
                self.channels.remove(name);
            }
            "disconnect" => {
                self.engine.disconnect(self.now, channel.connection, &mut self.fx);
                self.connected.remove(&channel.connection);
                self.clients.remove(&channel.connection);
                self.channels.retain(|_, other| other.connection != channel.connection);
            }
            verb => {
                let request = request(words);
                self.fx.explains |= words.has("explained");
                self.engine.request(self.now, channel, request, &mut self.fx);
                if !verb.ends_with("commit")
                    && verb != "end-transaction"
                    && !self.clients.contains(&channel.connection)
                {
                    self.answer_at_once(channel);
                }
            }
        }
    }

    /// Tells a channel what it would hear after a flush, so that scenarios about something else need
    /// none after each line that makes something durable. Those of clients have to wait.
    fn answer_at_once(&mut self, channel: ChannelId) {
        let slot = self.engine.channel_slot(channel).expect("channels are opened when mentioned");
        let channel_there = self.engine.clients.channels.get_mut(slot).expect("its slot is in use");
        while channel_there
            .unanswered
            .front()
            .is_some_and(|(after, _)| !matches!(after, After::Work(_)))
            && let Some((_, reply)) = channel_there.unanswered.pop_front()
        {
            self.fx.reply(channel, reply);
        }
    }

    /// `emit SUBJECT BODY...`; tells who got it where nobody did, or none of them keeps up. `emits SUBJECT
    /// BODY BODY...` emits several in a row.
    fn emit(
        &mut self,
        channel: ChannelId,
        arguments: &[&str],
        cached_route: &mut Option<crate::CachedRoute>,
    ) {
        let words = Words(arguments[2..].to_vec());
        let emit = Emit {
            subject: arguments[0],
            echo: !words.has("silent"),
            is_response: false,
            asks: false,
            content: Content {
                format: Format(2),
                properties: b"",
                body: arguments[1].as_bytes(),
                shared: None,
                persistent: true,
                priority: 0,
                ttl: None,
            },
        };
        match self.engine.emit_next(self.now, channel, &emit, cached_route, &mut self.fx) {
            Err(refusal) => self.fx.reply(channel, Err(refusal)),
            Ok(reached) if reached.is_nobody() => self.fx.lines.push("nobody".to_owned()),
            Ok(reached) if reached.crowded => self.fx.lines.push("crowded".to_owned()),
            Ok(_) => {}
        }
    }

    /// `publish EXCHANGE KEY BODY...`; `-` is the default exchange.
    fn publish(&mut self, name: &str, arguments: &[&str]) {
        let channel = self.channel(name);
        let words = Words(arguments[3..].to_vec());
        let also_to: Vec<&str> = words.value("cc").into_iter().collect();
        let publish = Publish {
            exchange: if arguments[0] == "-" { "" } else { arguments[0] },
            routing_key: arguments[1],
            also_to: &also_to,
            mandatory: words.has("mandatory"),
            retain: match (words.has("retain"), words.has("retain-only")) {
                (true, _) => Retain::Yes,
                (_, true) => Retain::Only,
                _ => Retain::No,
            },
            not_before: words.millis("delay").map(|delay| self.now.plus(delay)),
            transaction: words.number("in").map(TransactionId),
            content: Content {
                format: Format(words.number("format").unwrap_or(1)),
                properties: words.value("props").unwrap_or("properties").as_bytes(),
                body: if arguments[2] == "''" { b"" } else { arguments[2].as_bytes() },
                shared: None,
                persistent: words.has("persistent"),
                priority: words.number("priority").unwrap_or(0),
                ttl: words.millis("ttl"),
            },
        };
        let (now, fx) = (self.now, &mut self.fx);
        let published = match words.number("once") {
            None => self.engine.publish(now, channel, &publish, fx),
            Some(number) => self.engine.publish_once(now, channel, number, &publish, fx),
        };
        if let Err(refusal) = published {
            self.fx.reply(channel, Err(refusal));
        }
    }
}

/// `accept TAG`, `requeue TAG multiple`, `release FIRST to=LAST elsewhere`...
fn settle(words: &Words<'_>) -> Settle {
    let outcome = |failed| Outcome::Return(Return { failed, elsewhere: words.has("elsewhere") });
    let outcome = match words.0[0] {
        "accept" => Outcome::Accept,
        "discard" => Outcome::Discard,
        verb => outcome(verb == "requeue"),
    };
    let tag = words.0[1].parse().unwrap();
    let settle = match words.number("to") {
        Some(last) => Settle::range(tag, last, outcome),
        None if words.has("multiple") => Settle::up_to(tag, outcome),
        None => Settle::one(tag, outcome),
    };
    settle.within(words.number("in").map(TransactionId))
}

/// What becomes of deliveries of a consumer that ends.
pub(super) fn end_outcome(words: &Words<'_>, key: &str) -> Outcome {
    match words.value(key) {
        Some("release") => Outcome::RELEASE,
        Some("accept") => Outcome::Accept,
        Some("discard") => Outcome::Discard,
        _ => Outcome::REQUEUE,
    }
}

/// What a binding leads to: a queue, or `@EXCHANGE`.
fn target(word: &str) -> BindingTarget {
    match word.strip_prefix('@') {
        Some(exchange) => BindingTarget::Exchange(exchange.to_owned()),
        None => BindingTarget::Queue(word.to_owned()),
    }
}

/// Any other request.
fn request(words: &Words<'_>) -> Request {
    let text = |index: usize| words.0[index].to_owned();
    match words.0[0] {
        "queue" => Request::DeclareQueue { name: text(1), options: Some(queue_options(words)) },
        "passive" => Request::DeclareQueue { name: text(1), options: None },
        "exchange" => {
            Request::DeclareExchange { name: text(1), options: Some(exchange_options(words)) }
        }
        "delete-exchange" => {
            Request::DeleteExchange { name: text(1), if_unused: words.has("if-unused") }
        }
        "delete" => Request::DeleteQueue {
            name: text(1),
            if_unused: words.has("if-unused"),
            if_empty: words.has("if-empty"),
        },
        "describe" => Request::DescribeQueue { name: text(1) },
        "describe-all" => Request::DescribeQueues {
            from: words.number("from").unwrap_or(0),
            most: words.number("most").unwrap_or(u32::MAX),
        },
        "describe-bindings" => {
            let (source, target, key) = (text(1), target(words.0[2]), text(3));
            Request::DescribeBindings { source, target, key }
        }
        "purge" => Request::PurgeQueue { name: text(1) },
        "bind" | "unbind" => {
            let (source, key, arguments) = (text(1), text(3), Arguments::new());
            let target = target(words.0[2]);
            let (filter, not_from) =
                (super::filters::filter(words), words.value("not-from").map(str::to_owned));
            let binding = Binding { source, target, key, arguments, filter, not_from };
            let binds = words.0[0] == "bind";
            if binds { Request::Bind(binding) } else { Request::Unbind(binding) }
        }
        verb if super::session_requests::is_one(verb) => super::session_requests::request(words),
        "open" | "delete-subscription" | "find" => super::named_subscriptions::request(words),
        "replay" | "end-replay" => super::retained::request(words),
        "temporary" | "hold" | "let-go" | "be" | "take" => super::lifetimes::request(words),
        "consume" => Request::Consume(super::filters::consume(words)),
        "cancel" => Request::CancelConsumer { name: text(1), returns: words.has("returns") },
        "get" => Request::Get { queue: text(1), presettled: words.has("presettled") },
        "inbox" => Request::OpenInbox { name: text(1) },
        "credit" => Request::SetChannelCredit(Credit {
            messages: words.number("messages").unwrap_or(0),
            bytes: words.number("bytes").unwrap_or(0),
        }),
        "flow" => Request::SetFlow(words.has("on")),
        "recover" => Request::Recover,
        "confirms" => Request::SelectConfirms { explained: words.has("explained") },
        "begin" => Request::BeginTransaction,
        "end-transaction" => Request::EndTransaction {
            id: TransactionId(words.0[1].parse().unwrap()),
            commits: words.has("commit"),
        },
        "transactions" => Request::SelectTransactions,
        "commit" => Request::Commit,
        "rollback" => Request::Rollback,
        "create-vhost" => Request::CreateVhost { name: text(1) },
        "delete-vhost" => Request::DeleteVhost { name: text(1) },
        "delete-user" => Request::DeleteUser { name: text(1) },
        other => access_request(other, words),
    }
}
