//! What holds a client of AMQP 1.0 back, and which limits it meets: told in its own terms, and others go on.

use super::host::Host;
use crate::WaitsFor;
use crate::memory::account::{Account, MemoryLimits};
use angarium_engine::{Bound, MemoryKind, Quota, Request};
use angarium_protocol::amqp10::codec::{
    AnyTarget, Attach, Begin, DeliveryState, DeliveryTag, Detach, Field, Flow, Header, Open,
    Performative, Role, SaslInit, SaslPerformative, SectionKind, Source, Symbol, Target, Transfer,
    put_section, write_frame,
};
use angarium_protocol::amqp10::frame::{self, PROTOCOL_HEADER_BYTES, ProtocolHeader};
use std::time::Duration;

/// The credit that links get to send with.
const CREDIT: u32 = 1000;
/// What errors begin with that are about a limit.
const LIMIT: &str = "amqp:resource-limit-exceeded: ";

/// A client with one session, whose links have different handles.
pub(super) struct Client {
    pub(super) number: usize,
    pub(super) next_delivery: u32,
}

/// A frame that the broker sent, as far as these tests ask for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Attached(u32),
    /// A link's credit.
    Credit(u32, u32),
    Delivered(u32),
    Accepted(u32),
    /// A transaction has begun.
    Declared(Vec<u8>),
    Refused(u32, String),
    Detached(u32, String),
    Closed(String),
}

impl Client {
    pub(super) fn open(host: &mut Host, shard: usize) -> Client {
        let container_id = format!("tester {}", host.clients());
        Client::open_as(host, shard, &container_id)
    }

    /// The same, of that container.
    pub(super) fn open_as(host: &mut Host, shard: usize, container_id: &str) -> Client {
        let number = host.connect_other(shard);
        let mut bytes = ProtocolHeader::Sasl.bytes().to_vec();
        let initial_response = Some(&b"\0user\0secret"[..]);
        let init = SaslInit { mechanism: Symbol("PLAIN"), initial_response, hostname: None };
        SaslPerformative::SaslInit(init).write_frame(&mut bytes);
        bytes.extend_from_slice(&ProtocolHeader::Amqp.bytes());
        host.send_bytes(number, &bytes);
        let client = Client { number, next_delivery: 0 };
        client.send(host, &Open { container_id, ..Open::default() });
        let windows =
            Begin { incoming_window: 10_000, outgoing_window: 10_000, ..Begin::default() };
        client.send(host, &windows);
        client.said(host);
        client
    }

    pub(super) fn send<'a>(&self, host: &mut Host, performative: &impl Field<'a>) {
        let mut bytes = Vec::new();
        write_frame(performative, 0, &[], &mut bytes);
        host.send_bytes(self.number, &bytes);
        host.settle_down();
    }

    /// Attaches a link to send by.
    pub(super) fn sends_to(&self, host: &mut Host, handle: u32, address: &str) -> Vec<Said> {
        let target = Target { address: Some(address), ..Target::default() };
        self.attach(
            host,
            handle,
            Attach {
                role: Role::Sender,
                source: Some(Source::default()),
                target: Some(AnyTarget::Target(target)),
                initial_delivery_count: Some(0),
                ..Attach::default()
            },
        )
    }

    /// Attaches a link to receive by, with that much credit.
    pub(super) fn receives_from(&self, host: &mut Host, handle: u32, address: &str, credit: u32) {
        self.attach(
            host,
            handle,
            Attach {
                role: Role::Receiver,
                source: Some(Source { address: Some(address), ..Source::default() }),
                target: Some(AnyTarget::Target(Target::default())),
                ..Attach::default()
            },
        );
        self.send(
            host,
            &Flow {
                next_incoming_id: Some(0),
                incoming_window: 10_000,
                outgoing_window: 10_000,
                handle: Some(handle),
                delivery_count: Some(0),
                link_credit: Some(credit),
                ..Flow::default()
            },
        );
    }

    pub(super) fn attach(&self, host: &mut Host, handle: u32, attach: Attach<'_>) -> Vec<Said> {
        let name = format!("link{handle}");
        self.send(host, &Attach { name: &name, handle, ..attach });
        self.said(host)
    }

    /// Sends `count` messages with a body of that many octets, in one read.
    pub(super) fn publish(&mut self, host: &mut Host, handle: u32, count: u32, octets: usize) {
        let mut message = Vec::new();
        Header { durable: true, ..Header::default() }.write(&mut message);
        put_section(&mut message, SectionKind::Data, &vec![7u8; octets].as_slice());
        let mut bytes = Vec::new();
        for _ in 0..count {
            write_frame(&self.transfer(handle), 0, &message, &mut bytes);
            self.next_delivery += 1;
        }
        host.send_bytes(self.number, &bytes);
        host.settle_down();
    }

    pub(super) fn transfer(&self, handle: u32) -> Transfer<'static> {
        Transfer {
            handle,
            delivery_id: Some(self.next_delivery),
            delivery_tag: Some(DeliveryTag(b"tag")),
            message_format: Some(0),
            ..Transfer::default()
        }
    }

    /// What the broker said since the last call.
    pub(super) fn said(&self, host: &mut Host) -> Vec<Said> {
        host.settle_down();
        let bytes = host.taken(self.number);
        let mut rest = &bytes[..];
        let mut said = Vec::new();
        while !rest.is_empty() {
            if rest.starts_with(b"AMQP") {
                rest = &rest[PROTOCOL_HEADER_BYTES..];
                continue;
            }
            let (frame, used) = frame::read(rest, u32::MAX).unwrap().expect("whole frames");
            rest = &rest[used..];
            if frame.kind != frame::SASL && !frame.body.is_empty() {
                let (performative, _) = Performative::decode_body(frame.body).unwrap();
                said.extend(heard(&performative));
            }
        }
        said
    }
}

