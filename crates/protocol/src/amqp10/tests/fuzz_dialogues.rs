//! Hostile input in dialogues that the recorded connection does not have: logins, filter sets of sources,
//! transactions, requests to management.

use super::client::{
    Client, begin, closing, credit, data, frame, login, open, receiver, sender, settled, transfer,
};
use super::fuzz::{Dialogue, mutate_frame};
use super::show;
use crate::amqp10::Settings;
use crate::amqp10::codec::{
    ACCEPTED, Accepted, AnyTarget, Attach, Coordinator, Declare, DeliveryState, Discharge, Field,
    MessageId, Outcome, OwnedValue, Properties, Role, SaslInit, SaslPerformative, SaslResponse,
    SectionKind, Source, Symbol, Target, TransactionalState, Transfer, Value, put_map_section,
    put_section,
};
use crate::amqp10::frame::ProtocolHeader;
use crate::tests::fuzz::{self, Fuzzed};
use crate::tests::host::TestHost;
use crate::tests::random::Random;

/// A connection that has logged in and begun session 0, as bytes.
fn begun() -> Vec<u8> {
    [login("guest"), frame(0, &open(), &[]), frame(0, &begin(100), &[])].concat()
}

/// Frames of type SASL, in any order, and what comes before and behind them.
struct Logins;

impl Dialogue for Logins {
    const PARTS_MAX: usize = 8;

    fn parts() -> Vec<Vec<u8>> {
        let init = |mechanism, initial_response| {
            let mut bytes = Vec::new();
            let init = SaslInit { mechanism: Symbol(mechanism), initial_response, hostname: None };
            SaslPerformative::SaslInit(init).write_frame(&mut bytes);
            bytes
        };
        let response = |response| {
            let mut bytes = Vec::new();
            SaslPerformative::SaslResponse(SaslResponse { response }).write_frame(&mut bytes);
            bytes
        };
        vec![
            init("PLAIN", Some(b"\0guest\0guest")),
            init("PLAIN", None),
            init("ANONYMOUS", Some(b"trace")),
            init("EXTERNAL", Some(b"")),
            init("SCRAM-SHA-256", Some(b"n,,n=guest,r=fyko")),
            init("SCRAM-SHA-256", None),
            response(b"n,,n=guest,r=fyko"),
            response(b"c=biws,r=fyko,p=AAAA"),
            response(b"\0guest\0wrong"),
            ProtocolHeader::Sasl.bytes().to_vec(),
            ProtocolHeader::Amqp.bytes().to_vec(),
            frame(0, &open(), &[]),
            frame(0, &begin(1), &[]),
        ]
    }

    fn beginning(_: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        match random.below(8) {
            0 => Vec::new(),
            _ => ProtocolHeader::Sasl.bytes().to_vec(),
        }
    }

    fn connect() -> (TestHost, usize) {
        let Client { mut host, number } = Client::accepted(Settings::default());
        let verifier = crate::scram::Verifier::of_password("guest", b"salt", 8).to_string();
        host.store_password("guest", &verifier);
        (host, number)
    }
}

/// Sources with filter sets, and messages for them.
struct FilterSets;

/// The descriptors of filters that are understood, and of one that is not.
const FILTERS: [&str; 8] = [
    "apache.org:selector-filter:string",
    "amqp:sql-filter",
    "apache.org:no-local-filter:list",
    "apache.org:legacy-amqp-topic-binding:string",
    "apache.org:legacy-amqp-headers-binding:map",
    "amqp:properties-filter",
    "amqp:application-properties-filter",
    "unknown:filter",
];

/// What selectors are made of, and what they are not.
const LANGUAGE: &[u8] = b"'()[],.=<>+-*/%!_\" \0NOTandLIKE0159eExX\xc3";

/// What filters are about.
fn conditions() -> Vec<OwnedValue> {
    let text = |text: &str| OwnedValue::new(&Value::String(text));
    vec![
        text("colour = 'red' AND (size BETWEEN 1 AND 7 OR NOT name LIKE 'a!_%' ESCAPE '!')"),
        text("JMSPriority > 3 AND [properties.subject] IN ('a', 'b') AND x IS NOT NULL"),
        text("-size * 2.5E1 + 0x1f / 7 % 3 <> .5 OR colour"),
        text("a.*.#"),
        text(""),
        OwnedValue::map(|map| {
            map.put(&Symbol("subject"), &"&p:or");
            map.put(&Symbol("message-id"), &7u64);
            map.put(&Symbol("x-match"), &"any");
        }),
        OwnedValue::map(|map| {
            map.put(&"colour", &"&s:ed");
            map.put(&"size", &1.5f64);
            map.put(&"is_new", &true);
            map.put(&"nothing", &Value::Null);
        }),
        OwnedValue::new(&Value::ULong(7)),
    ]
}

