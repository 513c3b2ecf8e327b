//! What a fake broker of topics does wrong: what it delivers for what is published.

use super::fake::Fault;
use std::thread;
use std::time::Duration;

/// Longer than tests wait for what is missing.
const PAUSE: Duration = Duration::from_millis(1_500);

/// How far it is.
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
    /// One message in so many is struck.
    pub(crate) fn striking(every: u64) -> Faults {
        Faults { every, published: 0, held_back: Vec::new() }
    }

    /// What is to be delivered, in order, for one more message.
    pub(crate) fn publish(
        &mut self,
        fault: Fault,
        topic: &str,
        mut body: Vec<u8>,
    ) -> Vec<(String, Vec<u8>)> {
        self.published += 1;
        if fault == Fault::Pause && self.published == 1_000 {
            // Nobody else is served meanwhile: this is within the broker's lock.
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

    /// Whether those who subscribed are cut off before the last one published is delivered.
    pub(crate) fn cuts_off(&self, fault: Fault) -> bool {
        fault == Fault::CutOff && self.published.is_multiple_of(self.every)
    }
}
