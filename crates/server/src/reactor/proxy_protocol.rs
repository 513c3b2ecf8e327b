//! The header by which a proxy says for whom it connects: PROXY protocol, versions 1 and 2, as HAProxy's
//! specification has it.
//!
//! It comes before everything else, TLS too. Does not know who may send one.

use std::net::{IpAddr, SocketAddr};

/// The longest header of version 1.
const LINE_BYTES_MAX: usize = 107;
const LINE_BEGINS: &[u8] = b"PROXY ";
/// What version 2 begins with.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version with command, family, and length.
const FIXED_BYTES: usize = 16;
/// What of the addresses and behind them is taken in version 2.
const REST_BYTES_MAX: usize = 4 << 10;
/// The longest header.
pub(super) const HEADER_BYTES_MAX: usize = FIXED_BYTES + REST_BYTES_MAX;

/// What a header says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// It has not come whole.
    Incomplete,
    /// It is this long, and the client is there; `None`: the proxy does not know, or connects for itself.
    Whole(usize, Option<SocketAddr>),
    /// It is none.
    Wrong(&'static str),
}

/// The header that `input` begins with.
pub(super) fn parse(input: &[u8]) -> Header {
    let begins = |with: &[u8]| with.starts_with(input) || input.starts_with(with);
    let parsed = if begins(LINE_BEGINS) {
        parse_line(input)
    } else if begins(SIGNATURE) {
        parse_binary(input)
    } else {
        Err("it does not begin with a PROXY header")
    };
    match parsed {
        Ok(None) => Header::Incomplete,
        Ok(Some((used, client))) => Header::Whole(used, client),
        Err(why) => Header::Wrong(why),
    }
}

type Parsed = Result<Option<(usize, Option<SocketAddr>)>, &'static str>;

/// Version 1: `PROXY TCP4 192.0.2.1 192.0.2.2 1000 5672`.
fn parse_line(input: &[u8]) -> Parsed {
    let Some(end) = input.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n') else {
        let is_long = input.len() >= LINE_BYTES_MAX;
        return if is_long { Err("its PROXY header is longer than 107 bytes") } else { Ok(None) };
    };
    let line = input[..end].strip_suffix(b"\r").and_then(|line| str::from_utf8(line).ok());
    let mut words = line.ok_or("its PROXY header does not end with CR LF")?.split(' ').skip(1);
    let family = words.next().unwrap_or_default();
    if family == "UNKNOWN" {
        return Ok(Some((end + 1, None)));
    }
    let (Some(source), Some(_), Some(port), Some(_), None) =
        (words.next(), words.next(), words.next(), words.next(), words.next())
    else {
        return Err("its PROXY header has too few or too many words");
    };
    let source: IpAddr = source.parse().map_err(|_| "its PROXY header has no address")?;
    let is_of_family =
        matches!((family, source), ("TCP4", IpAddr::V4(_)) | ("TCP6", IpAddr::V6(_)));
    if !is_of_family {
        return Err("its PROXY header has an address of another family");
    }
    let port: u16 = port.parse().map_err(|_| "its PROXY header has no port")?;
    Ok(Some((end + 1, Some(SocketAddr::new(source, port)))))
}

/// Version 2, in binary.
fn parse_binary(input: &[u8]) -> Parsed {
    let Some([command, family, length @ ..]) = input.get(SIGNATURE.len()..FIXED_BYTES) else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    if length > REST_BYTES_MAX {
        return Err("its PROXY header is longer than 4 KiB");
    }
    let Some(rest) = input[FIXED_BYTES..].get(..length) else { return Ok(None) };
    let client = match (command, family) {
        (0x20, _) => None,
        (0x21, 0x11) => Some(address::<4>(rest)?),
        (0x21, 0x21) => Some(address::<16>(rest)?),
        // Others are not addresses of the Internet.
        (0x21, _) => None,
        _ => return Err("its PROXY header has an unknown version or command"),
    };
    Ok(Some((FIXED_BYTES + length, client)))
}