fn filter_set(filters: &[(&str, &OwnedValue)]) -> OwnedValue {
    OwnedValue::map(|map| {
        for (number, (name, condition)) in filters.iter().enumerate() {
            let mut described = vec![crate::amqp10::codec::wire::DESCRIBED];
            Symbol(name).write(&mut described);
            condition.value().write(&mut described);
            let described = OwnedValue::decode(&described).expect("it was just written");
            map.put(&Symbol(&format!("f{number}")), &described.value());
        }
    })
}

impl Dialogue for FilterSets {
    fn parts() -> Vec<Vec<u8>> {
        let mut message = Vec::new();
        let properties = Properties { subject: Some("order"), ..Properties::default() };
        properties.write(&mut message);
        put_map_section(&mut message, SectionKind::ApplicationProperties, |map| {
            map.put(&"colour", &"red");
            map.put(&"size", &5i32);
        });
        message.extend(data("a"));
        let mut parts = vec![
            frame(0, &transfer(0, 0), &message),
            frame(0, &transfer(1, 0), &message),
            frame(0, &settled(0, 9, ACCEPTED), &[]),
        ];
        let conditions = conditions();
        for (handle, name) in (2..).zip(FILTERS) {
            for condition in &conditions {
                for address in ["q", "topic://t"] {
                    let filter = filter_set(&[(name, condition), (FILTERS[0], &conditions[0])]);
                    let filter = Some(filter.as_map());
                    let source = Source { address: Some(address), filter, ..Source::default() };
                    let attach = Attach { name, source: Some(source), ..receiver(handle, "") };
                    let mut part = frame(0, &attach, &[]);
                    part.extend(frame(0, &credit(handle, 0, 9), &[]));
                    parts.push(part);
                }
            }
            parts.push(frame(0, &closing(handle), &[]));
        }
        parts
    }

    fn beginning(_: &[Vec<u8>], _: &mut Random) -> Vec<u8> {
        let topic = Attach { name: "topic", ..sender(1, "topic://t") };
        [begun(), frame(0, &sender(0, "q"), &[]), frame(0, &topic, &[])].concat()
    }

    fn mutate(part: &mut Vec<u8>, random: &mut Random) {
        // Letters of a selector become others of its language.
        if random.below(2) == 0 {
            let at = random.below(part.len());
            part[at] = LANGUAGE[random.below(LANGUAGE.len())];
            return;
        }
        mutate_frame(part, random);
    }
}

/// Transactions that are declared, used and discharged.
struct Transactions;

impl Dialogue for Transactions {
    fn parts() -> Vec<Vec<u8>> {
        let asked = |id, request: &mut dyn FnMut(&mut Vec<u8>)| {
            let mut message = Vec::new();
            request(&mut message);
            frame(0, &transfer(0, id), &message)
        };
        let mut parts = vec![
            asked(0, &mut |out| put_section(out, SectionKind::Value, &Declare::default())),
            frame(0, &transfer(1, 0), &data("beside")),
            frame(0, &settled(0, 9, ACCEPTED), &[]),
            frame(0, &credit(2, 0, 50), &[]),
            frame(0, &closing(0), &[]),
            frame(0, &closing(1), &[]),
        ];
        // Those that are there, if all goes well, and one that never is.
        for id in [0u64, 1, 2, 3, u64::MAX].map(u64::to_be_bytes) {
            for fail in [false, true] {
                let discharge = Discharge { txn_id: &id, fail };
                let ask = &mut |out: &mut Vec<u8>| put_section(out, SectionKind::Value, &discharge);
                parts.push(asked(1, ask));
            }
            let state = |outcome| {
                let state = TransactionalState { txn_id: &id, outcome };
                Some(DeliveryState::TransactionalState(state))
            };
            let part = Transfer { state: state(None), ..transfer(1, 1) };
            parts.push(frame(0, &part, &data("in")));
            let outcome = state(Some(Outcome::Accepted(Accepted {})));
            parts.extend(outcome.map(|state| frame(0, &settled(0, 2, state), &[])));
        }
        parts
    }

    fn beginning(_: &[Vec<u8>], _: &mut Random) -> Vec<u8> {
        let target = Some(AnyTarget::Coordinator(Coordinator::default()));
        let coordinator = Attach { name: "coordinator", target, ..sender(0, "") };
        [
            begun(),
            frame(0, &coordinator, &[]),
            frame(0, &sender(1, "q"), &[]),
            frame(0, &receiver(2, "q"), &[]),
        ]
        .concat()
    }
}

/// Requests to `/management` and `$management`.
struct Requests;

