//! Whether text that comes in parts is UTF-8, said as soon as it is not.

/// What has come of a character that has not come whole.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Utf8 {
    begun: [u8; 4],
    len: u8,
}

impl Utf8 {
    /// Takes the next part; says whether all may be UTF-8 so far.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> bool {
        while self.len > 0 {
            let Some((first, rest)) = bytes.split_first() else { return true };
            let len = usize::from(self.len) + 1;
            self.begun[len - 1] = *first;
            bytes = rest;
            match str::from_utf8(&self.begun[..len]) {
                Ok(_) => self.len = 0,
                Err(error) if error.error_len().is_some() => return false,
                // Four bytes are a character or none.
                Err(_) => self.len += 1,
            }
        }
        let Err(error) = str::from_utf8(bytes) else { return true };
        let begun = &bytes[error.valid_up_to()..];
        if error.error_len().is_some() {
            return false;
        }
        self.begun[..begun.len()].copy_from_slice(begun);
        self.len = begun.len() as u8;
        true
    }

    /// How many bytes have come of a character that has not come whole.
    pub(super) fn begun(&self) -> usize {
        usize::from(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::Utf8;

    #[test]
    fn text_is_judged_alike_wherever_it_is_cut() {
        for (bytes, is_text) in [
            (&b"plain"[..], true),
            ("κόσμε €𝄞".as_bytes(), true),
            (b"\xce\xba\xe1\xbd\xb9\xed\xa0\x80edited", false),
            (b"\xf4\x90\x80\x80", false),
            (b"\xc0\xaf", false),
            (b"a\xff", false),
            (b"cut \xe2\x82", false),
        ] {
            for at in 0..=bytes.len() {
                let mut utf8 = Utf8::default();
                let (one, other) = bytes.split_at(at);
                let is_whole = utf8.push(one) && utf8.push(other) && utf8.begun() == 0;
                assert_eq!(is_whole, is_text, "{bytes:x?} cut at {at}");
            }
            let mut utf8 = Utf8::default();
            let is_whole = bytes.chunks(1).all(|byte| utf8.push(byte)) && utf8.begun() == 0;
            assert_eq!(is_whole, is_text, "{bytes:x?} byte by byte");
        }
    }

    #[test]
    fn what_cannot_be_text_is_said_at_once() {
        let mut utf8 = Utf8::default();
        assert!(utf8.push(b"\xf0"));
        assert!(!utf8.push(b"\x80"), "no character begins so");
    }
}
