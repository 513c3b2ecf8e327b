//! Composite types: every one there and back, defaults, mandatory fields, descriptors, and what errors say.

use super::hex;
use super::random::Arbitrary;
use crate::amqp10::codec::*;
use crate::tests::random::Random;

/// A composite type with nothing but its name.
struct Row {
    info: CompositeInfo,
    mandatory: &'static [&'static str],
    decode: fn(&[u8]) -> Result<(), Malformed>,
}

macro_rules! rows {
    ($($type:ident: $($mandatory:literal)*;)*) => {
        /// Every composite type with its mandatory fields, as the specification has them.
        const ROWS: &[Row] = &[$(Row {
            info: $type::INFO,
            mandatory: &[$($mandatory),*],
            decode: |bytes| $type::decode(bytes).map(|_| ()),
        },)*];

        #[test]
        fn every_composite_comes_back_as_it_was() {
            let mut random = Random(21);
            $(for _ in 0..150 {
                let composite = <$type>::random(&mut random);
                let mut bytes = Vec::new();
                composite.write(&mut bytes);
                assert_eq!($type::decode(&bytes), Ok(composite), "{composite:?}");
                // By the descriptor's name it is the same.
                let info = $type::INFO;
                let symbol = [&[0, 0xa3, info.symbol.len() as u8], info.symbol.as_bytes()].concat();
                let named = [&symbol[..], &bytes[3..]].concat();
                assert_eq!($type::decode(&named), Ok(composite));
                // No end is left out.
                for end in (0..bytes.len()).rev().take(40) {
                    assert!($type::decode(&bytes[..end]).is_err(), "{composite:?} {end}");
                }
            })*
        }

        #[test]
        fn absent_and_null_fields_have_their_defaults() {
                        $(if mandatory_of($type::INFO.name).is_empty() {
                let nulls = nulls(&$type::INFO, $type::INFO.fields.len());
                assert_eq!($type::decode(&nulls), Ok($type::default()));
                let none = nulls_of(&$type::INFO);
                assert_eq!($type::decode(&none), Ok($type::default()));
                let mut written = Vec::new();
                $type::default().write(&mut written);
                assert_eq!(written, none, "defaults are left out");
            })*
        }
    };
}

fn mandatory_of(name: &str) -> &'static [&'static str] {
    ROWS.iter().find(|row| row.info.name == name).unwrap().mandatory
}

/// The composite of no fields at all.
fn nulls_of(info: &CompositeInfo) -> Vec<u8> {
    vec![0, 0x53, info.code as u8, 0x45]
}

/// The composite of this many nulls.
fn nulls(info: &CompositeInfo, count: usize) -> Vec<u8> {
    let mut bytes = vec![0, 0x53, info.code as u8, 0xc0, count as u8 + 1, count as u8];
    bytes.resize(bytes.len() + count, 0x40);
    bytes
}

rows! {
    Open: "container-id";
    Begin: "next-outgoing-id" "incoming-window" "outgoing-window";
    Attach: "name" "handle" "role";
    Flow: "incoming-window" "next-outgoing-id" "outgoing-window";
    Transfer: "handle";
    Disposition: "role" "first";
    Detach: "handle";
    End:;
    Close:;
    Error: "condition";
    Received: "section-number" "section-offset";
    Accepted:;
    Rejected:;
    Released:;
    Modified:;
    Declared: "txn-id";
    TransactionalState: "txn-id";
    Declare:;
    Discharge: "txn-id";
    Source:;
    Target:;
    Coordinator:;
    DeleteOnClose:;
    DeleteOnNoLinks:;
    DeleteOnNoMessages:;
    DeleteOnNoLinksOrMessages:;
    SaslMechanisms: "sasl-server-mechanisms";
    SaslInit: "mechanism";
    SaslChallenge: "challenge";
    SaslResponse: "response";
    SaslOutcome: "code";
    Header:;
    Properties:;
}

