//! Frames and protocol headers, cut at every place.

use super::hex;
use super::random::Arbitrary;
use crate::amqp10::codec::*;
use crate::amqp10::frame::{self, Frame, FrameError, ProtocolHeader};
use crate::tests::random::Random;

#[test]
fn protocol_headers_are_told_apart_as_early_as_can_be() {
    for (bytes, header) in [
        (b"AMQP\x00\x01\x00\x00", ProtocolHeader::Amqp),
        (b"AMQP\x02\x01\x00\x00", ProtocolHeader::Tls),
        (b"AMQP\x03\x01\x00\x00", ProtocolHeader::Sasl),
    ] {
        assert_eq!(header.bytes(), *bytes);
        for end in 0..8 {
            assert_eq!(ProtocolHeader::read(&bytes[..end]), Ok(None));
        }
        assert_eq!(ProtocolHeader::read(bytes), Ok(Some(header)));
        assert_eq!(ProtocolHeader::read(&[&bytes[..], b"more"].concat()), Ok(Some(header)));
    }
    for wrong in [&b"G"[..], b"AMQA", b"AMQP\x01", b"AMQP\x00\x00", b"AMQP\x00\x01\x00\x01"] {
        assert_eq!(ProtocolHeader::read(wrong), Err(FrameError::ProtocolHeader), "{wrong:?}");
    }
}

#[test]
fn bytes_that_are_no_frame_are_refused_once_their_head_is_there() {
    let cases = [
        ("00000007 02 00 0000", FrameError::TooSmall(7)),
        ("00000000 02 00 0000", FrameError::TooSmall(0)),
        ("00000201 02 00 0000", FrameError::TooLarge { bytes: 513, max: 512 }),
        ("ffffffff 02 00 0000", FrameError::TooLarge { bytes: u32::MAX, max: 512 }),
        ("00000008 01 00 0000", FrameError::DataOffset { doff: 1, bytes: 8 }),
        ("00000008 03 00 0000", FrameError::DataOffset { doff: 3, bytes: 8 }),
        ("00000100 ff 00 0000", FrameError::DataOffset { doff: 255, bytes: 256 }),
        ("00000100 02 02 0000", FrameError::UnknownKind(2)),
    ];
    for (bytes, error) in cases {
        let bytes = hex(bytes);
        assert_eq!(frame::read(&bytes, 512), Err(error));
        assert_eq!(frame::read(&bytes[..7], 512), Ok(None));
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn an_extended_header_is_passed_over() {
    let bytes = hex("0000000e 03 01 0102 deadbeef 4142");
    let frame = Frame { kind: frame::SASL, channel: 0x102, body: b"AB" };
    assert_eq!(frame::read(&bytes, 512), Ok(Some((frame, 14))));
    // a sign of life
    let mut empty = Vec::new();
    frame::write_empty(&mut empty);
    assert_eq!(empty, hex("0000000802000000"));
    let frame = Frame { kind: frame::AMQP, channel: 0, body: b"" };
    assert_eq!(frame::read(&empty, 512), Ok(Some((frame, 8))));
}

/// One frame of every kind, and transfers of all sizes.
fn session() -> Vec<u8> {
    let mut out = Vec::new();
    let mut random = Random(4);
    for info in Performative::ALL {
        let mut performatives = std::iter::repeat_with(|| Performative::random(&mut random));
        let performative = performatives.find(|it| it.info().code == info.code).unwrap();
        performative.write_frame(1, &[], &mut out);
    }
    for info in SaslPerformative::ALL {
        let mut performatives = std::iter::repeat_with(|| SaslPerformative::random(&mut random));
        let performative = performatives.find(|it| it.info().code == info.code).unwrap();
        performative.write_frame(&mut out);
    }
    let open = Open { container_id: "c", ..Open::default() };
    write_frame(&open, 0, &[], &mut out);
    frame::write_empty(&mut out);
    for number in 0..5u32 {
        let transfer = Transfer { delivery_id: Some(number), ..Transfer::default() };
        write_frame(&transfer, 7, &vec![number as u8; number as usize * 60], &mut out);
    }
    SaslPerformative::SaslOutcome(SaslOutcome::default()).write_frame(&mut out);
    Performative::Close(Close::default()).write_frame(0, &[], &mut out);
    out
}

/// The frames in pieces that arrive one after the other, each taken as soon as it is whole.
fn read_all(pieces: &[&[u8]]) -> Vec<(u8, u16, Vec<u8>)> {
    let (mut input, mut frames) = (Vec::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        while let Some((frame, used)) = frame::read(&input, u32::MAX).unwrap() {
            frames.push((frame.kind, frame.channel, frame.body.to_vec()));
            input.drain(..used);
        }
    }
    assert!(input.is_empty());
    frames
}

#[test]
fn frames_are_whole_however_their_bytes_are_cut() {
    let bytes = session();
    let whole = read_all(&[&bytes]);
    assert_eq!(whole.len(), 9 + 5 + 9);
    for cut in 1..bytes.len() {
        assert_eq!(read_all(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
    }
    assert_eq!(read_all(&bytes.chunks(1).collect::<Vec<_>>()), whole);
    let mut random = Random(3);
    for _ in 0..50 {
        assert_eq!(read_all(&random.pieces(&bytes, 200)), whole);
    }
}
