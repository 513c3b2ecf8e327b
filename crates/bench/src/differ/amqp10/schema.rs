//! AMQP 1.0's composite types as a table: descriptor, fields, and the values that fields have by default.

/// How a field is written in scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    /// `sender` or `receiver`.
    Role,
    Ubyte,
    Ushort,
    Uint,
    Ulong,
    Time,
    Text,
    Symbol,
    /// Several symbols, with `+` between them.
    Symbols,
    Binary,
    /// That composite in braces, or any value.
    One(&'static str),
    Any,
}

/// A field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// As text; empty where it has none.
    pub(super) default: &'static str,
}

/// A composite type.
#[derive(Debug)]
pub(super) struct Composite {
    pub(super) code: u8,
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
}

macro_rules! composites {
    ($($code:literal $name:literal { $($field:literal $kind:expr $(, $default:literal)?;)* })*) => {
        const COMPOSITES: &[Composite] = {
            use Kind::*;
            &[$(Composite {
                code: $code,
                name: $name,
                fields: &[$(Field { name: $field, kind: $kind, default: concat!($($default)?) },)*],
            },)*]
        };
    };
}

composites! {
    0x10 "open" {
        "container-id" Text; "hostname" Text; "max-frame-size" Uint; "channel-max" Ushort;
        "idle-time-out" Uint; "outgoing-locales" Symbols; "incoming-locales" Symbols;
        "offered-capabilities" Symbols; "desired-capabilities" Symbols; "properties" Any;
    }
    0x11 "begin" {
        "remote-channel" Ushort; "next-outgoing-id" Uint; "incoming-window" Uint; "outgoing-window" Uint;
        "handle-max" Uint; "offered-capabilities" Symbols; "desired-capabilities" Symbols; "properties" Any;
    }
    0x12 "attach" {
        "name" Text; "handle" Uint; "role" Role; "snd-settle-mode" Ubyte, "2"; "rcv-settle-mode" Ubyte, "0";
        "source" One("source"); "target" One("target"); "unsettled" Any;
        "incomplete-unsettled" Bool, "false"; "initial-delivery-count" Uint; "max-message-size" Ulong;
        "offered-capabilities" Symbols; "desired-capabilities" Symbols; "properties" Any;
    }
    0x13 "flow" {
        "next-incoming-id" Uint; "incoming-window" Uint; "next-outgoing-id" Uint; "outgoing-window" Uint;
        "handle" Uint; "delivery-count" Uint; "link-credit" Uint; "available" Uint; "drain" Bool, "false";
        "echo" Bool, "false"; "properties" Any;
    }
    0x14 "transfer" {
        "handle" Uint; "delivery-id" Uint; "delivery-tag" Binary; "message-format" Uint, "0";
        "settled" Bool, "false"; "more" Bool, "false"; "rcv-settle-mode" Ubyte; "state" Any;
        "resume" Bool, "false"; "aborted" Bool, "false"; "batchable" Bool, "false";
    }
    0x15 "disposition" {
        "role" Role; "first" Uint; "last" Uint; "settled" Bool, "false"; "state" Any;
        "batchable" Bool, "false";
    }
    0x16 "detach" { "handle" Uint; "closed" Bool, "false"; "error" One("error"); }
    0x17 "end" { "error" One("error"); }
    0x18 "close" { "error" One("error"); }
    0x1d "error" { "condition" Symbol; "description" Text; "info" Any; }
    0x23 "received" { "section-number" Uint; "section-offset" Ulong; }
    0x24 "accepted" {}
    0x25 "rejected" { "error" One("error"); }
    0x26 "released" {}
    0x27 "modified" {
        "delivery-failed" Bool, "false"; "undeliverable-here" Bool, "false"; "message-annotations" Any;
    }
    0x28 "source" {
        "address" Text; "durable" Uint, "0"; "expiry-policy" Symbol, "session-end"; "timeout" Uint, "0";
        "dynamic" Bool, "false"; "dynamic-node-properties" Any; "distribution-mode" Symbol; "filter" Any;
        "default-outcome" Any; "outcomes" Symbols; "capabilities" Symbols;
    }
    0x29 "target" {
        "address" Text; "durable" Uint, "0"; "expiry-policy" Symbol, "session-end"; "timeout" Uint, "0";
        "dynamic" Bool, "false"; "dynamic-node-properties" Any; "capabilities" Symbols;
    }
    0x2b "delete-on-close" {}
    0x30 "coordinator" { "capabilities" Symbols; }
    0x31 "declare" { "global-id" Any; }
    0x32 "discharge" { "txn-id" Binary; "fail" Bool, "false"; }
    0x33 "declared" { "txn-id" Binary; }
    0x34 "transactional" { "txn-id" Binary; "outcome" Any; }
    0x40 "sasl-mechanisms" { "sasl-server-mechanisms" Symbols; }
    0x41 "sasl-init" { "mechanism" Symbol; "initial-response" Binary; "hostname" Text; }
    0x42 "sasl-challenge" { "challenge" Binary; }
    0x43 "sasl-response" { "response" Binary; }
    0x44 "sasl-outcome" { "code" Ubyte; "additional-data" Binary; }
    0x70 "header" {
        "durable" Bool, "false"; "priority" Ubyte, "4"; "ttl" Uint; "first-acquirer" Bool, "false";
        "delivery-count" Uint, "0";
    }
    0x73 "properties" {
        "message-id" Any; "user-id" Binary; "to" Text; "subject" Text; "reply-to" Text;
        "correlation-id" Any; "content-type" Symbol; "content-encoding" Symbol;
        "absolute-expiry-time" Time; "creation-time" Time; "group-id" Text; "group-sequence" Uint;
        "reply-to-group-id" Text;
    }
}

/// The composite of that name.
pub(super) fn find(name: &str) -> Option<&'static Composite> {
    COMPOSITES.iter().find(|composite| composite.name == name)
}

/// The composite of that descriptor.
pub(super) fn find_code(code: u64) -> Option<&'static Composite> {
    COMPOSITES.iter().find(|composite| u64::from(composite.code) == code)
}

/// The composite of that descriptor, which is a symbol such as `amqp:open:list`.
pub(super) fn find_symbol(symbol: &[u8]) -> Option<&'static Composite> {
    let symbol = std::str::from_utf8(symbol).ok()?;
    find(symbol.strip_prefix("amqp:")?.strip_suffix(":list")?)
}

/// The sections of a message that are no composites, by their descriptors.
pub(super) const SECTIONS: &[(u8, &str)] = &[
    (0x71, "delivery-annotations"),
    (0x72, "annotations"),
    (0x74, "application"),
    (0x75, "data"),
    (0x76, "sequence"),
    (0x77, "value"),
    (0x78, "footer"),
];
