//! Values of every type in every encoding.

use super::hex;
use super::random::{Arbitrary, random_value};
use crate::amqp10::codec::value::{self, check};
use crate::amqp10::codec::wire::Reader;
use crate::amqp10::codec::*;
use crate::tests::random::Random;

fn decode(bytes: &[u8]) -> Result<Value<'_>, Malformed> {
    Value::decode(bytes)
}

#[test]
fn every_encoding_of_every_scalar_is_read() {
    let uuid = Uuid(*b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff");
    let cases: &[(&str, Value<'_>)] = &[
        ("40", Value::Null),
        ("41", Value::Boolean(true)),
        ("42", Value::Boolean(false)),
        ("56 01", Value::Boolean(true)),
        ("56 00", Value::Boolean(false)),
        ("50 05", Value::UByte(5)),
        ("60 0005", Value::UShort(5)),
        ("43", Value::UInt(0)),
        ("52 ff", Value::UInt(255)),
        ("70 00000005", Value::UInt(5)),
        ("44", Value::ULong(0)),
        ("53 05", Value::ULong(5)),
        ("80 0000468c00000004", Value::ULong(0x468c_0000_0004)),
        ("51 ff", Value::Byte(-1)),
        ("61 fffe", Value::Short(-2)),
        ("54 fb", Value::Int(-5)),
        ("71 fffffe0c", Value::Int(-500)),
        ("55 ff", Value::Long(-1)),
        ("81 fffffffffffffc18", Value::Long(-1000)),
        ("72 c0200000", Value::Float(-2.5)),
        ("82 3ff8000000000000", Value::Double(1.5)),
        ("74 00000007", Value::Decimal32([0, 0, 0, 7])),
        ("84 0102030405060708", Value::Decimal64([1, 2, 3, 4, 5, 6, 7, 8])),
        ("94 30313233343536373839616263646566", Value::Decimal128(*b"0123456789abcdef")),
        ("73 000020ac", Value::Char('€')),
        ("83 0000018bcfe56800", Value::Timestamp(Timestamp(1_700_000_000_000))),
        ("83 ffffffffffffffff", Value::Timestamp(Timestamp(-1))),
        ("98 00112233445566778899aabbccddeeff", Value::Uuid(uuid)),
        ("a0 02 6162", Value::Binary(b"ab")),
        ("b0 00000002 ff00", Value::Binary(&[0xff, 0])),
        ("a1 03 e282ac", Value::String("€")),
        ("b1 00000003 e282ac", Value::String("€")),
        ("a1 00", Value::String("")),
        ("a3 03 612d62", Value::Symbol(Symbol("a-b"))),
        ("b3 00000001 61", Value::Symbol(Symbol("a"))),
    ];
    for &(bytes, value) in cases {
        let bytes = hex(bytes);
        assert_eq!(decode(&bytes), Ok(value), "{bytes:02x?}");
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "{bytes:02x?} cut at {end}");
        }
    }
}

