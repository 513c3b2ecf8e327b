//! The fake broker of AMQP 1.0: its answers and deliveries.

use super::input::FRAME_BYTES_MAX;
use super::message::{self, Sending};
use super::session::WINDOW_MAX;
use crate::client::Encoded;
use crate::client::fake_broker::{Answer, FakeBroker, Prefix};
use angarium_protocol::amqp10::codec::{
    AnyTarget, Attach, Begin, Close, Detach, Flow, Open, Performative, Role, SaslCode,
    SaslMechanisms, SaslOutcome, SaslPerformative, Source, Symbol, Symbols, Target, Transfer,
};
use angarium_protocol::amqp10::frame::{HEAD_BYTES, PROTOCOL_HEADER_BYTES};

/// The channel of the client's first link.
const CHANNEL: u16 = 1;
const SASL_HEADER: &[u8] = b"AMQP\x03\x01\x00\x00";
const AMQP_HEADER: &[u8] = b"AMQP\x00\x01\x00\x00";
/// Octets of an attach from its frame to its role: descriptor, list, a name of 15 octets, handle.
const TO_ROLE: usize = HEAD_BYTES + 6 + 2 + 15 + 1;

/// Answers what this tool's client needs to publish and to consume.
pub(crate) fn fake_broker() -> FakeBroker {
    fake_broker_giving(WINDOW_MAX)
}

/// The same, which gives a publisher this much credit.
pub(super) fn fake_broker_giving(link_credit: u32) -> FakeBroker {
    let mechanisms = SaslMechanisms { mechanisms: Symbols::new(&[Symbol("ANONYMOUS")]) };
    let outcome = SaslOutcome { code: SaslCode::Ok, additional_data: None };
    let open = Open { container_id: "fake", max_frame_size: FRAME_BYTES_MAX, ..Open::default() };
    let begin = Begin {
        remote_channel: Some(CHANNEL),
        next_outgoing_id: 0,
        incoming_window: WINDOW_MAX,
        outgoing_window: WINDOW_MAX,
        ..Begin::default()
    };
    let attach = |role| {
        Performative::Attach(Attach {
            name: "bench",
            role,
            source: Some(Source::default()),
            target: Some(AnyTarget::Target(Target::default())),
            initial_delivery_count: Some(0),
            ..Attach::default()
        })
    };
    let credit = Flow {
        next_incoming_id: Some(1),
        incoming_window: WINDOW_MAX,
        outgoing_window: WINDOW_MAX,
        handle: Some(0),
        delivery_count: Some(0),
        link_credit: Some(link_credit),
        ..Flow::default()
    };
    let detach = Detach { handle: 0, closed: true, error: None };
    let greeting = [SASL_HEADER, &sasl(SaslPerformative::SaslMechanisms(mechanisms))].concat();
    let performative = |bytes: &'static [u8]| Prefix { at: HEAD_BYTES, bytes };
    let answers = vec![
        (Prefix::new(SASL_HEADER), greeting),
        (performative(&[0, 0x53, 0x41]), sasl(SaslPerformative::SaslOutcome(outcome))),
        (Prefix::new(AMQP_HEADER), AMQP_HEADER.to_vec()),
        (performative(&[0, 0x53, 0x10]), of(0, &[Performative::Open(open)])),
        (performative(&[0, 0x53, 0x11]), of(CHANNEL, &[Performative::Begin(begin)])),
        (performative(&[0, 0x53, 0x16]), of(CHANNEL, &[Performative::Detach(detach)])),
        (performative(&[0, 0x53, 0x18]), of(0, &[Performative::Close(Close::default())])),
        // A flow, which begins like an attach elsewhere, is not answered.
        (performative(&[0, 0x53, 0x13]), Vec::new()),
        // An attach of a sender, and one of a receiver.
        (
            Prefix { at: TO_ROLE, bytes: &[0x42] },
            of(CHANNEL, &[attach(Role::Receiver), Performative::Flow(credit)]),
        ),
        (Prefix { at: TO_ROLE, bytes: &[0x41] }, of(CHANNEL, &[attach(Role::Sender)])),
    ];
    FakeBroker {
        greeting: Vec::new(),
        answers: answers.into_iter().map(|(request, reply)| Answer { request, reply }).collect(),
        message: Prefix { at: HEAD_BYTES, bytes: &[0, 0x53, Transfer::INFO.code as u8] },
        request_bytes: |bytes| match bytes {
            [b'A', ..] => Some(PROTOCOL_HEADER_BYTES),
            _ => Some(u32::from_be_bytes(*bytes.first_chunk()?) as usize),
        },
        delivery: deliver,
    }
}

fn sasl(performative: SaslPerformative<'_>) -> Vec<u8> {
    let mut reply = Vec::new();
    performative.write_frame(&mut reply);
    reply
}

fn of(channel: u16, performatives: &[Performative<'_>]) -> Vec<u8> {
    let mut reply = Vec::new();
    performatives.iter().for_each(|it| it.write_frame(channel, &[], &mut reply));
    reply
}

fn deliver(_: &str, body: &[u8], out: &mut Vec<u8>) -> Encoded {
    let sending = Sending {
        channel: CHANNEL,
        settled: true,
        transaction: &[],
        frame_bytes_max: FRAME_BYTES_MAX,
    };
    message::write(out, sending, &message::sections(false, "", body), body.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use angarium_protocol::amqp10::frame::ProtocolHeader;

    #[test]
    fn protocol_headers_are_those_of_the_specification() {
        assert_eq!(SASL_HEADER, ProtocolHeader::Sasl.bytes());
        assert_eq!(AMQP_HEADER, ProtocolHeader::Amqp.bytes());
    }
}
