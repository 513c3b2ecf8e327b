//! Random values of every type that fields have.

use crate::amqp10::codec::*;
use crate::tests::random::Random;
use std::sync::LazyLock;

/// A type of which there are random values.
pub(crate) trait Arbitrary: Sized {
    fn random(random: &mut Random) -> Self;
}

fn pick<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[random.below(choices.len())]
}

macro_rules! arbitrary {
    ($($type:ty, |$random:ident| $value:expr;)*) => {$(
        impl Arbitrary for $type {
            fn random($random: &mut Random) -> Self {
                $value
            }
        }
    )*};
}

/// A number that is often one that has a short form, or nearly.
fn number(random: &mut Random) -> u64 {
    match random.below(3) {
        0 => pick(random, &[0, 1, 127, 128, 255, 256, u64::from(u32::MAX), u64::MAX]),
        1 => random.next() >> random.below(64),
        _ => random.below(4) as u64,
    }
}

static LONG: LazyLock<String> = LazyLock::new(|| "long ".repeat(60));
static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| (0..300).map(|i| (i * 7) as u8).collect());
static VALUES: LazyLock<Vec<OwnedValue>> = LazyLock::new(|| {
    let mut random = Random(11);
    // A field that is null is absent.
    let values = (0..300).map(|_| random_value(&mut random, 4));
    values.filter(|it| it.value() != Value::Null).collect()
});
static MAPS: LazyLock<Vec<OwnedValue>> = LazyLock::new(|| {
    let mut random = Random(12);
    let maps = (0..100).map(|_| {
        OwnedValue::map(|map| {
            for _ in 0..random.below(6) {
                let value = random_value(&mut random, 3);
                map.put(&Symbol::random(&mut random), &value.value());
            }
        })
    });
    maps.collect()
});
static SYMBOLS: LazyLock<Vec<Symbol<'static>>> = LazyLock::new(|| {
    let mut random = Random(13);
    (0..20).map(|_| Symbol::random(&mut random)).collect()
});

arbitrary! {
    bool, |random| random.below(2) == 1;
    u8, |random| number(random) as u8;
    u16, |random| number(random) as u16;
    u32, |random| number(random) as u32;
    u64, |random| number(random);
    i8, |random| number(random) as i8;
    i16, |random| number(random) as i16;
    i32, |random| (number(random) as i32).wrapping_neg();
    i64, |random| (number(random) as i64).wrapping_neg();
    f32, |random| number(random) as f32 / 3.0;
    f64, |random| number(random) as f64 / 3.0;
    char, |random| pick(random, &['a', '\0', 'ß', '\u{10ffff}']);
    &str, |random| pick(random, &["", "a", "größe", "queue://x", LONG.as_str()]);
    &[u8], |random| &BYTES[..number(random).min(300) as usize];
    Symbol<'_>, |random| Symbol(pick(random, &["", "amqp:x", "x-opt-y", LONG.as_str()]));
    Timestamp, |random| Timestamp(i64::random(random));
    Uuid, |random| Uuid([number(random) as u8; 16]);
    DeliveryTag<'_>, |random| DeliveryTag(&BYTES[..random.below(33)]);
    Value<'_>, |random| VALUES[random.below(VALUES.len())].value();
    Map<'_>, |random| MAPS[random.below(MAPS.len())].as_map();
    Symbols<'_>, |random| Symbols::new(&SYMBOLS[random.below(18)..][..1 + random.below(2)]);
    Role, |random| pick(random, Role::ALL);
    SenderSettleMode, |random| pick(random, SenderSettleMode::ALL);
    ReceiverSettleMode, |random| pick(random, ReceiverSettleMode::ALL);
    TerminusDurability, |random| pick(random, TerminusDurability::ALL);
    TerminusExpiryPolicy, |random| pick(random, TerminusExpiryPolicy::ALL);
    DistributionMode, |random| pick(random, DistributionMode::ALL);
    SaslCode, |random| pick(random, SaslCode::ALL);
    MessageId<'_>, |random| match random.below(4) {
        0 => MessageId::ULong(Arbitrary::random(random)),
        1 => MessageId::Uuid(Arbitrary::random(random)),
        2 => MessageId::Binary(Arbitrary::random(random)),
        _ => MessageId::String(Arbitrary::random(random)),
    };
}

/// A value of any type that is nested at most this deep.
pub(super) fn random_value(random: &mut Random, depth: usize) -> OwnedValue {
    let mut bytes = Vec::new();
    put_random(&mut bytes, random, depth);
    OwnedValue::decode(&bytes).unwrap()
}

fn put_random(out: &mut Vec<u8>, random: &mut Random, depth: usize) {
    match random.below(if depth == 0 { 20 } else { 30 }) {
        0 => Value::Null.write(out),
        1 => bool::random(random).write(out),
        2 => u8::random(random).write(out),
        3 => u16::random(random).write(out),
        4 => u32::random(random).write(out),
        5 => u64::random(random).write(out),
        6 => i8::random(random).write(out),
        7 => i16::random(random).write(out),
        8 => i32::random(random).write(out),
        9 => i64::random(random).write(out),
        10 => f32::random(random).write(out),
        11 => f64::random(random).write(out),
        12 => char::random(random).write(out),
        13 => Timestamp::random(random).write(out),
        14 => Uuid::random(random).write(out),
        15 => <&[u8]>::random(random).write(out),
        16 | 17 => <&str>::random(random).write(out),
        18 => Symbol::random(random).write(out),
        19 => {
            let octets = [number(random) as u8; 16];
            pick(random, &[Value::Decimal128(octets), Value::Decimal64([1; 8])]).write(out);
        }
        20..23 => {
            let items: Vec<_> =
                (0..random.below(5)).map(|_| random_value(random, depth - 1)).collect();
            put_list(out, |list| items.iter().for_each(|item| list.put(&item.value())));
        }
        23..26 => put_map(out, |map| {
            for number in 0..random.below(5) as u32 {
                map.put(&number, &random_value(random, depth - 1).value());
            }
        }),
        26 => put_array(out, &[u32::random(random), u32::random(random)]),
        27 => put_array(out, &[<&str>::random(random), "b"]),
        _ => {
            out.push(wire::DESCRIBED);
            match random.below(2) {
                0 => u64::random(random).write(out),
                _ => Symbol::random(random).write(out),
            }
            put_random(out, random, depth - 1);
        }
    }
}
