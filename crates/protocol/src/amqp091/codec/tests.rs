//! Codec tests: every method there and back, tables of every type, limits, and bytes that are wrong.

use super::content::{ACK, Deliver, PublishMethod, Tagged, write_header};
use super::method::DecodeError;
use super::properties::{Edit, Properties, header as header_named, rewrite, scan};
use super::table::{DEPTH_MAX, checked, checked_headers, put_table};
use super::*;
use crate::amqp091::frame::{self, FrameError};
use crate::tests::random::Random;

fn random_table(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_table(&mut bytes, |table| {
        for number in 0..random.below(3) {
            table.int(&format!("n{number}"), random.next() as i64);
            table.text("text", "größe");
            table.bool("yes", true);
            table.value("when").timestamp(1_700_000_000);
            table.value("list").array(&["a", "b"], |value, text| value.text(text));
            table.table("inner", |inner| inner.text("x", "y"));
        }
    });
    bytes
}

/// The payload of a method with random fields.
fn random_payload(info: &MethodInfo, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&info.class.to_be_bytes());
    bytes.extend_from_slice(&info.id.to_be_bytes());
    let mut bits = 0;
    for &(_, kind) in info.fields {
        if kind == "Bit" {
            if bits == 0 {
                bytes.push(0);
            }
            *bytes.last_mut().unwrap() |= (random.below(2) as u8) << bits;
            bits += 1;
            continue;
        }
        bits = 0;
        match kind {
            "Octet" => bytes.push(random.next() as u8),
            "Short" => bytes.extend_from_slice(&(random.next() as u16).to_be_bytes()),
            "Long" => bytes.extend_from_slice(&(random.next() as u32).to_be_bytes()),
            "LongLong" => bytes.extend_from_slice(&random.next().to_be_bytes()),
            "ShortStr" => wire::put_short_str(&mut bytes, &"ä".repeat(random.below(128))),
            "LongStr" => wire::put_long_str(&mut bytes, &vec![7; random.below(300)]),
            "Table" => bytes.extend_from_slice(&random_table(random)),
            _ => unreachable!(),
        }
    }
    bytes
}

#[test]
fn every_method_comes_back_as_it_was() {
    let mut random = Random(1);
    for info in METHODS {
        for _ in 0..20 {
            let payload = random_payload(info, &mut random);
            let method = Method::decode(&payload).unwrap();
            assert_eq!((method.ids(), method.name()), ((info.class, info.id), info.name));
            let mut encoded = Vec::new();
            method.encode(&mut encoded);
            assert_eq!(encoded, payload, "{}", info.name);
        }
    }
}

#[test]
fn every_truncated_or_prolonged_method_is_refused() {
    let mut random = Random(2);
    for info in METHODS {
        let mut payload = random_payload(info, &mut random);
        for end in 0..payload.len() {
            let wrong = Method::decode(&payload[..end]);
            assert!(matches!(wrong, Err(DecodeError::Malformed(_))), "{} {end}", info.name);
        }
        payload.push(0);
        assert!(Method::decode(&payload).is_err(), "{}", info.name);
    }
}

#[test]
fn the_table_has_every_method_once_and_in_order() {
    let numbers: Vec<_> = METHODS.iter().map(|info| (info.class, info.id)).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(numbers, sorted);
    assert_eq!(numbers.len(), 66);
    assert_eq!(Method::decode(&[0, 60, 0, 99]), Err(DecodeError::Unknown { class: 60, id: 99 }));
}

#[test]
fn hand_written_methods_equal_the_derived_ones() {
    let mut by_hand = Vec::new();
    let publish =
        PublishMethod { exchange: "e", routing_key: "k.ü", mandatory: true, immediate: false };
    publish.write_frame(3, &mut by_hand);
    let deliver = Deliver {
        consumer_tag: "tag",
        delivery_tag: 1 << 40,
        redelivered: true,
        exchange: "",
        routing_key: "key",
    };
    deliver.write_frame(3, &mut by_hand);
    Tagged { delivery_tag: 77, bits: 1 }.write_frame(ACK, 3, &mut by_hand);

    let mut derived = Vec::new();
    let (exchange, routing_key) = ("e", "k.ü");
    Method::BasicPublish { ticket: 0, exchange, routing_key, mandatory: true, immediate: false }
        .write_frame(3, &mut derived);
    Method::BasicDeliver {
        consumer_tag: "tag",
        delivery_tag: 1 << 40,
        redelivered: true,
        exchange: "",
        routing_key: "key",
    }
    .write_frame(3, &mut derived);
    Method::BasicAck { delivery_tag: 77, multiple: true }.write_frame(3, &mut derived);
    assert_eq!(by_hand, derived);

    let (frame, _) = frame::read(&by_hand, 0).unwrap().unwrap();
    assert_eq!(PublishMethod::decode(&frame.payload[4..]), Ok(publish));
}

