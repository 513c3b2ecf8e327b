//! Control lines: what every operation of NATS's client protocol begins with. Independent of
//! what they mean.
//!
//! ```text
//! VERB argument argument ... CR LF        arguments are parted by blanks (spaces, tabs)
//! headers and payload CR LF               where the arguments announce them
//! ```

use std::io::Write;

/// Longest control line between its verb and its line end; what nats-server takes by default.
pub const CONTROL_LINE_BYTES_MAX: usize = 4096;
/// Most arguments that any operation has.
pub const ARGUMENTS_MAX: usize = 5;
/// Most digits of a size, as nats-server has it.
const DIGITS_MAX: usize = 9;
/// What ends a line.
pub const END: &[u8; 2] = b"\r\n";

/// A control line is longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTooLong;

/// The arguments of a control line, where they lie.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    found: [&'a [u8]; ARGUMENTS_MAX],
    /// More than [`ARGUMENTS_MAX`]: there were too many to be kept.
    count: usize,
    /// Where the line ends in the input, its line end included.
    pub end: usize,
}

impl<'a> Arguments<'a> {
    /// Reads the arguments from `input[at..]` to the end of the line; `None`: it has not arrived.
    #[inline]
    pub fn read(
        input: &'a [u8],
        at: usize,
        bytes_max: usize,
    ) -> Result<Option<Arguments<'a>>, LineTooLong> {
        let mut arguments = Arguments { found: [&[]; ARGUMENTS_MAX], count: 0, end: 0 };
        let mut here = at;
        while let Some(&byte) = input.get(here) {
            match byte {
                b' ' | b'\t' | b'\r' => here += 1,
                b'\n' => {
                    arguments.end = here + 1;
                    // One more for a carriage return.
                    let fits = here - at <= bytes_max + 1;
                    return if fits { Ok(Some(arguments)) } else { Err(LineTooLong) };
                }
                _ => {
                    let Some(end) = blank(input, here) else { break };
                    if let Some(slot) = arguments.found.get_mut(arguments.count) {
                        *slot = &input[here..end];
                    }
                    arguments.count += 1;
                    here = end;
                }
            }
        }
        if input.len() - at > bytes_max + 1 { Err(LineTooLong) } else { Ok(None) }
    }

    /// The arguments; `None`: there are too many.
    #[inline]
    #[must_use]
    pub fn all(&self) -> Option<&[&'a [u8]]> {
        self.found.get(..self.count)
    }
}

/// The argument that begins at `at`, and where the one behind it begins: parted by one space, as all
/// libraries write them. `None`: it is otherwise, or not all there.
#[inline(always)]
pub fn plain(input: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let end = blank(input, at)?;
    let argument = input.get(at..end).filter(|argument| !argument.is_empty())?;
    (input[end] == b' ').then_some((argument, end + 1))
}

/// The rest of a line from `input[at..]` without blanks around it, and where it ends with its line
/// end; `None`: it has not arrived.
pub fn rest(
    input: &[u8],
    at: usize,
    bytes_max: usize,
) -> Result<Option<(&[u8], usize)>, LineTooLong> {
    let line = &input[at..];
    match line.iter().position(|&byte| byte == b'\n') {
        Some(end) if end <= bytes_max + 1 => Ok(Some((line[..end].trim_ascii(), at + end + 1))),
        None if line.len() <= bytes_max + 1 => Ok(None),
        _ => Err(LineTooLong),
    }
}

const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Where the first space, tab or line end at or behind `at` is.
///
/// Eight bytes at a time: subtracting `0x21` from each sets the top bit of those that are at most a
/// space. A borrow spoils only bytes above the first such, and the first is all that is asked for.
#[inline]
fn blank(input: &[u8], at: usize) -> Option<usize> {
    let mut here = at;
    while let Some(chunk) = input[here..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let hits = word.wrapping_sub(each(0x21)) & !word & each(0x80);
        if hits == 0 {
            here += 8;
            continue;
        }
        here += hits.trailing_zeros() as usize / 8;
        if is_blank(input[here]) {
            return Some(here);
        }
        // Another control character: part of an argument.
        here += 1;
    }
    let behind = input[here..].iter().position(|&byte| is_blank(byte))?;
    Some(here + behind)
}

#[inline]
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// What ends the line of a message without headers, as all libraries write it: a reply subject, which
/// may be missing, and the size. Returns both, and where the line ends; `None`: there is something else,
/// or not all of it.
#[inline(always)]
pub fn reply_and_size(input: &[u8], at: usize) -> Option<(&[u8], usize, usize)> {
    if let Some((size, end)) = last_number(input, at) {
        return Some((&[], size, end));
    }
    let (reply, at) = plain(input, at)?;
    let (size, end) = last_number(input, at)?;
    Some((reply, size, end))
}