impl Dialogue for Requests {
    fn parts() -> Vec<Vec<u8>> {
        let queue = OwnedValue::map(|map| {
            map.put(&"durable", &true);
            map.put(&"exclusive", &false);
            let arguments = OwnedValue::map(|map| map.put(&"x-max-length", &9u64));
            map.put(&"arguments", &arguments.value());
        });
        let binding = OwnedValue::map(|map| {
            map.put(&"source", &"amq.topic");
            map.put(&"binding_key", &"k");
            map.put(&"destination_queue", &"q");
        });
        let nothing = OwnedValue::new(&Value::Null);
        let mut parts = vec![frame(0, &credit(1, 0, 50), &[]), frame(0, &credit(3, 0, 50), &[])];
        for (method, to, body) in [
            ("PUT", "/queues/q", &queue),
            ("PUT", "/queues/%41%2F", &queue),
            ("GET", "/queues/q", &nothing),
            ("DELETE", "/queues/q/messages", &nothing),
            ("DELETE", "/queues/q", &nothing),
            ("PUT", "/exchanges/e", &queue),
            ("DELETE", "/exchanges/e", &nothing),
            ("POST", "/bindings", &binding),
            ("GET", "/bindings?src=amq.topic&dstq=q&key=k", &nothing),
            ("DELETE", "/bindings/src=amq.topic;dstq=q;key=k;args=", &nothing),
            ("PUT", "/auth/tokens", &nothing),
            ("PATCH", "//", &binding),
        ] {
            let mut message = Vec::new();
            let properties = Properties {
                message_id: Some(MessageId::String("m")),
                to: Some(to),
                subject: Some(method),
                reply_to: Some("$me"),
                ..Properties::default()
            };
            properties.write(&mut message);
            put_section(&mut message, SectionKind::Value, &body.value());
            parts.push(frame(0, &transfer(0, 0), &message));
        }
        for operation in ["QUERY", "READ", "GET-TYPES", "DELETE"] {
            let mut message = Vec::new();
            let properties = Properties {
                message_id: Some(MessageId::ULong(7)),
                reply_to: Some("answers"),
                ..Properties::default()
            };
            properties.write(&mut message);
            put_map_section(&mut message, SectionKind::ApplicationProperties, |map| {
                map.put(&"operation", &operation);
                map.put(&"entityType", &"queue");
                map.put(&"name", &"q");
            });
            parts.push(frame(0, &transfer(2, 0), &message));
        }
        parts
    }

    fn beginning(_: &[Vec<u8>], _: &mut Random) -> Vec<u8> {
        let properties = OwnedValue::map(|map| map.put(&Symbol("paired"), &true));
        let pair = |handle, role, address| {
            let properties = Some(properties.as_map());
            let attach = match role {
                Role::Sender => Attach { name: "pair", properties, ..sender(handle, address) },
                Role::Receiver => Attach { name: "pair", properties, ..receiver(handle, address) },
            };
            frame(0, &attach, &[])
        };
        let asks = Target { address: Some("$management"), ..Target::default() };
        let asks = Attach {
            name: "asks",
            target: Some(AnyTarget::Target(asks)),
            ..sender(2, "$management")
        };
        [
            begun(),
            pair(0, Role::Sender, "/management"),
            pair(1, Role::Receiver, "/management"),
            frame(0, &asks, &[]),
            frame(0, &Attach { name: "answers", ..receiver(3, "answers") }, &[]),
        ]
        .concat()
    }
}

#[test]
fn changed_logins_do_no_harm() {
    fuzz::changed::<Logins>(0..1_000);
}

#[test]
fn changed_filter_sets_do_no_harm() {
    fuzz::changed::<FilterSets>(0..300);
}

#[test]
fn changed_transactions_do_no_harm() {
    fuzz::changed::<Transactions>(0..500);
}

#[test]
fn changed_requests_do_no_harm() {
    fuzz::changed::<Requests>(0..500);
}

/// What the parts are for happens, unless they are changed.
#[test]
fn unchanged_parts_are_taken() {
    fn output<F: Fuzzed>() -> String {
        let parts = F::parts();
        let (mut host, number) = F::connect();
        host.receive(number, &F::beginning(&parts, &mut Random(1)));
        host.turn_ends();
        parts.iter().for_each(|part| {
            host.receive(number, part);
            host.turn_ends();
        });
        show::lines(&host.output(number)).join("\n")
    }
    for (output, expected) in [
        (output::<Logins>(), "outcome Ok"),
        (output::<FilterSets>(), "0 transfer"),
        (output::<Transactions>(), "Declared"),
        (output::<Transactions>(), "0 transfer 2"),
        (output::<Requests>(), "0 transfer 1"),
        (output::<Requests>(), "0 transfer 3"),
    ] {
        assert!(output.contains(expected), "{expected}\n{output}");
    }
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long_logins() {
    fuzz::long::<Logins>();
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long_filter_sets() {
    fuzz::long::<FilterSets>();
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long_transactions() {
    fuzz::long::<Transactions>();
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long_requests() {
    fuzz::long::<Requests>();
}
