//! What users may use, and the connections that they have.

use super::Access;
use crate::{Bound, Quota, Refusal, RefusalKind};

impl Access {
    /// Sets what a user may use. Refused: no such user.
    pub(crate) fn set_quota(&mut self, user: &str, quota: Quota) -> Result<(), Refusal> {
        self.check_user(user)?;
        self.quota_changes += 1;
        self.subscribing.reconsider(user);
        if quota == Quota::default() {
            self.quotas.remove(user);
        } else {
            self.quotas.insert(user.to_owned(), quota);
        }
        Ok(())
    }

    /// How often a quota was set.
    pub(crate) fn quota_changes(&self) -> u64 {
        self.quota_changes
    }

    /// What a user may use.
    pub(crate) fn quota(&self, user: &str) -> Quota {
        self.quotas.get(user).copied().unwrap_or_default()
    }

    /// Counts a connection of the user in. Refused: it has as many as it may.
    pub(crate) fn admit(&mut self, user: &str, most: u64) -> Result<(), Refusal> {
        let allowed = self.quota(user).get(Bound::Connections).unwrap_or(most);
        if self.connections.get(user).is_some_and(|count| *count >= allowed) || allowed == 0 {
            return Err(self.too_many(user, most));
        }
        *self.connections.entry(user.to_owned()).or_default() += 1;
        Ok(())
    }

    /// What a user hears that has as many connections as it may; `most`, unless its quota says so.
    pub(crate) fn too_many(&self, user: &str, most: u64) -> Refusal {
        let most = self.quota(user).get(Bound::Connections).unwrap_or(most);
        let text = format!(
            "connection refused for user '{user}': user connection limit ({most}) is reached"
        );
        Refusal::new(RefusalKind::LimitExceeded, text)
    }

    /// A connection that was admitted has ended.
    pub(crate) fn left(&mut self, user: &str) {
        let Some(count) = self.connections.get_mut(user) else { return };
        *count -= 1;
        if *count == 0 {
            self.connections.remove(user);
        }
    }

    /// The next user whose number of subscriptions here other shards have to learn; `most`: the
    /// bound of users whose quota has none.
    pub(crate) fn next_subscribing_change(&mut self, most: u64) -> Option<(String, u64)> {
        let Access { quotas, subscribing, .. } = self;
        subscribing.next_change(|user| {
            let own = quotas.get(user).and_then(|quota| quota.get(Bound::Subscriptions));
            own.unwrap_or(most) < u64::MAX
        })
    }

    /// All users that something is said of.
    pub(crate) fn quotas(&self) -> impl Iterator<Item = (&str, &Quota)> + Clone {
        self.quotas.iter().map(|(user, quota)| (user.as_str(), quota))
    }
}