/// The decimal number that begins at `at` and ends with the line, and where that ends; `None`: there is
/// something else, more than nine digits, or not all of it.
#[inline(always)]
pub fn last_number(input: &[u8], at: usize) -> Option<(usize, usize)> {
    let (mut number, mut here) = (0, at);
    loop {
        let value = input.get(here)?.wrapping_sub(b'0');
        if value > 9 {
            break;
        }
        if here - at == DIGITS_MAX {
            return None;
        }
        number = number * 10 + usize::from(value);
        here += 1;
    }
    let [b'\r', b'\n', ..] = input.get(here..)? else { return None };
    (here > at).then_some((number, here + 2))
}

/// A decimal number of at most nine digits, the sizes that nats-server takes.
#[inline]
#[must_use]
pub fn number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| {
        let value = digit.wrapping_sub(b'0');
        (value <= 9).then(|| number * 10 + usize::from(value))
    })
}

/// Appends a number in decimal digits.
#[inline]
pub fn put_number(out: &mut Vec<u8>, number: usize) {
    put_last_number(out, number);
    out.truncate(out.len() - END.len());
}

/// Appends the size that ends a control line, in decimal digits, with the line's end. Most have few digits:
/// those are written at a known length.
#[inline]
pub fn put_last_number(out: &mut Vec<u8>, number: usize) {
    let digit = |unit: usize| b'0' + (number / unit % 10) as u8;
    let [cr, lf] = *END;
    match number {
        0..10 => out.extend_from_slice(&[digit(1), cr, lf]),
        10..100 => out.extend_from_slice(&[digit(10), digit(1), cr, lf]),
        100..1_000 => out.extend_from_slice(&[digit(100), digit(10), digit(1), cr, lf]),
        1_000..10_000 => {
            out.extend_from_slice(&[digit(1_000), digit(100), digit(10), digit(1), cr, lf]);
        }
        _ => put_long_number(out, number),
    }
}

#[cold]
fn put_long_number(out: &mut Vec<u8>, number: usize) {
    write!(out, "{number}\r\n").expect("a vector takes every byte");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Option<Vec<String>> {
        let read = Arguments::read(text.as_bytes(), 0, 4096).unwrap()?;
        assert_eq!(read.end, text.find('\n').unwrap() + 1);
        let all = read.all().map(|all| all.iter().map(|one| String::from_utf8_lossy(one).into()));
        Some(all.map_or(vec!["too many".to_owned()], Iterator::collect))
    }

    #[test]
    fn arguments_are_parted_by_blanks_of_any_number() {
        for (line, expected) in [
            (" a b\r\n", &["a", "b"][..]),
            ("a\n", &["a"]),
            ("\r\n", &[]),
            (
                " \t orders.created\t\t_INBOX.x \t 12 \r\nrest",
                &["orders.created", "_INBOX.x", "12"],
            ),
            ("a b c d e\r\n", &["a", "b", "c", "d", "e"]),
            ("a b c d e f\r\n", &["too many"]),
            ("control\u{1}character in\u{7f}it\r\n", &["control\u{1}character", "in\u{7f}it"]),
            ("überlang.ä 1\r\n", &["überlang.ä", "1"]),
        ] {
            assert_eq!(arguments(line).unwrap(), expected, "{line:?}");
        }
    }

    #[test]
    fn a_line_without_its_end_is_awaited_up_to_the_limit() {
        assert_eq!(arguments("orders.created 12\r"), None);
        let exactly = format!("{}\r\n", "x".repeat(20));
        assert!(Arguments::read(exactly.as_bytes(), 0, 20).unwrap().is_some());
        assert!(Arguments::read(exactly.as_bytes(), 0, 19).is_err());
        assert!(Arguments::read(&exactly.as_bytes()[..21], 0, 20).unwrap().is_none());
        assert!(Arguments::read(&[b'x'; 22], 0, 20).is_err());
        assert!(rest(exactly.as_bytes(), 0, 20).unwrap().is_some());
        assert!(rest(exactly.as_bytes(), 0, 19).is_err());
        assert!(rest(&[b'x'; 22], 0, 20).is_err());
        assert_eq!(rest(b" {} \r\nPING", 0, 20), Ok(Some((&b"{}"[..], 6))));
    }

    #[test]
    fn numbers_go_there_and_back() {
        for value in
            [0, 1, 9, 10, 99, 100, 101, 999, 1_000, 1_024, 9_999, 10_000, 65_535, 999_999_999]
        {
            let mut out = Vec::new();
            put_number(&mut out, value);
            assert_eq!(out, value.to_string().as_bytes());
            assert_eq!(number(&out), Some(value));
        }
        for wrong in ["", "-1", "1x", "1000000000", "+1", " 1"] {
            assert_eq!(number(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_number_that_ends_a_line_is_read_where_it_lies() {
        for (line, expected) in [
            ("5\r\n", Some((5, 3))),
            ("1024\r\nbody", Some((1_024, 6))),
            ("999999999\r\n", Some((999_999_999, 11))),
            ("1000000000\r\n", None),
            ("12 5\r\n", None),
            ("_INBOX.1 5\r\n", None),
            ("5 \r\n", None),
            ("5\n", None),
            ("5\r", None),
            ("5", None),
            ("\r\n", None),
            ("", None),
        ] {
            assert_eq!(last_number(line.as_bytes(), 0), expected, "{line:?}");
        }
    }
}