#[test]
fn the_smallest_encoding_is_written() {
    let long = "x".repeat(256);
    let cases: &[(Value<'_>, &str)] = &[
        (Value::Null, "40"),
        (Value::Boolean(true), "41"),
        (Value::Boolean(false), "42"),
        (Value::UInt(0), "43"),
        (Value::UInt(255), "52ff"),
        (Value::UInt(256), "7000000100"),
        (Value::ULong(0), "44"),
        (Value::ULong(255), "53ff"),
        (Value::ULong(256), "800000000000000100"),
        (Value::Int(-128), "5480"),
        (Value::Int(128), "7100000080"),
        (Value::Long(127), "557f"),
        (Value::Long(-129), "81ffffffffffffff7f"),
        (Value::String("a"), "a10161"),
        (Value::Symbol(Symbol("a")), "a30161"),
        (Value::Binary(b"a"), "a00161"),
    ];
    for &(value, bytes) in cases {
        let mut out = Vec::new();
        value.write(&mut out);
        assert_eq!(out, hex(bytes), "{value:?}");
    }
    for (value, head) in [
        (Value::String(&long), "b100000100"),
        (Value::Symbol(Symbol(&long)), "b300000100"),
        (Value::Binary(long.as_bytes()), "b000000100"),
    ] {
        let mut out = Vec::new();
        value.write(&mut out);
        assert_eq!(out, [hex(head), long.as_bytes().to_vec()].concat());
        assert_eq!(decode(&out), Ok(value));
    }
}

/// The scalars in a list, array or described value.
fn inner(value: Value<'_>) -> Vec<Value<'_>> {
    match value {
        Value::List(list) => list.values().collect(),
        Value::Array(array) => array.values().collect(),
        Value::Map(map) => map.entries().flat_map(|(key, value)| [key, value]).collect(),
        Value::Described(described) => vec![described.value()],
        _ => panic!("{value:?} has nothing in it"),
    }
}

#[test]
fn compound_values_of_other_implementations_are_read() {
    let cases: &[(&str, &[Value<'_>])] = &[
        // proton
        ("f00000001100000003 71 000000010000000200000003", &[1, 2, 3].map(Value::Int)),
        ("f0000000050000000071", &[]),
        ("f00000000f00000002b300000001610000000162", &["a", "b"].map(|a| Value::Symbol(Symbol(a)))),
        ("f00000000700000002560100", &[true, false].map(Value::Boolean)),
        ("45", &[]),
        ("d10000000400000000", &[]),
        ("005307a10176", &[Value::String("v")]),
        ("f00000000b00000001a3057175657565", &[Value::Symbol(Symbol("queue"))]),
        // rhea
        ("d10000000900000002a1016b5201", &[Value::String("k"), Value::UInt(1)]),
        ("d00000000800000002a1017841", &[Value::String("x"), Value::Boolean(true)]),
        ("00a3076d793a64657363a10178", &[Value::String("x")]),
        // by hand
        ("c0 04 02 43 5201", &[Value::UInt(0), Value::UInt(1)]),
        ("c0 01 00", &[]),
        ("c1 05 02 a10161 40", &[Value::String("a"), Value::Null]),
        ("e0 04 02 50 0102", &[Value::UByte(1), Value::UByte(2)]),
        ("e0 02 03 41", &[Value::Boolean(true); 3]),
        ("e0 01 00", &[]),
        ("e0 02 00 a3", &[]),
    ];
    for &(bytes, values) in cases {
        let bytes = hex(bytes);
        let value = decode(&bytes).unwrap_or_else(|why| panic!("{bytes:02x?} {why}"));
        assert_eq!(inner(value), values, "{bytes:02x?}");
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "{bytes:02x?} cut at {end}");
        }
    }
}

#[test]
fn an_array_of_described_values_gives_each_its_descriptor() {
    // proton
    let bytes = hex("f00000000d0000000100a301647100000001");
    let values = inner(decode(&bytes).unwrap());
    let [Value::Described(described)] = values[..] else { panic!("{values:?}") };
    assert_eq!(described.descriptor(), Descriptor::Name(Symbol("d")));
    assert_eq!(described.value(), Value::Int(1));
}

#[test]
fn a_map_is_searched_by_string_and_by_symbol() {
    let bytes = hex("c1 0e 06 a10161 5201 a30162 5202 5203 40");
    let Ok(Value::Map(map)) = decode(&bytes) else { panic!() };
    assert_eq!((map.len(), map.is_empty()), (3, false));
    assert_eq!(map.get("a"), Some(Value::UInt(1)));
    assert_eq!(map.get("b"), Some(Value::UInt(2)));
    assert_eq!(map.get("c"), None);
}

#[test]
fn what_is_no_value_is_refused_with_a_reason() {
    let cases = [
        ("", "ends in the middle of a value"),
        ("57", "has a format code that no type has"),
        ("10", "has a format code that no type has"),
        ("56 02", "has a boolean that is neither 0 nor 1"),
        ("73 0000d800", "has a char that is no Unicode scalar value"),
        ("a1 01 ff", "has a string that is not UTF-8"),
        ("a3 02 c3a4", "has a symbol that is not ASCII"),
        ("c0 01 01", "has a list, map or array whose size or count does not match its contents"),
        (
            "c0 03 01 41 41",
            "has a list, map or array whose size or count does not match its contents",
        ),
        ("c0 00", "has a list, map or array whose size or count does not match its contents"),
        ("c0 05 02 a1 03 61", "ends in the middle of a value"),
        (
            "d0 00000004 ffffffff",
            "has a list, map or array whose size or count does not match its contents",
        ),
        ("c1 02 01 41", "has a map with a key and no value"),
        (
            "e0 04 03 50 0102",
            "has a list, map or array whose size or count does not match its contents",
        ),
        (
            "e0 03 00 50 01",
            "has a list, map or array whose size or count does not match its contents",
        ),
        (
            "e0 03 02 a1 00",
            "has a list, map or array whose size or count does not match its contents",
        ),
        ("e0 02 01 57", "has a format code that no type has"),
        (
            "00 a101 61 40",
            "has a descriptor that is neither ulong nor symbol, which the specification reserves",
        ),
        (
            "00 00 5301 40 40",
            "has a descriptor that is neither ulong nor symbol, which the specification reserves",
        ),
        (
            "e0 08 01 00 5301 00 5302 40",
            "has an array whose elements have more than one descriptor each",
        ),
        ("40 40", "is followed by octets that belong to nothing"),
    ];
    for (bytes, why) in cases {
        assert_eq!(decode(&hex(bytes)).unwrap_err().why(), why, "{bytes}");
    }
}

#[test]
fn elements_without_octets_are_bounded() {
    for code in ["40", "41", "42", "43", "44", "45"] {
        assert!(decode(&hex(&format!("f0 00000005 00000010 {code}"))).is_ok(), "{code}");
        for count in ["00000011", "00100000", "ffffffff"] {
            let why = decode(&hex(&format!("f0 00000005 {count} {code}"))).unwrap_err();
            assert_eq!(why.condition(), Condition::ResourceLimitExceeded, "{code} {count}");
        }
    }
}

/// Makes another value of a value.
type Around = fn(Vec<u8>) -> Vec<u8>;

/// A null inside of `depth` times what `around` makes of a value.
fn nested(depth: usize, around: Around) -> Vec<u8> {
    (0..depth).fold(vec![0x40], |value, _| around(value))
}

#[test]
fn depth_is_limited_for_every_kind_of_nesting() {
    let kinds: &[Around] = &[
        |value| {
            [&[0xd0][..], &(value.len() as u32 + 4).to_be_bytes(), &[0, 0, 0, 1], &value].concat()
        },
        |value| {
            let size = value.len() as u32 + 5;
            [&[0xd1][..], &size.to_be_bytes(), &[0, 0, 0, 2, 0x40], &value].concat()
        },
        |value| {
            [&[0xf0][..], &(value.len() as u32 + 4).to_be_bytes(), &[0, 0, 0, 1], &value].concat()
        },
        |value| [&[0, 0x53, 1][..], &value].concat(),
    ];
    for (number, &around) in kinds.iter().enumerate() {
        assert!(decode(&nested(DEPTH_MAX, around)).is_ok(), "kind {number}");
        for depth in [DEPTH_MAX + 1, 5000] {
            let why = decode(&nested(depth, around)).unwrap_err();
            assert_eq!(why.condition(), Condition::ResourceLimitExceeded, "kind {number}");
        }
    }
}

#[test]
fn random_values_come_back_as_they_were() {
    let mut random = Random(1);
    for _ in 0..2000 {
        let value = random_value(&mut random, 5);
        let mut again = Vec::new();
        value.value().write(&mut again);
        assert_eq!(decode(&again), Ok(value.value()));
        assert_eq!(OwnedValue::decode(&again).map(|it| it.value() == value.value()), Ok(true));
        // Skipped by its width, it has the same end.
        let followed = [value.bytes(), &[0x40]].concat();
        let mut reader = Reader::new(&followed);
        value::read(&mut reader).unwrap();
        assert_eq!(reader.rest(), [0x40]);
        check(value.value(), 1).unwrap();
    }
}

#[test]
fn one_entry_or_element_is_found_by_passing_those_before_it() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let values: Vec<_> = (0..random.below(6)).map(|_| random_value(&mut random, 3)).collect();
        let names = ["", "a", "ab", "size"];
        let map = OwnedValue::map(|map| {
            for value in &values {
                match random.below(3) {
                    0 => map.put(&names[random.below(4)], &value.value()),
                    1 => map.put(&Symbol(names[random.below(4)]), &value.value()),
                    _ => map.put(&value.value(), &value.value()),
                }
            }
        });
        for name in names {
            assert_eq!(entry_named(map.bytes(), name), map.as_map().get(name), "{seed} {name}");
        }
        let mut list = Vec::new();
        put_list(&mut list, |list| values.iter().for_each(|value| list.put(&value.value())));
        for number in 0..=values.len() {
            let expected = values.get(number).map(OwnedValue::value);
            assert_eq!(element(&list, number), expected, "{seed} {number}");
        }
        // Of what was cut off there is nothing, or what came before.
        for end in 0..list.len() {
            assert_eq!(element(&list[..end], 0), None, "{seed} {end}");
        }
        for end in 0..map.bytes().len() {
            assert_eq!(entry_named(&map.bytes()[..end], "a"), None, "{seed} {end}");
        }
    }
}

