//! Frames of other implementations, rhea and qpid-proton, as hexadecimal digits.

use super::hex;
use crate::amqp10::codec::*;
use crate::amqp10::frame;

/// The map of one entry.
fn map<'a>(key: &str, value: &impl Field<'a>) -> OwnedValue {
    OwnedValue::map(|map| map.put(&Symbol(key), value))
}

/// Checks that a frame has this channel, performative and payload, and that what we write is read the same.
fn check(bytes: &str, channel: u16, expected: Performative<'_>, payload: &[u8]) {
    let bytes = hex(bytes);
    let (frame, used) = frame::read(&bytes, u32::MAX).unwrap().unwrap();
    assert_eq!((frame.kind, frame.channel, used), (frame::AMQP, channel, bytes.len()));
    assert_eq!(Performative::decode_body(frame.body), Ok((expected, payload)));
    assert_eq!(u64::from(descriptor_code(frame.body).unwrap()), expected.info().code);
    let mut again = Vec::new();
    expected.write_frame(channel, payload, &mut again);
    assert!(again.len() <= bytes.len());
    let (frame, _) = frame::read(&again, u32::MAX).unwrap().unwrap();
    assert_eq!(Performative::decode_body(frame.body), Ok((expected, payload)));
}

#[test]
fn connections_and_sessions_of_other_implementations_are_read() {
    // rhea
    let properties = OwnedValue::map(|map| {
        map.put(&Symbol("product"), &"p");
        map.put(&Symbol("version"), &"1");
    });
    let open = Open {
        container_id: "c1",
        hostname: Some("vhost:x"),
        max_frame_size: 65536,
        channel_max: 255,
        idle_time_out: Some(60000),
        offered_capabilities: Symbols::new(&[Symbol("ANONYMOUS-RELAY"), Symbol("SHARED-SUBS")]),
        properties: Some(properties.as_map()),
        ..Open::default()
    };
    let bytes = "0000007802000000005310d0000000680000000aa1026331a10776686f73743a78700001\
        00006000ff700000ea604040f00000002100000002a30f414e4f4e594d4f55532d52454c41590b534841\
        5245442d5355425340d10000001c00000004a30770726f64756374a10170a30776657273696f6ea10131";
    check(bytes, 0, Performative::Open(open), b"");
    let begin = Begin {
        remote_channel: Some(1),
        next_outgoing_id: 0,
        incoming_window: 2048,
        outgoing_window: u32::MAX,
        handle_max: 7,
        ..Begin::default()
    };
    let bytes = "0000002402000003005311d0000000140000000560000143700000080070ffffffff5207";
    check(bytes, 3, Performative::Begin(begin), b"");
    check("0000000c0200000200531745", 2, Performative::End(End::default()), b"");
    let error = Error { condition: Symbol("amqp:connection:forced"), ..Error::default() };
    let bytes = "0000003802000000005318d0000000280000000100531dd00000001c00000001a316616d\
        71703a636f6e6e656374696f6e3a666f72636564";
    check(bytes, 0, Performative::Close(Close { error: Some(error) }), b"");
    assert_eq!(error.known_condition(), Some(Condition::ConnectionForced));
    // proton
    let open = Open {
        container_id: "cl",
        hostname: Some("h"),
        max_frame_size: 0x8000,
        channel_max: 0x7fff,
        idle_time_out: Some(15000),
        ..Open::default()
    };
    let bytes = "0000002202000000005310c01505a102636ca101687000008000607fff7000003a98";
    check(bytes, 0, Performative::Open(open), b"");
    let info = map("a", &1i64);
    let error =
        Error { condition: Symbol("amqp:x"), description: Some("why"), info: Some(info.as_map()) };
    let bytes = "0000002f02000000005318c0220100531dc01c03a306616d71703a78a103776879d10000\
        000900000002a301615501";
    check(bytes, 0, Performative::Close(Close { error: Some(error) }), b"");
}

