//! Bytes as text that can be read back: `word` or `"with \x00 escapes"`.

/// Bytes as a word, or quoted where they are more than that.
pub(super) fn show(bytes: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-$#*/@+>".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    format!("\"{}\"", escape(bytes))
}

/// Bytes with escapes for all that is no printable ASCII.
pub(super) fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

/// A step with `<x*5>` written out.
pub(super) fn repeated(step: &str) -> String {
    let mut text = String::new();
    let mut rest = step;
    while let Some((before, behind)) = rest.split_once('<') {
        text.push_str(before);
        let inside = behind.split_once('>').and_then(|(inside, rest)| {
            let (letter, count) = inside.split_once('*')?;
            Some((letter.repeat(count.parse().ok()?), rest))
        });
        let (written, behind) = inside.unwrap_or(("<".to_owned(), behind));
        text.push_str(&written);
        rest = behind;
    }
    text + rest
}

/// A scenario's text from left to right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub(super) &'a str);

impl<'a> Cursor<'a> {
    /// Takes the next letter if it is this one.
    pub(super) fn take(&mut self, letter: char) -> bool {
        self.0 = self.0.trim_start();
        let rest = self.0.strip_prefix(letter);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Takes this letter, which has to come next.
    pub(super) fn expect(&mut self, letter: char) -> Result<(), String> {
        if self.take(letter) {
            Ok(())
        } else {
            Err(format!("'{letter}' is missing at '{}'", self.0))
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.0.trim_start().is_empty()
    }

    /// Takes all up to a blank or a letter with a meaning; may be empty.
    pub(super) fn word(&mut self) -> &'a str {
        let text = self.0.trim_start();
        let end = text.find(|letter: char| " ={}[],:\"".contains(letter)).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        word
    }

    /// Takes a word or a quoted text.
    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, String> {
        if !self.take('"') {
            return Ok(self.word().as_bytes().to_vec());
        }
        let mut bytes = Vec::new();
        loop {
            let mut letters = self.0.chars();
            let letter = letters.next().ok_or("a quoted text has no end")?;
            self.0 = letters.as_str();
            match letter {
                '"' => return Ok(bytes),
                '\\' => bytes.push(self.escaped()?),
                _ => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }

    fn escaped(&mut self) -> Result<u8, String> {
        let mut letters = self.0.chars();
        let letter = letters.next().ok_or("an escape has no end")?;
        self.0 = letters.as_str();
        match letter {
            'x' => {
                let digits = self.0.get(..2).ok_or("two digits belong behind \\x")?;
                self.0 = &self.0[2..];
                u8::from_str_radix(digits, 16).map_err(|error| format!("\\x{digits}: {error}"))
            }
            'r' => Ok(b'\r'),
            'n' => Ok(b'\n'),
            _ => u8::try_from(letter).map_err(|_| format!("\\{letter} is no escape")),
        }
    }

    /// Takes a number.
    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Result<T, String> {
        let word = self.word();
        word.parse().map_err(|_| format!("'{word}' is no such number"))
    }
}