fn heard(performative: &Performative<'_>) -> Vec<Said> {
    let why = |error: Option<angarium_protocol::amqp10::codec::Error<'_>>| {
        error.map_or(String::new(), |it| {
            format!("{}: {}", it.condition.0, it.description.unwrap_or_default())
        })
    };
    match performative {
        Performative::Attach(it) => vec![Said::Attached(it.handle)],
        Performative::Flow(Flow { handle: Some(handle), link_credit: Some(credit), .. }) => {
            vec![Said::Credit(*handle, *credit)]
        }
        Performative::Transfer(it) => vec![Said::Delivered(it.handle)],
        Performative::Disposition(it) => {
            let all = it.first..=it.last.unwrap_or(it.first);
            all.map(|id| match it.state {
                Some(DeliveryState::Accepted(_)) => Said::Accepted(id),
                Some(DeliveryState::Declared(it)) => Said::Declared(it.txn_id.to_vec()),
                Some(DeliveryState::Rejected(it)) => Said::Refused(id, why(it.error)),
                other => Said::Refused(id, format!("{other:?}")),
            })
            .collect()
        }
        Performative::Detach(it) => vec![Said::Detached(it.handle, why(it.error))],
        Performative::End(it) => vec![Said::Closed(why(it.error))],
        Performative::Close(it) => vec![Said::Closed(why(it.error))],
        _ => Vec::new(),
    }
}

/// How much of what was said is credit for that link.
fn credits(said: &[Said], handle: u32) -> Vec<u32> {
    let credit = |said: &Said| match said {
        Said::Credit(link, credit) if *link == handle => Some(*credit),
        _ => None,
    };
    said.iter().filter_map(credit).collect()
}

fn accepted(said: &[Said]) -> usize {
    said.iter().filter(|said| matches!(said, Said::Accepted(_))).count()
}

#[test]
fn only_links_to_a_queue_that_outruns_its_consumers_get_no_more_credit() {
    for shards in [1, 3] {
        let mut host = Host::new(shards);
        let mut client = Client::open(&mut host, shards - 1);
        for (handle, queue) in [(0, "slow"), (1, "quick")] {
            let said = client.sends_to(&mut host, handle, queue);
            assert_eq!(credits(&said, handle), [CREDIT], "{shards}: {said:?}");
        }
        // One that takes one message and settles nothing.
        let reader = Client::open(&mut host, 0);
        reader.receives_from(&mut host, 0, "slow", 1);
        client.publish(&mut host, 0, 100, 1000);
        client.said(&mut host);
        client.publish(&mut host, 0, 500, 100);
        client.publish(&mut host, 1, 600, 100);
        let said = client.said(&mut host);
        assert_eq!(credits(&said, 0), [0; 0], "{shards}: {said:?}");
        assert_eq!(credits(&said, 1).len(), 1, "{shards}: {said:?}");
        assert_eq!(accepted(&said), 1100, "{shards}: what was sent is taken");
        // A moment later it may go on: who reads nothing at all must not stop it for good.
        host.wait(Duration::from_millis(10));
        let said = client.said(&mut host);
        assert_eq!(credits(&said, 0), [CREDIT], "{shards}: {said:?}");
    }
}