#[test]
fn a_receiver_with_a_selector_is_read() {
    // rhea: a receiver on a queue, with a selector
    let selector = OwnedValue::decode(&hex("00800000468c00000004a103613d31")).unwrap();
    let filter = map("jms-selector", &selector.value());
    let modified = Modified { delivery_failed: true, ..Modified::default() };
    let source = Source {
        address: Some("q"),
        durable: TerminusDurability::UnsettledState,
        expiry_policy: TerminusExpiryPolicy::Never,
        timeout: 10,
        distribution_mode: Some(DistributionMode::Copy),
        filter: Some(filter.as_map()),
        default_outcome: Some(Outcome::Modified(modified)),
        outcomes: Symbols::new(&[Symbol("amqp:accepted:list"), Symbol("amqp:rejected:list")]),
        capabilities: Symbols::new(&[Symbol("queue")]),
        ..Source::default()
    };
    let attach = Attach {
        name: "l1",
        role: Role::Receiver,
        snd_settle_mode: SenderSettleMode::Unsettled,
        rcv_settle_mode: ReceiverSettleMode::Second,
        source: Some(source),
        target: Some(AnyTarget::Target(Target::default())),
        initial_delivery_count: Some(0),
        max_message_size: Some(1 << 20),
        ..Attach::default()
    };
    let bytes = "000000c302000001005312d0000000b30000000ba1026c31434150005001005328d00000\
        008d0000000ba101715202a3056e65766572520a4040a304636f7079d10000002100000002a30c6a6d73\
        2d73656c6563746f7200800000468c00000004a103613d31005327d0000000050000000141f00000002b\
        00000002a312616d71703a61636365707465643a6c69737412616d71703a72656a65637465643a6c6973\
        74f00000000b00000001a305717565756500532945404043800000000000100000";
    check(bytes, 1, Performative::Attach(attach), b"");
}

#[test]
fn links_to_coordinators_and_temporary_queues_are_read() {
    // rhea: a sender to a coordinator
    let coordinator =
        Coordinator { capabilities: Symbols::new(&[Symbol("amqp:local-transactions")]) };
    let attach = Attach {
        name: "l2",
        handle: 300,
        source: Some(Source::default()),
        target: Some(AnyTarget::Coordinator(coordinator)),
        initial_delivery_count: Some(5),
        ..Attach::default()
    };
    let bytes = "0000004d02000001005312d00000003d0000000aa1026c32700000012c42404000532845\
        005330d00000001d00000001a317616d71703a6c6f63616c2d7472616e73616374696f6e7340405205";
    check(bytes, 1, Performative::Attach(attach), b"");
    // rhea: a sender to a temporary queue
    let delete = LifetimePolicy::DeleteOnClose(DeleteOnClose {});
    let properties = map("lifetime-policy", &delete);
    let Some(Value::Described(policy)) = properties.as_map().get("lifetime-policy") else {
        panic!()
    };
    assert_eq!(LifetimePolicy::from_described(policy), Ok(delete));
    let properties =
        OwnedValue::decode(&hex("d10000001900000002a30f6c69666574696d652d706f6c69637900532b45"))
            .unwrap();
    let target = Target {
        dynamic: true,
        dynamic_node_properties: Some(properties.as_map()),
        capabilities: Symbols::new(&[Symbol("temporary-queue")]),
        ..Target::default()
    };
    let attach = Attach {
        name: "l3",
        handle: 1,
        target: Some(AnyTarget::Target(target)),
        initial_delivery_count: Some(0),
        ..Attach::default()
    };
    let bytes = "0000006a02000001005312d00000005a0000000aa1026c33520142404040005329d00000\
        0041000000074040404041d10000001900000002a30f6c69666574696d652d706f6c69637900532b45f0\
        0000001500000001a30f74656d706f726172792d7175657565404043";
    check(bytes, 1, Performative::Attach(attach), b"");
    // rhea
    let info = OwnedValue::map(|map| map.put(&"a", &1u32));
    let error = Error { info: Some(info.as_map()), ..Error::new(Condition::LinkStolen, "taken") };
    let detach = Detach { handle: 5, closed: true, error: Some(error) };
    let bytes = "0000004a02000002005316d00000003a0000000352054100531dd00000002b00000003a3\
        10616d71703a6c696e6b3a73746f6c656ea10574616b656ed10000000900000002a101615201";
    check(bytes, 2, Performative::Detach(detach), b"");
}

