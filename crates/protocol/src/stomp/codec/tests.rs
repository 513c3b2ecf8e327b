//! Frames there and back, and cut at every byte.

use super::*;

const LIMITS: Limits = Limits { head_bytes_max: 1_000, body_bytes_max: 100 };

#[track_caller]
fn frame(bytes: &[u8]) -> (Frame<'_>, usize) {
    let found = Frame::decode(bytes, Version::V1_2, &LIMITS);
    // No beginning of it is a frame, or wrong.
    if let Ok(Some((_, used))) = found {
        for cut in 0..used {
            assert_eq!(Frame::decode(&bytes[..cut], Version::V1_2, &LIMITS), Ok(None), "{cut}");
        }
    }
    found.unwrap().unwrap()
}

#[test]
fn bodies_end_with_nul_or_after_their_length() {
    let (found, used) = frame(b"SEND\ndestination:/queue/a\n\nhello\0SEND");
    assert_eq!((found.command, found.body, used), (&b"SEND"[..], &b"hello"[..], 33));
    assert_eq!(found.headers.get("destination").unwrap().as_deref(), Some("/queue/a"));
    assert_eq!(found.headers.get("receipt"), Ok(None));
    let (found, used) = frame(b"SEND\r\ncontent-length:5\r\n\r\na\0b\0c\0\n");
    assert_eq!((found.body, used), (&b"a\0b\0c"[..], 32));
    let (found, _) = frame(b"SEND\ncontent-length:0\n\n\0");
    assert_eq!(found.body, b"");
}

#[test]
fn of_repeated_headers_the_first_counts() {
    let (found, _) = frame(b"SEND\na:1\na:2\ncontent-length:1\ncontent-length:7\n\nx\0");
    assert_eq!(found.headers.get("a").unwrap().as_deref(), Some("1"));
    assert_eq!(found.body, b"x");
    assert_eq!(found.headers.raw().count(), 4);
}

#[test]
fn bodies_that_are_too_long_or_do_not_end_are_refused() {
    let decode = |text: &[u8]| Frame::decode(text, Version::V1_2, &LIMITS).unwrap_err();
    assert_eq!(decode(b"SEND\ncontent-length:101\n\n"), Malformed::BodyTooLong(100));
    assert_eq!(decode(b"SEND\ncontent-length:1\n\nxx\0"), Malformed::NoNul);
    let long = [&b"SEND\n\n"[..], &[b'x'; 101]].concat();
    assert_eq!(decode(&long), Malformed::BodyTooLong(100));
    let huge = b"SEND\ncontent-length:9999999999999999999\n\n";
    assert_eq!(decode(huge), Malformed::BodyTooLong(100));
}

#[test]
fn what_is_written_is_read_back() {
    for version in Version::ALL {
        let mut out = Vec::new();
        let writer =
            FrameWriter::new(&mut out, "MESSAGE", version).header("destination", "/queue/a");
        writer.header("odd", "a:b\\").number("n", 7).body(b"\0body");
        let (found, used) = Frame::decode(&out, version, &LIMITS).unwrap().unwrap();
        assert_eq!((found.command, found.body, used), (&b"MESSAGE"[..], &b"\0body"[..], out.len()));
        assert_eq!(found.headers.get("odd").unwrap().as_deref(), Some("a:b\\"));
        assert_eq!(found.headers.get("n").unwrap().as_deref(), Some("7"));
    }
    let mut out = Vec::new();
    FrameWriter::new(&mut out, "RECEIPT", Version::V1_2).header("receipt-id", "a").end();
    assert_eq!(out, b"RECEIPT\nreceipt-id:a\n\n\0");
}
