//! Exchanges that follow policies, which may give them an alternate.

use super::Router;
use crate::Followed;
use crate::policy::FollowedNames;
use std::ops::Range;

impl Router {
    /// Has the exchanges in some of the [`Router::exchange_places`] follow what `policies` says of their
    /// names: which policies, and the alternate by them.
    pub(crate) fn lead_exchanges(
        &mut self,
        places: Range<usize>,
        policies: impl Fn(&str) -> Option<(FollowedNames, Option<String>)>,
    ) {
        for key in self.exchanges.live_keys_in(places) {
            let followed = policies(&self.exchanges.get(key).name);
            if self.exchanges.lead(key, followed) {
                self.generation += 1;
            }
        }
    }

    /// The same for one exchange.
    pub(crate) fn lead_exchange(
        &mut self,
        name: &str,
        followed: Option<(FollowedNames, Option<String>)>,
    ) {
        if let Some(key) = self.exchanges.find(name)
            && self.exchanges.lead(key, followed)
        {
            self.generation += 1;
        }
    }

    /// The policies that an exchange follows.
    pub(crate) fn followed_by(&self, exchange: &str) -> Followed<'_> {
        let key = self.exchanges.find(exchange);
        let followed = key.and_then(|key| self.exchanges.get(key).followed.as_ref());
        followed.map(|it| it.0.shown()).unwrap_or_default()
    }
}