#[test]
fn an_unfinished_message_waits_for_memory_and_then_detaches_its_link() {
    for shards in [1, 2] {
        let mut host = Host::new(shards);
        let limits = MemoryLimits { connection: 1 << 20, ..MemoryLimits::NONE };
        for node in &mut host.nodes {
            node.options.memory = limits;
            node.memory = Account::new(limits);
        }
        let mut client = Client::open(&mut host, shards - 1);
        let mut other = Client::open(&mut host, shards - 1);
        client.sends_to(&mut host, 0, "q");
        client.sends_to(&mut host, 1, "q");
        other.sends_to(&mut host, 0, "q");
        let mut message = Vec::new();
        put_section(&mut message, SectionKind::Data, &vec![7u8; 3 << 20].as_slice());
        for piece in message.chunks(100_000) {
            let mut bytes = Vec::new();
            let transfer = Transfer { more: true, ..client.transfer(0) };
            write_frame(&transfer, 0, piece, &mut bytes);
            host.send_bytes(client.number, &bytes);
        }
        host.settle_down();
        client.next_delivery += 1;
        assert_eq!(host.waits_for(client.number), Some(WaitsFor::Memory), "{shards}");
        other.publish(&mut host, 0, 1, 100);
        assert_eq!(accepted(&other.said(&mut host)), 1, "{shards}: others go on");
        host.wait(Duration::from_secs(6));
        let said = client.said(&mut host);
        let detached = said.iter().find_map(|said| match said {
            Said::Detached(0, why) => Some(why.as_str()),
            _ => None,
        });
        let why = "amqp:resource-limit-exceeded: memory is short: the message was given up before \
                   it had come whole";
        assert_eq!(detached, Some(why), "{shards}: {said:?}");
        assert_eq!(host.waits_for(client.number), None, "{shards}");
        // The session goes on, and the link may come back.
        client.publish(&mut host, 1, 1, 100);
        client.send(&mut host, &Detach { handle: 0, closed: true, error: None });
        let said = client.said(&mut host);
        assert_eq!(accepted(&said), 1, "{shards}: {said:?}");
        let said = client.sends_to(&mut host, 0, "q");
        assert_eq!(credits(&said, 0), [CREDIT], "{shards}: {said:?}");
    }
}

#[test]
fn a_full_disk_refuses_messages_and_gives_no_credit_until_there_is_space() {
    for shards in [1, 3] {
        let mut host = Host::new(shards);
        let mut client = Client::open(&mut host, shards - 1);
        client.sends_to(&mut host, 0, "q");
        let reader = Client::open(&mut host, shards - 1);
        let used = host.disk.used();
        host.disk.set_capacity(Some(used));
        let mut said = Vec::new();
        for _ in 0..200 {
            client.publish(&mut host, 0, 1, 2000);
            said.extend(client.said(&mut host));
            if said.iter().any(|said| matches!(said, Said::Refused(..))) {
                break;
            }
        }
        let Some(Said::Refused(_, why)) =
            said.iter().find(|said| matches!(said, Said::Refused(..)))
        else {
            panic!("{shards}: nothing was refused")
        };
        assert!(why.starts_with(LIMIT), "{shards}: {why}");
        // The credit that it has it may use up; it gets no more.
        client.publish(&mut host, 0, CREDIT - client.next_delivery, 100);
        let said = client.said(&mut host);
        assert_eq!(credits(&said, 0), [0; 0], "{shards}: {said:?}");
        assert_eq!(accepted(&said), 0, "{shards}: {said:?}");
        // What is there can be taken all the same.
        reader.receives_from(&mut host, 0, "q", 1);
        assert!(reader.said(&mut host).contains(&Said::Delivered(0)), "{shards}");
        host.disk.set_capacity(None);
        host.pass(3_000);
        let said = client.said(&mut host);
        assert_eq!(credits(&said, 0), [CREDIT], "{shards}: {said:?}");
        client.publish(&mut host, 0, 1, 2000);
        assert_eq!(accepted(&client.said(&mut host)), 1, "{shards}");
    }
}

