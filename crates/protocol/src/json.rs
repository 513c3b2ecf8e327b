//! As much JSON as protocols need: the members of one object, and text written safely.

use std::borrow::Cow;

/// How deep values that nobody asks for may be nested.
const DEPTH_MAX: usize = 32;

/// A member's value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Text(Cow<'a, str>),
    Number(i64),
    Bool(bool),
    Null,
    /// A list, an object or a fraction: nothing that is asked for.
    Other,
}

/// Not JSON, or no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJson;

/// Visits the members of an object in their order.
pub(crate) fn members<'a>(
    text: &'a [u8],
    mut visit: impl FnMut(&str, Value<'a>),
) -> Result<(), NotJson> {
    let mut reader = Reader { text: str::from_utf8(text).map_err(|_| NotJson)?, at: 0 };
    reader.expect(b'{')?;
    if reader.peek() == Some(b'}') {
        reader.at += 1;
    } else {
        loop {
            let name = reader.string()?;
            reader.expect(b':')?;
            let value = reader.value(DEPTH_MAX)?;
            visit(&name, value);
            match reader.next() {
                Some(b',') => {}
                Some(b'}') => break,
                _ => return Err(NotJson),
            }
        }
    }
    if reader.peek().is_none() { Ok(()) } else { Err(NotJson) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Result<(), NotJson> {
        if self.next() == Some(byte) { Ok(()) } else { Err(NotJson) }
    }

    fn value(&mut self, depth: usize) -> Result<Value<'a>, NotJson> {
        match self.peek().ok_or(NotJson)? {
            b'"' => self.string().map(Value::Text),
            b'{' | b'[' => self.skip(depth).map(|()| Value::Other),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Null),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, NotJson> {
        if !self.text[self.at..].starts_with(word) {
            return Err(NotJson);
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Value<'a>, NotJson> {
        let rest = &self.text[self.at..];
        let is_part = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let end = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let digits = &rest[..end];
        self.at += end;
        match digits.parse() {
            Ok(number) if !digits.starts_with('+') => Ok(Value::Number(number)),
            _ => digits.parse::<f64>().map(|_| Value::Other).map_err(|_| NotJson),
        }
    }

    /// A list or an object that nobody asks for.
    fn skip(&mut self, depth: usize) -> Result<(), NotJson> {
        let depth = depth.checked_sub(1).ok_or(NotJson)?;
        let is_object = self.next() == Some(b'{');
        let close = if is_object { b'}' } else { b']' };
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            if is_object {
                self.string()?;
                self.expect(b':')?;
            }
            self.value(depth)?;
            match self.next() {
                Some(b',') => {}
                Some(byte) if byte == close => return Ok(()),
                _ => return Err(NotJson),
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, NotJson> {
        self.expect(b'"')?;
        let rest = &self.text[self.at..];
        let plain = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
        let plain = plain.ok_or(NotJson)?;
        if rest.as_bytes()[plain] == b'"' {
            self.at += plain + 1;
            return Ok(Cow::Borrowed(&rest[..plain]));
        }
        let mut text = rest[..plain].to_owned();
        let mut left = &rest[plain..];
        loop {
            let mut letters = left.chars();
            match letters.next().ok_or(NotJson)? {
                '"' => break,
                '\\' => {
                    left = letters.as_str();
                    text.push(escaped(&mut left)?);
                    continue;
                }
                letter if letter < ' ' => return Err(NotJson),
                letter => text.push(letter),
            }
            left = letters.as_str();
        }
        self.at = self.text.len() - left.len() + 1;
        Ok(Cow::Owned(text))
    }
}

/// The character that an escape stands for; `left` begins behind its backslash.
fn escaped(left: &mut &str) -> Result<char, NotJson> {
    let mut letters = left.chars();
    let letter = match letters.next().ok_or(NotJson)? {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            *left = letters.as_str();
            return unicode(left);
        }
        other @ ('"' | '\\' | '/') => other,
        _ => return Err(NotJson),
    };
    *left = letters.as_str();
    Ok(letter)
}

/// Four hexadecimal digits, or twice those for a pair of surrogates; a lone one becomes U+FFFD.
fn unicode(left: &mut &str) -> Result<char, NotJson> {
    let high = hex4(left)?;
    if !(0xd800..0xdc00).contains(&high) {
        return Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    let Some(mut rest) = left.strip_prefix("\\u") else { return Ok(char::REPLACEMENT_CHARACTER) };
    let low = hex4(&mut rest)?;
    if !(0xdc00..0xe000).contains(&low) {
        return Ok(char::REPLACEMENT_CHARACTER);
    }
    *left = rest;
    let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
}

fn hex4(left: &mut &str) -> Result<u32, NotJson> {
    let digits = left.get(..4).ok_or(NotJson)?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(NotJson);
    }
    *left = &left[4..];
    u32::from_str_radix(digits, 16).map_err(|_| NotJson)
}

/// Appends text in quotes.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            0..0x20 => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Appends the members of an object, one after another.
#[derive(Debug)]
pub(crate) struct ObjectWriter<'o> {
    pub(crate) out: &'o mut Vec<u8>,
    separator: u8,
}

impl<'o> ObjectWriter<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> ObjectWriter<'o> {
        ObjectWriter { out, separator: b'{' }
    }
    pub(crate) fn name(&mut self, name: &str) {
        self.out.push(std::mem::replace(&mut self.separator, b','));
        put_text(self.out, name);
        self.out.push(b':');
    }
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        put_text(self.out, text);
    }
    pub(crate) fn number(&mut self, name: &str, number: usize) {
        self.name(name);
        crate::nats::frame::put_number(self.out, number);
    }
    pub(crate) fn bool(&mut self, name: &str, value: bool) {
        self.name(name);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }
    pub(crate) fn texts(&mut self, name: &str, texts: &[String]) {
        self.name(name);
        self.out.push(b'[');
        for (at, text) in texts.iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            put_text(self.out, text);
        }
        self.out.push(b']');
    }
    /// A member that is a list of objects, one for each item.
    pub(crate) fn objects<T>(
        &mut self,
        name: &str,
        items: &[T],
        mut put: impl FnMut(&mut ObjectWriter<'_>, &T),
    ) {
        self.name(name);
        self.out.push(b'[');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            let mut object = ObjectWriter::new(self.out);
            put(&mut object, item);
            object.end();
        }
        self.out.push(b']');
    }
    /// A member that is an object itself, to be ended before this one goes on.
    pub(crate) fn object(&mut self, name: &str) -> ObjectWriter<'_> {
        self.name(name);
        ObjectWriter::new(self.out)
    }
    pub(crate) fn end(self) {
        if self.separator == b'{' {
            self.out.push(b'{');
        }
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, NotJson> {
        let mut found = Vec::new();
        members(text.as_bytes(), |name, value| {
            found.push((name.to_owned(), format!("{value:?}")));
        })?;
        Ok(found)
    }

    #[test]
    fn members_are_read_in_their_order() {
        let text = r#" { "a" : "x\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00\ud800", "b":-12,"c":true ,
            "d":false,"e":null,"f":[1,{"g":[]},"]"],"h":{"i":{}},"j":1.5e3,"":"" } "#;
        let found = read(text).unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e", "f", "h", "j", ""]);
        let expected = "x\"\\/\u{8}\u{c}\n\r\tä😀\u{fffd}";
        assert_eq!(found[0].1, format!("Text({expected:?})"));
        assert_eq!(found[1].1, "Number(-12)");
        assert!(found[5..8].iter().all(|(_, value)| value == "Other"));
        assert!(read("{}").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(40), "]".repeat(40));
        for text in [
            "",
            "{",
            "}",
            "[]",
            "null",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1}x",
            "{a:1}",
            "{\"a\":tru}",
            "{\"a\":\"\n\"}",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\u12\"}",
            "{\"a\":--1}",
            "{\"a\":\"",
            "{\"a\":\"\\",
            "{\"a\":[1}",
            "{\"a\":{\"b\"}}",
            &deep,
        ] {
            assert_eq!(read(text), Err(NotJson), "{text}");
        }
        assert_eq!(members(b"{\"\xff\":1}", |_, _| ()), Err(NotJson));
    }

    #[test]
    fn text_goes_there_and_back() {
        let text = "quote \" backslash \\ line\nbell\u{7} ä 😀";
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        object.text("t", text);
        object.number("n", 12);
        object.bool("b", true);
        object.texts("l", &[text.to_owned(), "]".to_owned()]);
        let mut inner = object.object("o");
        inner.texts("none", &[]);
        inner.end();
        object.end();
        let found = read(str::from_utf8(&out).unwrap()).unwrap();
        assert_eq!(found[0].1, format!("Text({text:?})"));
        assert_eq!(found.len(), 5);
    }
}
