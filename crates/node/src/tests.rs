//! Scenarios against a whole node: bytes in, bytes out, over a disk in memory.