#[test]
fn a_subscriber_of_proton_is_read() {
    let filter = map(
        "sel",
        &OwnedValue::decode(&hex(
            "00a3216170616368652e6f72673a73656c6563746f722d66696c7465723a737472696e67a103613d31",
        ))
        .unwrap()
        .value(),
    );
    let source = Source {
        address: Some("q"),
        durable: TerminusDurability::UnsettledState,
        expiry_policy: TerminusExpiryPolicy::Never,
        timeout: 9,
        distribution_mode: Some(DistributionMode::Copy),
        filter: Some(filter.as_map()),
        capabilities: Symbols::new(&[Symbol("topic")]),
        ..Source::default()
    };
    let attach = Attach {
        name: "rcv",
        handle: 1,
        role: Role::Receiver,
        source: Some(source),
        target: Some(AnyTarget::Target(Target::default())),
        initial_delivery_count: Some(0),
        ..Attach::default()
    };
    let bytes = "0000009102000000005312c0840ba10372637652014150025000005328c0630ba1017152\
        02a3056e6576657252094240a304636f7079d10000003200000002a30373656c00a3216170616368652e\
        6f72673a73656c6563746f722d66696c7465723a737472696e67a103613d314040f00000000e00000001\
        b300000005746f706963005329c006054043404342404043440000";
    // A `max-message-size` of 0 means no limit.
    let attach = Attach { max_message_size: Some(0), ..attach };
    let bytes = bytes.strip_suffix("0000").unwrap();
    check(bytes, 0, Performative::Attach(attach), b"");
}

#[test]
fn transfers_and_flows_of_other_implementations_are_read() {
    // rhea
    let flow = Flow {
        next_incoming_id: Some(1),
        incoming_window: 2048,
        next_outgoing_id: 2,
        outgoing_window: 100,
        handle: Some(0),
        delivery_count: Some(9),
        link_credit: Some(1000),
        drain: true,
        echo: true,
        ..Flow::default()
    };
    let bytes =
        "0000002a02000000005313d00000001a0000000a520170000008005202526443520970000003e8404141";
    check(bytes, 0, Performative::Flow(flow), b"");
    // proton
    let flow = Flow {
        next_incoming_id: Some(0),
        incoming_window: i32::MAX as u32,
        next_outgoing_id: 0,
        outgoing_window: i32::MAX as u32,
        handle: Some(1),
        delivery_count: Some(0),
        link_credit: Some(10),
        ..Flow::default()
    };
    let bytes = "0000002102000000005313c0140940707fffffff43707fffffff520143520a4042";
    let flow = Flow { next_incoming_id: None, ..flow };
    check(bytes, 0, Performative::Flow(flow), b"");
    let transfer = Transfer {
        handle: 0,
        delivery_id: Some(0),
        delivery_tag: Some(DeliveryTag(b"t1")),
        message_format: Some(0),
        settled: Some(false),
        ..Transfer::default()
    };
    let bytes = "00 00 00 27 02 00 00 00 00 53 14 c0 0c 08 43 43 a0 02 74 31 43 42 40 40 \
        40 0053704500537345005377a10178";
    let transfer = Transfer { message_format: Some(0), ..transfer };
    check(bytes, 0, Performative::Transfer(transfer), &hex("0053704500537345005377a10178"));
    let bytes = "0000002302000000005314c008044343a0027431430053704500537345005377a10178";
    let transfer = Transfer { settled: None, ..transfer };
    check(bytes, 0, Performative::Transfer(transfer), &hex("0053704500537345005377a10178"));
}