/// A table of one entry `a` with a value of that type and encoding.
fn entry(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[1, b'a', kind][..], value].concat()
}

#[test]
fn every_value_type_is_read() {
    let cases: &[(u8, &[u8], FieldValue<'_>)] = &[
        (b't', &[1], FieldValue::Bool(true)),
        (b'b', &[0xff], FieldValue::Int(-1)),
        (b'B', &[0xff], FieldValue::Int(255)),
        (b's', &[0xff, 0xfe], FieldValue::Int(-2)),
        (b'u', &[0xff, 0xff], FieldValue::Int(65_535)),
        (b'I', &[0xff, 0xff, 0xff, 0xff], FieldValue::Int(-1)),
        (b'i', &[0xff, 0xff, 0xff, 0xff], FieldValue::Int(u32::MAX as i64)),
        (b'l', &[0xff; 8], FieldValue::Int(-1)),
        (b'L', &[0xff; 8], FieldValue::Int(i64::MAX)),
        (b'f', &[0x3f, 0xc0, 0, 0], FieldValue::Float(1.5)),
        (b'd', &[0x3f, 0xf8, 0, 0, 0, 0, 0, 0], FieldValue::Float(1.5)),
        (b'D', &[2, 0, 0, 0, 5], FieldValue::Decimal { scale: 2, value: 5 }),
        (b'S', &[0, 0, 0, 1, b'x'], FieldValue::LongStr(b"x")),
        (b'x', &[0, 0, 0, 1, 0xff], FieldValue::Bytes(&[0xff])),
        (b'T', &[0, 0, 0, 0, 0, 0, 0, 9], FieldValue::Timestamp(9)),
        (b'V', &[], FieldValue::Void),
    ];
    for &(kind, value, expected) in cases {
        let bytes = entry(kind, value);
        assert_eq!(checked(&bytes).unwrap().get("a"), Some(expected));
        for end in 1..bytes.len() {
            assert!(checked(&bytes[..end]).is_err(), "{} {end}", kind as char);
        }
    }
    let array = entry(b'A', &[0, 0, 0, 3, b't', 0, b'V']);
    let Some(FieldValue::Array(array)) = checked(&array).unwrap().get("a") else { panic!() };
    assert_eq!(array.values().collect::<Vec<_>>(), [FieldValue::Bool(false), FieldValue::Void]);
    assert!(checked(&entry(b'?', &[0])).is_err(), "unknown type");
    assert!(checked(&entry(b'S', &[0xff; 4])).is_err(), "length beyond the bytes");
    let latin = [1, 0xff, b'V'];
    assert!(checked(&latin).is_err(), "name is not UTF-8");
    for headers in [latin.to_vec(), entry(b'F', &[&[0, 0, 0, 3], &latin[..]].concat())] {
        let entries: Vec<_> = checked_headers(&headers).unwrap().entries().collect();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].raw, headers, "a header's name may have any bytes");
    }
    assert!(checked_headers(&[2, b'a']).is_err(), "a name that is cut off");
}

#[test]
fn a_header_is_found_by_its_name_in_properties_of_any_bytes() {
    let header = |name: &str, value: &[u8]| [&[name.len() as u8], name.as_bytes(), value].concat();
    let entries = [
        header("latin", b"S\0\0\0\x01\xff"),
        vec![1, 0xff, b'V'],
        header("a", b"I\0\0\0\x07"),
        header("a", b"I\0\0\0\x08"),
        header("b", b"t\x01"),
    ]
    .concat();
    let table = [&(entries.len() as u32).to_be_bytes(), &entries[..]].concat();
    // A content type, an encoding and headers.
    let raw = [&[0xe0, 0, 2, b'x', b'y', 1, b'z'], &table[..]].concat();
    assert_eq!(header_named(&raw, "a"), Some(FieldValue::Int(7)), "the first");
    assert_eq!(header_named(&raw, "b"), Some(FieldValue::Bool(true)));
    assert_eq!(header_named(&raw, "c"), None);
    for end in 0..raw.len() {
        let found = header_named(&raw[..end], "b");
        assert!(found.is_none(), "{end}: {found:?}");
    }
    assert_eq!(header_named(&[0, 0], "a"), None, "there are no headers");
}

