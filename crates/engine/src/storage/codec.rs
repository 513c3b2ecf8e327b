//! Bytes of records and snapshots: fixed-width little-endian integers, variable-length integers and
//! length-prefixed text. Reading never panics and never trusts a length.

/// What is wrong with stored bytes.
pub(crate) type Malformed = String;

/// Appends values to a byte vector.
#[derive(Debug)]
pub(crate) struct Writer<'a>(pub(crate) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }
    pub(crate) fn bool(&mut self, value: bool) {
        self.0.push(u8::from(value));
    }
    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    /// Seven bits a byte, lowest first; the top bit says that more follow.
    #[inline]
    pub(crate) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value as u8) | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
    #[inline]
    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }
    #[inline]
    pub(crate) fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }
    /// A flag, and the value where there is one.
    pub(crate) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.bool(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Takes values off the front of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let Some((taken, rest)) = self.0.split_at_checked(length) else {
            return Err(self.too_short_for(length));
        };
        self.0 = rest;
        Ok(taken)
    }
    #[cold]
    fn too_short_for(&self, length: usize) -> Malformed {
        format!("{length} bytes expected, {} left", self.0.len())
    }
    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }
    pub(crate) fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("{other} is no truth value")),
        }
    }
    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes were taken")))
    }
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes were taken")))
    }
    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        match self.0.split_first() {
            // Most are less than 128.
            Some((byte, rest)) if *byte < 0x80 => {
                self.0 = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }
    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("integer of more than 64 bits".to_owned())
    }
    /// A count of things of at least one byte each, so that it cannot exceed what is left.
    #[inline]
    pub(crate) fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.0.len() => Ok(count),
            _ => Err(self.too_few_for(count)),
        }
    }
    #[cold]
    fn too_few_for(&self, count: u64) -> Malformed {
        format!("count of {count} with {} bytes left", self.0.len())
    }
    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.count()?;
        self.take(length)
    }
    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|error| error.to_string())
    }
    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        if self.bool()? { read(self).map(Some) } else { Ok(None) }
    }
    /// Refuses what is left over.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(format!("{} bytes too many", self.0.len())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_comes_back() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            Writer(&mut bytes).varint(value);
            let mut reader = Reader(&bytes);
            assert_eq!(reader.varint(), Ok(value));
            assert_eq!(reader.end(), Ok(()));
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(Reader(&[0xff; 11]).varint().is_err());
        assert!(Reader(&[0xff, 0xff, 3]).bytes().is_err());
        assert!(Reader(&[2]).bool().is_err());
        assert!(Reader(&[1, 0xff]).text().is_err());
        assert!(Reader(&[]).u64().is_err());
    }
}