#[test]
fn mandatory_fields_are_asked_for_by_name() {
    for Row { info, mandatory, decode } in ROWS {
        for bytes in [nulls_of(info), nulls(info, info.fields.len())] {
            let Some(first) = mandatory.first() else {
                assert_eq!(decode(&bytes), Ok(()), "{}", info.name);
                continue;
            };
            let why = decode(&bytes).unwrap_err();
            let text = format!("field '{first}' of {} is mandatory and missing", info.name);
            assert_eq!((why.condition(), why.to_string()), (Condition::InvalidField, text));
        }
        assert!(mandatory.iter().all(|name| info.fields.contains(name)), "{}", info.name);
    }
}

#[test]
fn more_fields_than_there_are_and_other_descriptors_are_refused() {
    for Row { info, mandatory, decode } in ROWS {
        if mandatory.is_empty() {
            let why = decode(&nulls(info, info.fields.len() + 1)).unwrap_err();
            assert_eq!(
                why.to_string(),
                format!("{} has more fields than the specification gives it", info.name)
            );
            let mut bytes = nulls(info, 0);
            bytes[4] += 1;
            bytes.push(0x40);
            let why = decode(&bytes).unwrap_err().to_string();
            assert_eq!(why, format!("{} has a size that does not match its fields", info.name));
        }
        let mut bytes = nulls_of(info);
        bytes[2] = 0x7f;
        let why = decode(&bytes).unwrap_err().to_string();
        assert_eq!(why, format!("{} has the descriptor of another type", info.name));
        let no_list = [0, 0x53, info.code as u8, 0x40];
        assert_eq!(
            decode(&no_list).unwrap_err().to_string(),
            format!("{} is not a list", info.name)
        );
    }
}

#[test]
fn descriptors_are_those_of_the_specification() {
    let mut codes: Vec<_> = ROWS.iter().map(|row| row.info.code).collect();
    let all = codes.len();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), all);
    for Row { info, .. } in ROWS {
        assert_eq!(info.symbol, format!("amqp:{}:list", info.name));
    }
    let codes: Vec<_> = Performative::ALL.iter().map(|info| info.code).collect();
    assert_eq!(codes, (0x10..=0x18).collect::<Vec<_>>());
    assert_eq!(Open::INFO.fields.len(), 10);
}

#[test]
fn errors_name_the_innermost_field() {
    let cases = [
        (
            "005312 c01b07 a1016c 43 42 40 40 005328c00401a30171 40 ",
            "field 'address' of source is not of type string",
        ),
        (
            "005312 c00c06 a1016c 43 42 5003 40 40",
            "field 'snd-settle-mode' of attach has a value that is none of those allowed for it",
        ),
        ("005314 c00201 41", "field 'handle' of transfer is not of type uint"),
        (
            "005315 c00a05 41 43 40 40 00533045",
            "delivery-state has a descriptor of no type that is known there",
        ),
        (
            "005312 c00d07 a1016c 43 42 40 40 40 00532845",
            "target has a descriptor of no type that is known there",
        ),
        ("005310 c00401 a101ff", "field 'container-id' of open has a string that is not UTF-8"),
        ("00531a 45", "performative has a descriptor of no type that is known there"),
        ("40", "performative is not a described value"),
        ("", "performative ends in the middle of a value"),
        (
            "005314 c0 2904 43 43 a021 00000000000000000000000000000000000000000000000000\
                0000000000000000 43 40 40 40",
            "field 'delivery-tag' of transfer has more than 32 octets",
        ),
    ];
    for (bytes, text) in cases {
        let mut bytes = hex(bytes);
        // The size fits, whatever the row says.
        if bytes.len() > 6 && bytes[3] == 0xc0 {
            bytes[4] = (bytes.len() - 5) as u8;
        }
        let why = Performative::decode_body(&bytes).unwrap_err();
        assert_eq!(why.to_string(), text, "{bytes:02x?}");
    }
}

#[test]
fn conditions_have_their_symbols() {
    for &condition in Condition::ALL {
        assert_eq!(Condition::of_symbol(condition.symbol()), Some(condition));
        assert!(condition.to_string().starts_with("amqp:"));
    }
    assert_eq!(Condition::of_symbol("amqp:nothing"), None);
}
