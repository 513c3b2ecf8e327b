//! Hostile bytes: frames and messages with their bytes changed. Nothing panics, and every walk over what is
//! accepted ends.

use super::random::Arbitrary;
use crate::amqp10::codec::*;
use crate::amqp10::frame;
use crate::tests::random::Random;

/// Changes bytes in one of the ways in which peers get them wrong, on purpose or not.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(7) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = [0, 1, 0x40, 0x45, 0x7f, 0x80, 0xff][random.below(7)],
        2 => bytes.truncate(at),
        // Another type, or another width of the same.
        3 => bytes[at] ^= 0x10 << random.below(4),
        4 => drop(bytes.splice(at..at, [0, 0x53, random.next() as u8])),
        5 => {
            let end = (at + 1 + random.below(8)).min(bytes.len());
            bytes.drain(at..end);
        }
        // A size or count becomes huge.
        _ => {
            let end = (at + 4).min(bytes.len());
            bytes[at..end].fill(0xff);
        }
    }
}

/// Visits all that is inside of a value and counts it.
fn count(value: Value<'_>) -> usize {
    1 + match value {
        Value::List(list) => list.values().map(count).sum(),
        Value::Map(map) => map.entries().map(|(key, value)| count(key) + count(value)).sum(),
        Value::Array(array) => array.values().map(count).sum(),
        Value::Described(described) => count(described.value()),
        _ => 0,
    }
}

/// Decodes bytes as everything that they could be; what is accepted is written and read again.
fn decode(bytes: &[u8]) {
    if let Ok(value) = Value::decode(bytes) {
        let visited = count(value);
        assert!(visited <= bytes.len() * (ZERO_WIDTH_ELEMENTS_MAX as usize + 1));
        assert_eq!(count(OwnedValue::new(&value).value()), visited);
    }
    if let Ok((performative, payload)) = Performative::decode_body(bytes) {
        let mut again = Vec::new();
        performative.write(&mut again);
        again.extend_from_slice(payload);
        // Debug's text, because a number that is none is not equal to itself.
        let text = |bytes: &[u8]| format!("{:?}", Performative::decode_body(bytes));
        assert_eq!(text(&again), text(bytes));
    }
    let _ = SaslPerformative::decode_body(bytes);
    let _ = decode_body::<Transfer<'_>>(bytes);
    let _ = frame::read(bytes, 4096);
    if let Ok(sections) = Sections::walk(bytes, Limits { properties_bytes_max: 4096 }) {
        let _ = (sections.header(), sections.properties(), sections.application_properties());
        let _ = (sections.delivery_annotations(), sections.message_annotations());
        let _ = (sections.footer(), sections.amqp_value());
        assert!(sections.data().map(<[u8]>::len).sum::<usize>() <= bytes.len());
        assert!(sections.sequences().count() <= bytes.len());
    }
}

/// A valid performative, SASL frame or message.
fn valid(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    match random.below(4) {
        0 => SaslPerformative::random(random).write(&mut bytes),
        1 | 2 => Performative::random(random).write(&mut bytes),
        _ => {
            Header::random(random).write(&mut bytes);
            put_section(&mut bytes, SectionKind::MessageAnnotations, &Map::random(random));
            Properties::random(random).write(&mut bytes);
            put_section(&mut bytes, SectionKind::Value, &Value::random(random));
        }
    }
    bytes
}

#[test]
fn changed_bytes_never_panic() {
    for seed in 0..3000 {
        let mut random = Random(seed);
        let mut bytes = valid(&mut random);
        for _ in 0..1 + random.below(4) {
            if !bytes.is_empty() {
                mutate(&mut bytes, &mut random);
            }
        }
        decode(&bytes);
    }
}

#[test]
fn noise_never_panics() {
    let mut random = Random(77);
    for length in (0..200).cycle().take(5000) {
        let noise: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        decode(&noise);
    }
}

#[test]
fn an_array_with_a_long_descriptor_costs_no_more_than_its_octets() {
    // A hundred thousand elements of one octet each, behind a descriptor of as many.
    let name = vec![b'n'; 100_000];
    let mut inner = vec![0, 0xb3];
    inner.extend_from_slice(&100_000u32.to_be_bytes());
    inner.extend_from_slice(&name);
    inner.push(0x50);
    inner.extend_from_slice(&name);
    let mut bytes = vec![0xf0];
    bytes.extend_from_slice(&(inner.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(&100_000u32.to_be_bytes());
    bytes.extend_from_slice(&inner);
    assert_eq!(count(Value::decode(&bytes).unwrap()), 200_001);
}
