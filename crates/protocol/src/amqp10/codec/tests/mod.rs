//! Codec tests: tables of bytes and values, there and back, and bytes that are wrong. Some bytes were written
//! by rhea and qpid-proton: comments say which.

mod composites;
mod frames;
mod hostile;
mod peers;
pub(crate) mod random;
mod sections;
mod speed;
mod values;

/// The octets that hexadecimal digits stand for; blanks are passed over.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<char> = digits.chars().filter(|digit| !digit.is_whitespace()).collect();
    let octet = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
    digits.chunks(2).map(octet).collect()
}