#[test]
fn tables_nest_up_to_the_limit() {
    let mut bytes = Vec::new();
    let mut accepted = 0;
    for depth in 1..=DEPTH_MAX + 2 {
        match checked(&bytes) {
            Ok(_) => accepted = depth,
            Err(_) => break,
        }
        let mut outer = Vec::new();
        wire::put_long_str(&mut outer, &bytes);
        bytes = entry(b'F', &outer);
    }
    assert_eq!(accepted, DEPTH_MAX);
}

fn all_properties<'a>(headers: Option<Table<'a>>) -> Properties<'a> {
    Properties {
        content_type: Some("text/plain"),
        content_encoding: Some("utf-8"),
        headers,
        delivery_mode: Some(2),
        priority: Some(9),
        correlation_id: Some("c"),
        reply_to: Some("r"),
        expiration: Some("100"),
        message_id: Some("m"),
        timestamp: Some(5),
        kind: Some("t"),
        user_id: Some("u"),
        app_id: Some("a"),
        cluster_id: Some("x"),
    }
}

#[test]
fn properties_come_back_and_scan_agrees_with_them() {
    let mut headers = Vec::new();
    put_table(&mut headers, |table| {
        table.text("k", "v");
        table.int("x-delay", 7);
        table.text("CC", "a");
        table.text("CC", "b");
    });
    let all = all_properties(Some(checked(&headers[4..]).unwrap()));
    for mask in 0..1u32 << 14 {
        let keep = |bit: u32| mask & (1 << bit) != 0;
        let some = Properties {
            content_type: all.content_type.filter(|_| keep(0)),
            content_encoding: all.content_encoding.filter(|_| keep(1)),
            headers: all.headers.filter(|_| keep(2)),
            delivery_mode: all.delivery_mode.filter(|_| keep(3)),
            priority: all.priority.filter(|_| keep(4)),
            correlation_id: all.correlation_id.filter(|_| keep(5)),
            reply_to: all.reply_to.filter(|_| keep(6)),
            expiration: all.expiration.filter(|_| keep(7)),
            message_id: all.message_id.filter(|_| keep(8)),
            timestamp: all.timestamp.filter(|_| keep(9)),
            kind: all.kind.filter(|_| keep(10)),
            user_id: all.user_id.filter(|_| keep(11)),
            app_id: all.app_id.filter(|_| keep(12)),
            cluster_id: all.cluster_id.filter(|_| keep(13)),
        };
        let mut raw = Vec::new();
        some.encode(&mut raw);
        assert_eq!(Properties::decode(&raw), Ok(some));
        let scan = scan(&raw).unwrap();
        let expected =
            (some.headers.is_some()).then_some((FieldValue::LongStr(b"a"), FieldValue::Int(7)));
        assert_eq!(scan.cc.zip(scan.delay), expected);
        assert_eq!(scan.bcc, None);
        assert_eq!(scan.delivery_mode, some.delivery_mode.unwrap_or(0));
        assert_eq!(scan.priority, some.priority.unwrap_or(0));
        assert_eq!(scan.reply_to, some.reply_to.map(str::as_bytes));
        assert_eq!(scan.expiration, some.expiration.map(str::as_bytes));
        assert_eq!(scan.user_id, some.user_id.map(str::as_bytes));
        let mut same = Vec::new();
        rewrite(&raw, &Edit::default(), &mut same).unwrap();
        assert_eq!(same, raw);
    }
}

#[test]
fn wrong_properties_are_refused() {
    let mut raw = Vec::new();
    all_properties(None).encode(&mut raw);
    for end in 0..raw.len() {
        assert!(scan(&raw[..end]).is_err(), "{end}");
        assert!(Properties::decode(&raw[..end]).is_err(), "{end}");
    }
    raw.push(0);
    assert!(scan(&raw).is_err(), "left over");
    assert!(scan(&[0, 1]).is_err(), "continued flags");
    assert!(scan(&[0, 2]).is_err(), "unused flag");
}