/// The source among addresses of `N` bytes: source, destination, and their ports.
fn address<const N: usize>(rest: &[u8]) -> Result<SocketAddr, &'static str>
where
    IpAddr: From<[u8; N]>,
{
    let short = "its PROXY header has too short an address";
    let source: [u8; N] = *rest.first_chunk().ok_or(short)?;
    let port = rest.get(2 * N..).and_then(|ports| ports.first_chunk::<4>()).ok_or(short)?;
    Ok(SocketAddr::new(source.into(), u16::from_be_bytes([port[0], port[1]])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = (rest.len() as u16).to_be_bytes();
        [SIGNATURE, &[command, family], &length, rest].concat()
    }

    /// Checks what a header says, and that it says nothing before it is whole, whatever follows it.
    #[track_caller]
    fn check_whole(header: &[u8], client: Option<&str>) {
        let client = client.map(|client| client.parse().unwrap());
        for end in 0..header.len() {
            assert_eq!(
                parse(&header[..end]),
                Header::Incomplete,
                "{}",
                header[..end].escape_ascii()
            );
        }
        for behind in [&b""[..], b"AMQP\0\0\x09\x01", b"\r\n"] {
            let input = [header, behind].concat();
            let shown = input.escape_ascii();
            assert_eq!(parse(&input), Header::Whole(header.len(), client), "{shown}");
        }
    }

    #[test]
    fn a_header_names_the_client() {
        for (line, client) in [
            ("PROXY TCP4 192.0.2.1 192.0.2.2 1000 5672\r\n", Some("192.0.2.1:1000")),
            (
                "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
                Some("255.255.255.255:65535"),
            ),
            ("PROXY TCP6 2001:db8::1 ::1 1000 5672\r\n", Some("[2001:db8::1]:1000")),
            ("PROXY UNKNOWN\r\n", None),
            ("PROXY UNKNOWN ffff:f::ffff ffff:f::ffff 65535 65535\r\n", None),
        ] {
            check_whole(line.as_bytes(), client);
        }
        let v4 = [192, 0, 2, 1, 192, 0, 2, 2, 3, 232, 22, 40];
        let v6 = [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[1], &[0; 16], &[3, 232, 22, 40]].concat();
        let with_more = [&v4[..], &[4, 0, 1, 0]].concat();
        check_whole(&binary(0x21, 0x11, &v4), Some("192.0.2.1:1000"));
        check_whole(&binary(0x21, 0x11, &with_more), Some("192.0.2.1:1000"));
        check_whole(&binary(0x21, 0x21, &v6), Some("[2001:db8::1]:1000"));
        check_whole(&binary(0x21, 0x31, &[0; 216]), None);
        check_whole(&binary(0x21, 0, b""), None);
        check_whole(&binary(0x20, 0, b""), None);
        check_whole(&binary(0x20, 0x11, &v4), None);
        check_whole(&binary(0x20, 0, &[0; REST_BYTES_MAX]), None);
        assert_eq!(binary(0x20, 0, &[0; REST_BYTES_MAX]).len(), HEADER_BYTES_MAX);
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let long = format!("PROXY UNKNOWN {}", "x".repeat(LINE_BYTES_MAX));
        for (input, why) in [
            (&b"AMQP\0\0\x09\x01"[..], "it does not begin with a PROXY header"),
            (b"\x16\x03\x01", "it does not begin with a PROXY header"),
            (b"PROXY", ""),
            (b"PROXIES ", "it does not begin with a PROXY header"),
            (b"PROXY UNKNOWN\n", "its PROXY header does not end with CR LF"),
            (b"PROXY TCP4 192.0.2.1\r\n", "its PROXY header has too few or too many words"),
            (
                b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
                "its PROXY header has too few or too many words",
            ),
            (b"PROXY TCP4 here there 1 2\r\n", "its PROXY header has no address"),
            (b"PROXY TCP4 ::1 ::1 1 2\r\n", "its PROXY header has an address of another family"),
            (
                b"PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",
                "its PROXY header has an address of another family",
            ),
            (b"PROXY TCP4 192.0.2.1 192.0.2.2 70000 2\r\n", "its PROXY header has no port"),
            (long.as_bytes(), "its PROXY header is longer than 107 bytes"),
            (&binary(0x11, 0x11, &[0; 12]), "its PROXY header has an unknown version or command"),
            (&binary(0x22, 0x11, &[0; 12]), "its PROXY header has an unknown version or command"),
            (&binary(0x21, 0x11, &[0; 11]), "its PROXY header has too short an address"),
            (&binary(0x21, 0x21, &[0; 35]), "its PROXY header has too short an address"),
            (
                &binary(0x21, 0x11, &[0; REST_BYTES_MAX + 1]),
                "its PROXY header is longer than 4 KiB",
            ),
        ] {
            let expected = if why.is_empty() { Header::Incomplete } else { Header::Wrong(why) };
            assert_eq!(parse(input), expected, "{}", input.escape_ascii());
        }
    }
}
