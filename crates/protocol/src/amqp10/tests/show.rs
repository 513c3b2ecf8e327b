//! Frames as lines of text, as tests compare them: fields that say nothing are left out.

use crate::amqp10::codec::{
    AnyTarget, DeliveryState, Error, Performative, Role, SaslPerformative, Sections, Source,
    Target, Value,
};
use crate::amqp10::frame::{self, ProtocolHeader};

/// All frames of an output, each as a line; a protocol header is one too.
pub(crate) fn lines(mut output: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while !output.is_empty() {
        if output.starts_with(b"AMQP") {
            let header = ProtocolHeader::read(output).unwrap().expect("a whole header");
            lines.push(format!("header {header:?}"));
            output = &output[frame::PROTOCOL_HEADER_BYTES..];
            continue;
        }
        let (frame, used) = frame::read(output, u32::MAX).unwrap().expect("whole frames only");
        output = &output[used..];
        lines.push(match (frame.kind, frame.body.is_empty()) {
            (_, true) => "empty".to_owned(),
            (frame::SASL, _) => sasl(SaslPerformative::decode_body(frame.body).unwrap()),
            _ => {
                let (performative, payload) = Performative::decode_body(frame.body).unwrap();
                format!("{} {}", frame.channel, performative_line(&performative, payload))
            }
        });
    }
    lines
}

fn sasl(performative: SaslPerformative<'_>) -> String {
    match performative {
        SaslPerformative::SaslMechanisms(it) => {
            let names: Vec<_> = it.mechanisms.iter().map(|symbol| symbol.0).collect();
            format!("mechanisms {}", names.join(" "))
        }
        SaslPerformative::SaslChallenge(it) => {
            format!("challenge {}", String::from_utf8_lossy(it.challenge))
        }
        SaslPerformative::SaslOutcome(it) => {
            let data = it.additional_data.map(|data| format!(" {}", String::from_utf8_lossy(data)));
            format!("outcome {:?}{}", it.code, data.unwrap_or_default())
        }
        other => format!("{other:?}"),
    }
}

fn performative_line(performative: &Performative<'_>, payload: &[u8]) -> String {
    match performative {
        Performative::Open(open) => format!(
            "open {} frame={} channels={} idle={}",
            open.container_id,
            open.max_frame_size,
            open.channel_max,
            open.idle_time_out.unwrap_or(0)
        ),
        Performative::Begin(begin) => format!(
            "begin remote={} window={} handles={}",
            begin.remote_channel.unwrap(),
            begin.incoming_window,
            begin.handle_max
        ),
        Performative::Attach(attach) => {
            let ends = format!("{} -> {}", source(attach.source), target(attach.target));
            format!("attach {} {} {} {ends}", attach.handle, role(attach.role), attach.name)
        }
        Performative::Flow(flow) => {
            let mut line = format!("flow window={}", flow.incoming_window);
            if let Some(handle) = flow.handle {
                let (count, credit) = (flow.delivery_count.unwrap(), flow.link_credit.unwrap());
                line += &format!(" handle={handle} count={count} credit={credit}");
            }
            line + if flow.drain { " drain" } else { "" }
        }
        Performative::Transfer(transfer) => {
            let mut line = format!("transfer {}", transfer.handle);
            line += &transfer.delivery_id.map_or(String::new(), |id| format!(" id={id}"));
            line += if transfer.settled == Some(true) { " settled" } else { "" };
            if transfer.more || transfer.delivery_id.is_none() {
                let more = if transfer.more { " more" } else { "" };
                return line + &format!("{more} {} octets", payload.len());
            }
            line + &message(payload)
        }
        Performative::Disposition(it) => {
            let last = it.last.map_or(String::new(), |last| format!("-{last}"));
            let settled = if it.settled { " settled" } else { "" };
            format!("disposition {} {}{last}{settled} {}", role(it.role), it.first, state(it.state))
        }
        Performative::Detach(it) => {
            let closed = if it.closed { " closed" } else { "" };
            format!("detach {}{closed}{}", it.handle, error(it.error))
        }
        Performative::End(it) => format!("end{}", error(it.error)),
        Performative::Close(it) => format!("close{}", error(it.error)),
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Sender => "sender",
        Role::Receiver => "receiver",
    }
}

fn source(source: Option<Source<'_>>) -> String {
    source.map_or("null".to_owned(), |source| source.address.unwrap_or("-").to_owned())
}

fn target(target: Option<AnyTarget<'_>>) -> String {
    match target {
        None => "null".to_owned(),
        Some(AnyTarget::Target(Target { address, .. })) => address.unwrap_or("-").to_owned(),
        Some(AnyTarget::Coordinator(_)) => "coordinator".to_owned(),
    }
}

fn error(error: Option<Error<'_>>) -> String {
    error.map_or(String::new(), |error| {
        format!(" {}: {}", error.condition.0, error.description.unwrap_or_default())
    })
}

fn state(state: Option<DeliveryState<'_>>) -> String {
    match state {
        None => "no state".to_owned(),
        Some(DeliveryState::Rejected(it)) => format!("rejected{}", error(it.error)),
        Some(DeliveryState::Accepted(_)) => "accepted".to_owned(),
        Some(DeliveryState::Released(_)) => "released".to_owned(),
        Some(other) => format!("{other:?}"),
    }
}

fn message(message: &[u8]) -> String {
    let limits = crate::amqp10::codec::Limits { properties_bytes_max: usize::MAX };
    let sections = Sections::walk(message, limits).unwrap();
    let header = sections.header().unwrap();
    let mut line = String::new();
    if header.delivery_count > 0 {
        line += &format!(" count={}", header.delivery_count);
    }
    let body: Vec<u8> = sections.data().flatten().copied().collect();
    let text = match sections.amqp_value().unwrap() {
        Some(Value::String(text)) => format!("'{text}'"),
        Some(other) => format!("{other:?}"),
        None => format!("\"{}\"", String::from_utf8_lossy(&body)),
    };
    format!("{line} {text}")
}

/// The messages of all whole transfers in an output, in order.
pub(crate) fn messages(mut output: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while !output.is_empty() {
        if output.starts_with(b"AMQP") {
            output = &output[frame::PROTOCOL_HEADER_BYTES..];
            continue;
        }
        let (frame, used) = frame::read(output, u32::MAX).unwrap().expect("whole frames only");
        output = &output[used..];
        if frame.kind != frame::SASL
            && !frame.body.is_empty()
            && let Ok((Performative::Transfer(_), payload)) = Performative::decode_body(frame.body)
        {
            messages.push(payload.to_vec());
        }
    }
    messages
}