#[test]
fn properties_are_rewritten_where_asked() {
    let mut headers = Vec::new();
    put_table(&mut headers, |table| {
        table.text("BCC", "hidden");
        table.text("kept", "v");
    });
    let before = all_properties(Some(checked(&headers[4..]).unwrap()));
    let (mut raw, mut added) = (Vec::new(), Vec::new());
    before.encode(&mut raw);
    table::TableWriter { out: &mut added }.int("x-delivery-count", 3);
    let edit = Edit {
        drop_expiration: true,
        reply_to: Some("inbox"),
        drop_headers: &["BCC"],
        add_headers: &added,
    };
    let mut after = Vec::new();
    rewrite(&raw, &edit, &mut after).unwrap();
    let mut expected = Vec::new();
    put_table(&mut expected, |table| {
        table.text("kept", "v");
        table.int("x-delivery-count", 3);
    });
    let expected = Properties {
        headers: Some(checked(&expected[4..]).unwrap()),
        expiration: None,
        reply_to: Some("inbox"),
        ..before
    };
    assert_eq!(Properties::decode(&after), Ok(expected));

    let (mut bare, mut after) = (Vec::new(), Vec::new());
    Properties::default().encode(&mut bare);
    rewrite(&bare, &Edit { add_headers: &added, ..Edit::default() }, &mut after).unwrap();
    let headers = Properties::decode(&after).unwrap().headers.unwrap();
    assert_eq!(headers.get("x-delivery-count"), Some(FieldValue::Int(3)));
}

#[test]
fn content_headers_come_back() {
    let mut bytes = Vec::new();
    write_header(&mut bytes, 9, 1 << 33, &[0x10, 0, 2]);
    let (frame, used) = frame::read(&bytes, 0).unwrap().unwrap();
    assert_eq!((frame.kind, frame.channel, used), (frame::HEADER, 9, bytes.len()));
    let header = ContentHeader::decode(frame.payload).unwrap();
    assert_eq!((header.class, header.weight, header.body_bytes), (60, 0, 1 << 33));
    assert_eq!(header.properties, [0x10, 0, 2]);
}

#[test]
fn frames_wait_until_they_are_whole() {
    let mut bytes = Vec::new();
    frame::write_heartbeat(&mut bytes);
    for end in 0..bytes.len() {
        assert_eq!(frame::read(&bytes[..end], 4096), Ok(None));
    }
    assert!(frame::read(&bytes, 4096).unwrap().is_some());
}

#[test]
fn frames_have_a_known_type_an_end_and_a_largest_size() {
    let frame = |kind: u8, size: usize, end: u8| {
        let mut bytes = vec![kind, 0, 1];
        bytes.extend_from_slice(&(size as u32).to_be_bytes());
        bytes.resize(7 + size, 0);
        bytes.push(end);
        bytes
    };
    assert_eq!(frame::read(&frame(4, 0, 0xCE), 64), Err(FrameError::UnknownKind(4)));
    assert_eq!(frame::read(&frame(1, 0, 0xCD), 64), Err(FrameError::BadEnd(0xCD)));
    assert!(frame::read(&frame(3, 55, 0xCE), 64).unwrap().is_some(), "below");
    assert!(frame::read(&frame(3, 56, 0xCE), 64).unwrap().is_some(), "at");
    assert!(frame::read(&frame(3, 64, 0xCE), 64).unwrap().is_some(), "without head and end");
    let above = Err(FrameError::TooLarge { bytes: 73, max: 64 });
    assert_eq!(frame::read(&frame(3, 65, 0xCE)[..7], 64), above);
}

#[test]
fn bodies_are_split_at_the_largest_frame() {
    for (body, sizes) in [(0, &[][..]), (55, &[55]), (56, &[56]), (57, &[56, 1]), (112, &[56, 56])]
    {
        let mut bytes = Vec::new();
        frame::write_body(&mut bytes, 1, &vec![1; body], 64);
        let mut rest = &bytes[..];
        let mut found = Vec::new();
        while let Some((frame, used)) = frame::read(rest, 64).unwrap() {
            found.push(frame.payload.len());
            rest = &rest[used..];
        }
        assert_eq!(found, sizes);
    }
}

#[test]
fn long_names_are_cut_at_a_character() {
    let mut bytes = Vec::new();
    wire::put_short_str(&mut bytes, &"ä".repeat(200));
    assert_eq!(bytes.len(), 255, "a length and 127 characters of two octets");
}