#[test]
fn dispositions_of_other_implementations_are_read() {
    let disposition = |first, last, settled, state| {
        let role = Role::Receiver;
        let state = Some(state);
        Performative::Disposition(Disposition {
            role,
            first,
            last,
            settled,
            state,
            batchable: false,
        })
    };
    // proton
    check(
        "0000001602000000005315c009054143404100532445",
        0,
        disposition(0, None, true, ACCEPTED),
        b"",
    );
    // rhea
    let error = Some(Error::new(Condition::NotFound, "gone"));
    let state = DeliveryState::Rejected(Rejected { error });
    let bytes = "0000004802000002005315d00000003800000005415205520941005325d0000000260000\
        000100531dd00000001a00000002a30e616d71703a6e6f742d666f756e64a104676f6e65";
    check(bytes, 2, disposition(5, Some(9), true, state), b"");
    let bytes = "0000001d02000002005315d00000000d00000005415205404000532645";
    check(bytes, 2, disposition(5, None, false, RELEASED), b"");
    let annotations = map("x-opt-a", &1u32);
    let state = DeliveryState::Modified(Modified {
        delivery_failed: true,
        undeliverable_here: true,
        message_annotations: Some(annotations.as_map()),
    });
    let bytes = "0000003b02000002005315d00000002b000000054152054041005327d00000001a000000\
        034141d10000000f00000002a307782d6f70742d615201";
    check(bytes, 2, disposition(5, None, true, state), b"");
    let state = DeliveryState::Received(Received { section_number: 1, section_offset: 1000 });
    let bytes = "0000003002000002005315d000000020000000054152054040005323d00000000f000000\
        0252018000000000000003e8";
    check(bytes, 2, disposition(5, None, false, state), b"");
    // by hand: settled within a transaction
    let outcome = Some(Outcome::Accepted(Accepted {}));
    let state = DeliveryState::TransactionalState(TransactionalState { txn_id: &[1, 2], outcome });
    let bytes = "00000020 02 00 0000 005315 c01305 41 43 40 41 005334 c00902 a0020102 00532445";
    check(bytes, 0, disposition(0, None, true, state), b"");
    let state = DeliveryState::Declared(Declared { txn_id: &[7] });
    let bytes = "0000001b 02 00 0000 005315 c00e05 41 43 40 41 005333 c00401 a00107";
    check(bytes, 0, disposition(0, None, true, state), b"");
}

#[test]
fn requests_of_transactions_are_read() {
    let declare = CoordinatorRequest::Declare(Declare::default());
    assert_eq!(CoordinatorRequest::decode(&hex("00533145")), Ok(declare));
    assert_eq!(CoordinatorRequest::decode(&hex("005331c0020140")), Ok(declare));
    let discharge = CoordinatorRequest::Discharge(Discharge { txn_id: &[9], fail: true });
    assert_eq!(CoordinatorRequest::decode(&hex("005332c00502a0010941")), Ok(discharge));
}

#[test]
fn sasl_frames_of_rhea_are_read() {
    let names = [Symbol("PLAIN"), Symbol("ANONYMOUS")];
    let mechanisms = |mechanisms| SaslPerformative::SaslMechanisms(SaslMechanisms { mechanisms });
    let init = SaslInit {
        mechanism: Symbol("PLAIN"),
        initial_response: Some(b"\0u\0p"),
        hostname: Some("h"),
    };
    let outcome = SaslOutcome { code: SaslCode::Ok, additional_data: None };
    let cases = [
        (
            "0000002e02010000005340d00000001e00000001f00000001500000002a305504c41494e09414e4f4e594d4f5553",
            mechanisms(Symbols::new(&names)),
        ),
        (
            "0000001b02010000005340d00000000b00000001a305504c41494e",
            mechanisms(Symbols::new(&names[..1])),
        ),
        (
            "0000002402010000005341d00000001400000003a305504c41494ea00400750070a10168",
            SaslPerformative::SaslInit(init),
        ),
        (
            "0000001702010000005342d00000000700000001a00163",
            SaslPerformative::SaslChallenge(SaslChallenge { challenge: b"c" }),
        ),
        (
            "0000001702010000005343d00000000700000001a00172",
            SaslPerformative::SaslResponse(SaslResponse { response: b"r" }),
        ),
        ("0000001602010000005344d000000006000000015000", SaslPerformative::SaslOutcome(outcome)),
    ];
    for (bytes, expected) in cases {
        let bytes = hex(bytes);
        let (frame, _) = frame::read(&bytes, 512).unwrap().unwrap();
        assert_eq!(
            (frame.kind, SaslPerformative::decode_body(frame.body)),
            (frame::SASL, Ok(expected))
        );
        let mut again = Vec::new();
        expected.write_frame(&mut again);
        let (frame, _) = frame::read(&again, 512).unwrap().unwrap();
        assert_eq!(SaslPerformative::decode_body(frame.body), Ok(expected));
    }
    let mut none = Vec::new();
    mechanisms(Symbols::NONE).write(&mut none);
    let why = SaslPerformative::decode_body(&none).unwrap_err().to_string();
    let text = "field 'sasl-server-mechanisms' of sasl-mechanisms is mandatory and missing";
    assert_eq!(why, text, "an empty array is none");
}
