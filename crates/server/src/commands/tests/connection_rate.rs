//! More clients at once than may begin in a second.

use super::Running;
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

/// What a client is sent that says nothing, until it is closed or nothing has come for a while.
fn greeting(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (mut greeting, mut block) = (Vec::new(), [0; 4_096]);
    while let Ok(count @ 1..) = stream.read(&mut block) {
        greeting.extend_from_slice(&block[..count]);
    }
    String::from_utf8(greeting).unwrap()
}

#[test]
fn clients_beyond_the_rate_are_told_so_and_closed() {
    let limits = [("connections-per-second", "1"), ("connections-max", "100")];
    let running = Running::start_with(&limits);
    let greetings: Vec<String> = (0..20).map(|_| greeting(&running.nats)).collect();
    let refusal = "-ERR 'Connection throttling is active. Please try again later.'\r\n";
    let (refused, taken): (Vec<_>, Vec<_>) =
        greetings.iter().partition(|greeting| greeting.ends_with(refusal));
    // A second may end meanwhile, on a machine that is busy with other programs several.
    assert!(!refused.is_empty() && !taken.is_empty(), "{greetings:?}");
    for greeting in greetings {
        assert!(greeting.starts_with("INFO {"), "{greeting}");
    }
}
