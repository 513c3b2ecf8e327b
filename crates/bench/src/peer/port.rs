//! Free ports on loopback.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// A loopback port that is not in use and that this function has not returned before: a broker may not
/// listen on an earlier one yet.
pub fn free_port() -> io::Result<u16> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        if GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return Ok(port);
        }
    }
}
