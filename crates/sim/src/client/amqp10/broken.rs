//! Rules of AMQP 1.0 broken on purpose, on the way between a client and the node.

use crate::canary::{Canary, PERCENT};
use crate::random::Random;

/// The rule that is broken on the way between a client and the node, if one is.
#[derive(Debug, Default)]
pub(super) struct Broken(pub(super) Option<(Canary, Random)>);

impl Broken {
    /// Whether this canary acts now.
    pub(super) fn breaks(&mut self, canary: Canary) -> bool {
        let broken = self.0.as_mut().filter(|(broken, _)| *broken == canary);
        broken.is_some_and(|(_, random)| random.percent(PERCENT))
    }

    /// Whether this canary is the one.
    pub(super) fn is(&self, canary: Canary) -> bool {
        self.0.as_ref().is_some_and(|(broken, _)| *broken == canary)
    }
}