#[test]
fn quotas_of_a_user_refuse_links_and_messages_and_connections() {
    for shards in [1, 3] {
        let mut host = Host::new(shards);
        let quota = Quota::default()
            .with(Bound::Queues, 1)
            .with(Bound::StoredBytes, 5_000)
            .with(Bound::Connections, 2);
        let set = Request::SetQuota { user: "user".to_owned(), quota };
        host.operate("/", set).expect("operators may");
        let mut client = Client::open(&mut host, shards - 1);
        assert_eq!(credits(&client.sends_to(&mut host, 0, "q"), 0), [CREDIT]);
        let said = client.sends_to(&mut host, 1, "another");
        let refused =
            |said: &Said| matches!(said, Said::Detached(1, why) if why.starts_with(LIMIT));
        assert!(said.iter().any(refused), "{shards}: {said:?}");
        client.publish(&mut host, 0, 10, 1000);
        let said = client.said(&mut host);
        let refused = said.iter().filter(|said| matches!(said, Said::Refused(..))).count();
        assert!((3..6).contains(&accepted(&said)), "{shards}: {said:?}");
        assert_eq!(refused + accepted(&said), 10, "{shards}: {said:?}");
        Client::open(&mut host, 0);
        let third = host.connect_other(0);
        let mut bytes = ProtocolHeader::Sasl.bytes().to_vec();
        let initial_response = Some(&b"\0user\0secret"[..]);
        let init = SaslInit { mechanism: Symbol("PLAIN"), initial_response, hostname: None };
        SaslPerformative::SaslInit(init).write_frame(&mut bytes);
        bytes.extend_from_slice(&ProtocolHeader::Amqp.bytes());
        let open = Open { container_id: "third", ..Open::default() };
        write_frame(&open, 0, &[], &mut bytes);
        host.send_bytes(third, &bytes);
        let said = Client { number: third, next_delivery: 0 }.said(&mut host);
        let closed = |said: &Said| matches!(said, Said::Closed(why) if why.starts_with(LIMIT));
        assert!(said.iter().any(closed), "{shards}: {said:?}");
    }
}

/// What sessions hold back until their peers have room counts like other output: for the connection, and for
/// all that its user has.
#[test]
fn what_sessions_hold_back_counts_for_their_user() {
    for shards in [1, 2] {
        let mut host = Host::new(shards);
        let mut writer = Client::open(&mut host, 0);
        let readers = [0, 1].map(|_| Client::open(&mut host, shards - 1));
        let closed = Flow {
            next_incoming_id: Some(0),
            incoming_window: 0,
            outgoing_window: 10_000,
            handle: Some(0),
            delivery_count: Some(0),
            link_credit: Some(1_000),
            ..Flow::default()
        };
        for (reader, queue) in readers.iter().zip(["a", "b"]) {
            reader.receives_from(&mut host, 0, queue, 0);
            reader.send(&mut host, &closed);
        }
        for (handle, queue) in [(0, "a"), (1, "b")] {
            writer.sends_to(&mut host, handle, queue);
            // Many small ones: what each takes beside its octets counts, too.
            writer.publish(&mut host, handle, 400, 10);
        }
        host.pass(1_000);
        let node = &host.nodes[shards - 1];
        let output = node.held_memory().get(MemoryKind::Output);
        assert!(output > 24 << 10, "{shards}: {output}");
        let largest = node.memory.largest().expect("there is a user");
        assert!(&*largest.user == "user" && largest.held > output, "{shards}: {largest:?}");
        for reader in &readers {
            reader.send(&mut host, &Flow { incoming_window: 10_000, ..closed });
            let said = reader.said(&mut host);
            let got = said.iter().filter(|said| **said == Said::Delivered(0)).count();
            assert_eq!(got, 400, "{shards}");
        }
        host.pass(1_000);
        let output = host.nodes[shards - 1].held_memory().get(MemoryKind::Output);
        assert_eq!(output, 0, "{shards}");
    }
}