#[test]
fn lists_maps_and_arrays_grow_beyond_their_short_forms() {
    for count in [0u32, 1, 80, 250, 254, 255, 256, 300, 70_000] {
        let numbers: Vec<u32> = (0..count).collect();
        let mut bytes = Vec::new();
        put_list(&mut bytes, |list| numbers.iter().for_each(|number| list.put(number)));
        let values: Vec<_> = numbers.iter().map(|&number| Value::UInt(number)).collect();
        assert_eq!(inner(decode(&bytes).unwrap()), values);
        let mut bytes = Vec::new();
        put_array(&mut bytes, &numbers);
        assert_eq!(inner(decode(&bytes).unwrap()), values);
        let map = OwnedValue::map(|map| numbers.iter().for_each(|number| map.put(number, number)));
        assert!(map.as_map().entries().eq(values.iter().map(|&value| (value, value))));
    }
}

macro_rules! arrays {
    ($($type:ty => $variant:ident,)*) => {
        #[test]
        fn arrays_of_every_type_come_back_as_they_were() {
            let mut random = Random(5);
            $(for count in [0, 1, 5, 400] {
                let items: Vec<$type> = (0..count).map(|_| Arbitrary::random(&mut random)).collect();
                let mut bytes = Vec::new();
                put_array(&mut bytes, &items);
                let values: Vec<_> = items.iter().map(|&item| Value::$variant(item)).collect();
                assert_eq!(inner(decode(&bytes).unwrap()), values);
            })*
        }
        #[test]
        fn fields_of_every_type_refuse_the_others() {
            let mut random = Random(6);
            $(
                let mut bytes = Vec::new();
                let item: $type = Arbitrary::random(&mut random);
                item.write(&mut bytes);
                assert_eq!(<$type>::decode(&bytes), Ok(item));
                for (number, other) in SCALARS.iter().enumerate() {
                    let accepts = <$type>::decode(&hex(other)).is_ok();
                    assert_eq!(accepts, stringify!($variant) == NAMES[number], "{other}");
                }
            )*
        }
    };
}

