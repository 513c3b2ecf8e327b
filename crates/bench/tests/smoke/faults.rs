//! The faults of the fake brokers: what they deliver for what is published.

use super::fake::Fault;
use std::thread;
use std::time::Duration;

/// Longer than tests wait for missing messages.
const PAUSE: Duration = Duration::from_millis(1_500);

/// The messages counted so far.
pub(crate) struct Faults {
    every: u64,
    published: u64,
    held_back: Vec<(String, Vec<u8>)>,
}

impl Default for Faults {
    fn default() -> Self {
        Faults::striking(100)
    }
}

impl Faults {
    /// Strikes one message in `every`.
    pub(crate) fn striking(every: u64) -> Faults {
        Faults { every, published: 0, held_back: Vec::new() }
    }

    /// The deliveries to make for a published message, in order.
    pub(crate) fn publish(
        &mut self,
        fault: Fault,
        topic: &str,
        mut body: Vec<u8>,
    ) -> Vec<(String, Vec<u8>)> {
        self.published += 1;
        if fault == Fault::Pause && self.published == 1_000 {
            // Within the broker's lock: no client is served meanwhile.
            thread::sleep(PAUSE);
        }
        let struck = self.published.is_multiple_of(self.every);
        let mut out = Vec::new();
        match fault {
            Fault::Drop if struck => return out,
            Fault::Duplicate if struck => out.push((topic.to_owned(), body.clone())),
            Fault::Swap if struck => {
                self.held_back.push((topic.to_owned(), body));
                return out;
            }
            Fault::FlipBit if struck => *body.last_mut().expect("bodies are not empty") ^= 1,
            _ => {}
        }
        out.push((topic.to_owned(), body));
        out.append(&mut self.held_back);
        out
    }

    /// Whether subscribers are cut off before the last published message is delivered.
    pub(crate) fn cuts_off(&self, fault: Fault) -> bool {
        fault == Fault::CutOff && self.published.is_multiple_of(self.every)
    }
}
