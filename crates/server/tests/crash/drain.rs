//! SIGTERM under load: connections end at the end of a frame, the program ends well, and everything
//! confirmed is there at the next start.

use crate::broker::Broker;
use crate::random::Random;
use crate::wire::{Client, Event};
use crate::{check, folder, load, seed, shared, under_load, wait_for_confirms};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
#[ignore = "slow: cargo xtask test --only crash"]
fn sigterm_drains() {
    let data = folder();
    let mut broker = Broker::start(data.path());
    let shared = shared(&broker);
    let mut random = Random::new(seed());
    load::prepare(&shared).expect("queues can be declared");
    for _ in 0..3 {
        let before = shared.history().confirmed();
        let mut witness = Client::connect(broker.address).expect("the broker listens");
        under_load(&shared, &mut random, |random| {
            wait_for_confirms(&shared, before + 1);
            std::thread::sleep(Duration::from_micros(random.below(200_000)));
            shared.ending.store(true, Ordering::SeqCst);
            broker.terminate();
        });
        check_farewell(&mut witness);
        let status = broker.wait();
        assert!(status.success(), "the program ended with {status}");
        broker.restart();
        check(&shared);
    }
}

/// An idle connection gets a reason, and ends at the end of a frame.
fn check_farewell(witness: &mut Client) {
    match witness.next() {
        Ok(Event::Closed { code, text }) => {
            assert_eq!(code, 320, "{text}");
            witness.accept_close();
            // The broker may be gone before our answer arrives.
            let _ = witness.flush();
            assert!(witness.ends_cleanly(), "the connection did not end after its close");
        }
        other => panic!("instead of a close: {other:?}"),
    }
}