const SCALARS: &[&str] = &[
    "41",
    "5001",
    "600001",
    "43",
    "44",
    "5101",
    "610001",
    "5401",
    "5501",
    "7200000000",
    "820000000000000000",
    "7300000041",
    "830000000000000000",
    "9800000000000000000000000000000000",
    "a000",
    "a100",
    "a300",
];
const NAMES: &[&str] = &[
    "Boolean",
    "UByte",
    "UShort",
    "UInt",
    "ULong",
    "Byte",
    "Short",
    "Int",
    "Long",
    "Float",
    "Double",
    "Char",
    "Timestamp",
    "Uuid",
    "Binary",
    "String",
    "Symbol",
];

arrays! {
    bool => Boolean,
    u8 => UByte,
    u16 => UShort,
    u32 => UInt,
    u64 => ULong,
    i8 => Byte,
    i16 => Short,
    i32 => Int,
    i64 => Long,
    f32 => Float,
    f64 => Double,
    char => Char,
    Timestamp => Timestamp,
    Uuid => Uuid,
    &[u8] => Binary,
    &str => String,
    Symbol<'_> => Symbol,
}

#[test]
fn several_symbols_are_read_in_each_form() {
    let names = |bytes: &str| {
        let bytes = hex(bytes);
        let names = Symbols::decode(&bytes);
        names
            .map(|it| it.iter().map(|it| it.0.to_string()).collect::<Vec<_>>())
            .map_err(|it| it.why())
    };
    assert_eq!(names("a30161"), Ok(vec!["a".to_string()]));
    assert_eq!(names("e0 06 02 a3 0161 0162"), Ok(vec!["a".to_string(), "b".to_string()]));
    assert_eq!(names("e0 01 00"), Ok(vec![]));
    let why = "is neither a symbol nor an array of symbols";
    for wrong in ["a10161", "e0 04 01 a1 0161", "e0 07 01 00 5301 a3 0161", "40"] {
        assert_eq!(names(wrong), Err(why), "{wrong}");
    }
    let mut out = Vec::new();
    Symbols::NONE.write(&mut out);
    assert_eq!(out, hex("e00200a3"));
    assert_eq!(
        Symbols::decode(&hex("e0 06 02 a3 0161 0162")),
        Ok(Symbols::new(&[Symbol("a"), Symbol("b")]))
    );
}
