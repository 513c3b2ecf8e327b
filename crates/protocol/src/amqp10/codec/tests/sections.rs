//! Sections of messages: found, decoded, refused.

use super::hex;
use super::random::Arbitrary;
use crate::amqp10::codec::*;
use crate::tests::random::Random;

const LIMITS: Limits = Limits { properties_bytes_max: 1 << 20 };

fn walk(message: &[u8]) -> Result<Sections<'_>, Malformed> {
    Sections::walk(message, LIMITS)
}

/// A message of rhea with everything that one can have. Its footer is before its body and has keys that are
/// strings, which both are against the specification.
const WHOLE: &str = "005370d00000000f0000000541500970000003e8415203005371d10000000f000000\
    02a307782d6f70742d645201005372d10000001600000002a30e782d6f70742d6a6d732d6465737451000053\
    73d0000000430000000da1026d31a00175a10174a10173a10172532aa30a746578742f706c61696ea304677a\
    69708300000000000007d08300000000000003e8a101675207a1027267005374d10000001f00000008a10161\
    a10162a1016e5205a10164823ff8000000000000a1017441005378d10000000b00000002a103782d66520100\
    5375a00568656c6c6f";

#[test]
fn everything_that_a_message_can_have_is_read() {
    let message = hex(WHOLE);
    let sections = walk(&message).unwrap();
    let header = Header {
        durable: true,
        priority: 9,
        ttl: Some(1000),
        first_acquirer: true,
        delivery_count: 3,
    };
    assert_eq!(sections.header(), Ok(header));
    let properties = Properties {
        message_id: Some(MessageId::String("m1")),
        user_id: Some(b"u"),
        to: Some("t"),
        subject: Some("s"),
        reply_to: Some("r"),
        correlation_id: Some(MessageId::ULong(42)),
        content_type: Some(Symbol("text/plain")),
        content_encoding: Some(Symbol("gzip")),
        absolute_expiry_time: Some(Timestamp(2000)),
        creation_time: Some(Timestamp(1000)),
        group_id: Some("g"),
        group_sequence: Some(7),
        reply_to_group_id: Some("rg"),
    };
    assert_eq!(sections.properties(), Ok(properties));
    let application = sections.application_properties().unwrap();
    assert_eq!(application.len(), 4);
    assert_eq!(application.get("d"), Some(Value::Double(1.5)));
    assert_eq!(sections.delivery_annotations().unwrap().get("x-opt-d"), Some(Value::UInt(1)));
    assert_eq!(sections.message_annotations().unwrap().get("x-opt-jms-dest"), Some(Value::Byte(0)));
    assert_eq!(sections.footer().unwrap().get("x-f"), Some(Value::UInt(1)));
    let value = section_value(&message, SectionKind::ApplicationProperties).unwrap();
    assert_eq!(entry_named(value, "d"), Some(Value::Double(1.5)));
    let value = section_value(&message, SectionKind::Properties).unwrap();
    assert_eq!(element(value, 3), Some(Value::String("s")));
    assert_eq!(section_value(&message, SectionKind::Sequence), None);
    assert_eq!(section_value(&message[..30], SectionKind::ApplicationProperties), None);
    assert_eq!(sections.data().collect::<Vec<_>>(), [b"hello"]);
    let body = sections.body.unwrap();
    assert_eq!((body.kind, body.count), (BodyKind::Data, 1));
    assert_eq!(sections.bytes(body.first), hex("005375a00568656c6c6f"));
    assert_eq!(body.first.value, body.first.start + 3);
    assert_eq!(sections.message(), message);
}

