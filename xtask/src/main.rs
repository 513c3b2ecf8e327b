//! Automation in Rust.
fn main() {}
