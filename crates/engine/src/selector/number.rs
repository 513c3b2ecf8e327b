//! Numbers in a selector's text: the literals of Java.

/// A number as it is written, without its sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Exact(i64),
    /// 9223372036854775808, which is only a number with a minus before it.
    ExactMin,
    Approximate(f64),
}

/// A number, and how many bytes of the text it takes.
pub(super) struct Scanned {
    pub(super) number: Number,
    pub(super) len: usize,
}

/// Scans the number with which the text begins, at least one digit, perhaps behind a point.
pub(super) fn scan(text: &str) -> Result<Scanned, &'static str> {
    let radix = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', b'b' | b'B', ..] => 2,
        _ => 10,
    };
    if radix == 10 { decimal(text) } else { with_prefix(text, radix) }
}

/// `0x…` or `0b…`.
fn with_prefix(text: &str, radix: u32) -> Result<Scanned, &'static str> {
    let end = 2 + digits(&text[2..], radix);
    if end == 2 {
        return Err("0x needs hexadecimal digits behind it, 0b binary ones");
    }
    let number = bits(&text[2..end], radix)?;
    Ok(Scanned { number, len: end + suffix(&text[end..], "lL") })
}

/// A decimal or octal number, exact or approximate.
fn decimal(text: &str) -> Result<Scanned, &'static str> {
    let whole = digits(text, 10);
    let mut end = whole;
    if text[end..].starts_with('.') {
        end += 1 + digits(&text[end + 1..], 10);
    }
    end += exponent(&text[end..])?;
    let float = suffix(&text[end..], "fF");
    let double = suffix(&text[end..], "dD");
    if end > whole || float + double > 0 {
        let number = approximate(&text[..end], float > 0)?;
        return Ok(Scanned { number, len: end + float + double });
    }
    let len = end + suffix(&text[end..], "lL");
    let number = if whole > 1 && text.starts_with('0') {
        if digits(text, 8) < whole {
            return Err("a number that begins with 0 is octal, of the digits 0 to 7");
        }
        bits(&text[..whole], 8)?
    } else {
        match text[..whole].parse::<u64>() {
            Ok(0x8000_0000_0000_0000) => Number::ExactMin,
            Ok(number) => Number::Exact(i64::try_from(number).map_err(|_| OUT_OF_RANGE)?),
            Err(_) => return Err(OUT_OF_RANGE),
        }
    };
    Ok(Scanned { number, len })
}

const OUT_OF_RANGE: &str = "the number is outside -9223372036854775808 to 9223372036854775807; \
                            with a decimal point it would be approximate";

/// How many of the bytes at the beginning are digits.
fn digits(text: &str, radix: u32) -> usize {
    text.bytes().take_while(|byte| char::from(*byte).is_digit(radix)).count()
}

/// The length of an exponent at the beginning; 0 if there is none.
fn exponent(text: &str) -> Result<usize, &'static str> {
    let sign = match text.as_bytes() {
        [b'e' | b'E', b'+' | b'-', ..] => 1,
        [b'e' | b'E', ..] => 0,
        _ => return Ok(0),
    };
    match digits(&text[1 + sign..], 10) {
        0 => Err("the exponent needs digits behind its E"),
        count => Ok(1 + sign + count),
    }
}

/// 1 if the text begins with one of these letters.
fn suffix(text: &str, letters: &str) -> usize {
    usize::from(text.starts_with(|c| letters.contains(c)))
}

/// Digits that give the 64 bits of a number, the highest of which is its sign.
fn bits(digits: &str, radix: u32) -> Result<Number, &'static str> {
    let bits =
        u64::from_str_radix(digits, radix).map_err(|_| "the number has more than 64 bits")?;
    Ok(Number::Exact(bits.cast_signed()))
}

fn approximate(text: &str, is_float: bool) -> Result<Number, &'static str> {
    let number = if is_float { text.parse::<f32>().map(f64::from) } else { text.parse::<f64>() };
    match number {
        Ok(number) if number.is_finite() => Ok(Number::Approximate(number)),
        _ => Err("the number is too large"),
    }
}