#[test]
fn messages_of_other_implementations_are_read() {
    // proton: an id that is a UUID, a body that is a value
    let message =
        hex("005370c00c054150097000001388415202005372d10000000f00000002a307782d6f70742d615501\
            005373c0450c9800112233445566778899aabbccddeeffa00175a10171a10173a10172a10163a30a\
            746578742f706c61696e408300000000000007d08300000000000003e8a101675203005374d10000\
            000f00000004a101615501a10162a10178005377a10568656c6c6f");
    let sections = walk(&message).unwrap();
    assert_eq!(sections.header().unwrap().delivery_count, 2);
    assert!(matches!(sections.properties().unwrap().message_id, Some(MessageId::Uuid(_))));
    assert_eq!(sections.amqp_value(), Ok(Some(Value::String("hello"))));
    assert_eq!(sections.data().count(), 0);
    // rhea: a value; a list; two times data; nothing but defaults
    let message = hex("0053704500537345005377a10474657874");
    assert_eq!(walk(&message).unwrap().amqp_value(), Ok(Some(Value::String("text"))));
    assert_eq!(walk(&message).unwrap().header(), Ok(Header::default()));
    let message = hex("0053704500537345005376d000000009000000025201a10161");
    let lists: Vec<_> =
        walk(&message).unwrap().sequences().map(|list| list.unwrap().len()).collect();
    assert_eq!(lists, [2]);
    let message = hex("0053704500537345005375a00161005375a00162");
    let sections = walk(&message).unwrap();
    assert_eq!(sections.data().collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!(sections.body.unwrap().count, 2);
    // proton: no body
    let message = hex("0053704500537345");
    assert_eq!(walk(&message).unwrap().body, None);
    assert_eq!(walk(&message).unwrap().application_properties().map(|map| map.len()), Ok(0));
}

#[test]
fn sections_in_the_wrong_order_or_number_are_refused() {
    let header = "00537045";
    let properties = "00537345";
    let data = "005375a00161";
    let sequence = "00537645";
    let value = "00537740";
    let footer = "005378c10100";
    let cases: &[(&[&str], Option<&str>)] = &[
        (&[header, properties, data, data, footer], None),
        (&[sequence, sequence], None),
        (&[value, footer], None),
        (&[properties, header], Some("header")),
        (&[header, header], Some("header")),
        (&[data, properties], Some("properties")),
        (&[value, value], Some("amqp-value")),
        (&[data, sequence], Some("amqp-sequence")),
        (&[data, value], Some("amqp-value")),
        (&[sequence, data], Some("data")),
        (&[footer, data, data], None),
        (&[data, footer, data], Some("data")),
        (&[footer, properties, data], Some("properties")),
        (&[footer, footer], Some("footer")),
    ];
    for (parts, wrong) in cases {
        let message = hex(&parts.concat());
        let text =
            wrong.map(|name| format!("{name} is there twice or behind a section that it precedes"));
        assert_eq!(walk(&message).err().map(|why| why.to_string()), text, "{parts:?}");
    }
}

#[test]
fn sections_that_are_none_are_refused() {
    let cases = [
        ("005379 45", "message has a section of a kind that is not known"),
        ("00a30178 45", "message has a section of a kind that is not known"),
        ("005370 40", "header is not of the type that this section has"),
        ("005375 a10161", "data is not of the type that this section has"),
        ("005375 00 5301 a00161", "data is not of the type that this section has"),
        ("005374 c00100", "application-properties is not of the type that this section has"),
        ("005375 b0ffffffff", "message ends in the middle of a value"),
        ("00", "message ends in the middle of a value"),
        ("40", "message is not a described value"),
    ];
    for (bytes, text) in cases {
        assert_eq!(walk(&hex(bytes)).unwrap_err().to_string(), text, "{bytes}");
    }
    // A described value is a value, and sections are known by name too.
    let message = hex("00a31061 6d71703a616d71702d76616c75653a2a 00 5307 40");
    let message =
        [&[0, 0xa3, 17][..], b"amqp:amqp-value:*", &message[message.len() - 4..]].concat();
    assert!(matches!(walk(&message).unwrap().amqp_value(), Ok(Some(Value::Described(_)))));
}

#[test]
fn what_is_in_a_section_is_checked_when_it_is_asked_for() {
    let text = |bytes: &str, ask: fn(&Sections<'_>) -> Option<Malformed>| {
        let message = hex(bytes);
        ask(&walk(&message).unwrap()).unwrap().to_string()
    };
    assert_eq!(
        text("005370 c00302 40 41", |it| it.header().err()),
        "field 'priority' of header is not of type ubyte"
    );
    assert_eq!(
        text("005373 c00401 a30161", |it| it.properties().err()),
        "field 'message-id' of properties is not of type ulong, uuid, binary or string"
    );
    assert_eq!(
        text("005373 c00105", |it| it.properties().err()),
        "properties has a list, map or array whose size or count does not match its contents"
    );
    for wrong in ["005374 c10502 a30161 40", "005374 c10502 a10161 45"] {
        assert_eq!(
            text(wrong, |it| it.application_properties().err()),
            "application-properties has an entry whose key is no string or whose value is a list, map, array \
             or described value"
        );
    }
    assert_eq!(
        text("005372 c10502 a10161 40", |it| it.message_annotations().err()),
        "message-annotations has a key that is neither symbol nor ulong"
    );
    assert_eq!(
        text("005378 c10402 a10561", |it| it.footer().err()),
        "footer ends in the middle of a value"
    );
    assert_eq!(
        text("005377 c00201 57", |it| it.amqp_value().err()),
        "amqp-value has a format code that no type has"
    );
    assert_eq!(
        text("005376 c00201 57", |it| it.sequences().next().unwrap().err()),
        "amqp-sequence has a format code that no type has"
    );
}

#[test]
fn large_properties_are_refused_and_large_bodies_are_not() {
    let mut message = Vec::new();
    put_map_section(&mut message, SectionKind::ApplicationProperties, |map| {
        map.put(&"key", &"value".repeat(30).as_str());
    });
    let properties_bytes = message.len();
    put_section(&mut message, SectionKind::Data, &&[7; 5000][..]);
    let limits = |properties_bytes_max| Limits { properties_bytes_max };
    assert!(Sections::walk(&message, limits(properties_bytes)).is_ok());
    let why = Sections::walk(&message, limits(properties_bytes - 1)).unwrap_err();
    assert_eq!(why.condition(), Condition::ResourceLimitExceeded);
}

#[test]
fn written_messages_come_back_as_they_were() {
    let mut random = Random(31);
    for _ in 0..200 {
        let header = Header::random(&mut random);
        let properties = Properties::random(&mut random);
        let (key, value) = (<&str>::random(&mut random), u64::random(&mut random));
        let body = <&[u8]>::random(&mut random);
        let mut message = Vec::new();
        header.write(&mut message);
        put_map_section(&mut message, SectionKind::MessageAnnotations, |map| {
            map.put(&Symbol("x-opt-a"), &value);
        });
        properties.write(&mut message);
        put_map_section(&mut message, SectionKind::ApplicationProperties, |map| {
            map.put(&key, &value)
        });
        put_section(&mut message, SectionKind::Data, &body);
        let sections = walk(&message).unwrap();
        assert_eq!(sections.header(), Ok(header));
        assert_eq!(sections.properties(), Ok(properties));
        assert_eq!(sections.application_properties().unwrap().get(key), Some(Value::ULong(value)));
        assert_eq!(sections.data().collect::<Vec<_>>(), [body]);
        let ends: Vec<_> = [
            sections.header,
            sections.message_annotations,
            sections.properties,
            sections.application_properties,
            sections.body.map(|body| body.first),
        ]
        .into_iter()
        .flat_map(|section| section.map(|section| section.end))
        .collect();
        assert_eq!(ends.len(), 5);
        // Cut anywhere but between sections, it is no message.
        for end in 1..message.len() {
            assert_eq!(walk(&message[..end]).is_ok(), ends.contains(&end), "cut at {end}");
        }
    }
}

#[test]
fn a_request_may_begin_with_its_body() {
    let mut message = Vec::new();
    put_section(&mut message, SectionKind::Value, &Value::Null);
    Properties { to: Some("/queues/q"), ..Properties::default() }.write(&mut message);
    assert!(walk(&message).is_err());
    let sections = Sections::walk_request(&message, LIMITS).unwrap();
    assert_eq!(sections.properties().unwrap().to, Some("/queues/q"));
    assert_eq!(sections.amqp_value(), Ok(Some(Value::Null)));
    // A section twice is no request either.
    Properties::default().write(&mut message);
    assert!(Sections::walk_request(&message, LIMITS).is_err());
}
