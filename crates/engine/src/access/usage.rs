//! What users and virtual hosts may use, and what they have: connections, queues, bytes in these.

use super::Access;
use super::stored::Stored;
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
        self.quotas_changed();
        Ok(())
    }

    /// Sets what all in a virtual host may use, which is there.
    pub(crate) fn set_vhost_quota(&mut self, vhost: &str, quota: Quota) {
        self.quota_changes += 1;
        if quota == Quota::default() {
            self.vhost_quotas.remove(vhost);
        } else {
            self.vhost_quotas.insert(vhost.to_owned(), quota);
        }
        self.quotas_changed();
    }

    pub(super) fn quotas_changed(&mut self) {
        let mut all = self.quotas.values().chain(self.vhost_quotas.values());
        self.bounds_stored = all.any(|quota| quota.get(Bound::StoredBytes).is_some());
    }

    /// What all in a virtual host may use.
    pub(crate) fn vhost_quota(&self, vhost: &str) -> Quota {
        self.vhost_quotas.get(vhost).copied().unwrap_or_default()
    }

    /// All virtual hosts that something is said of.
    pub(crate) fn vhost_quotas(&self) -> impl Iterator<Item = (&str, &Quota)> + Clone {
        self.vhost_quotas.iter().map(|(vhost, quota)| (vhost.as_str(), quota))
    }

    /// Whether some quota bounds stored bytes.
    #[inline]
    pub(crate) fn bounds_stored(&self) -> bool {
        self.bounds_stored
    }

    /// Counts a connection to a virtual host in. Refused: it has as many as it may.
    pub(crate) fn enter_vhost(&mut self, vhost: &str) -> Result<(), Refusal> {
        let most = self.vhost_quota(vhost).get(Bound::Connections);
        if most.is_some_and(|most| self.in_vhost(vhost) >= most) {
            return Err(self.full_vhost(vhost));
        }
        *self.in_vhosts.entry(vhost.to_owned()).or_default() += 1;
        Ok(())
    }

    /// What a user hears whose virtual host has as many connections as it may.
    pub(crate) fn full_vhost(&self, vhost: &str) -> Refusal {
        let most = self.vhost_quota(vhost).get(Bound::Connections).unwrap_or_default();
        let text =
            format!("connection to vhost '{vhost}' refused: connection limit ({most}) is reached");
        Refusal::new(RefusalKind::LimitExceeded, text)
    }

    /// A connection to a virtual host, which was counted in, has ended.
    pub(crate) fn leave_vhost(&mut self, vhost: &str) {
        let Some(count) = self.in_vhosts.get_mut(vhost) else { return };
        *count -= 1;
        if *count == 0 {
            self.in_vhosts.remove(vhost);
        }
    }

    /// At home: connections of all shards to a virtual host.
    pub(crate) fn in_vhost(&self, vhost: &str) -> u64 {
        self.in_vhosts.get(vhost).copied().unwrap_or_default()
    }

    /// Refused: a user has declared as many queues as it may.
    pub(crate) fn check_room_of(&self, user: &str, queue: &str) -> Result<(), Refusal> {
        let has = self.owned.get(user).map_or(0, |owned| owned.queues);
        let most = self.quota(user).get(Bound::Queues);
        let Some(most) = most.filter(|most| has >= *most) else { return Ok(()) };
        let text = format!(
            "cannot declare queue '{queue}': queue limit of user '{user}' ({most}) is reached"
        );
        Err(Refusal::new(RefusalKind::LimitExceeded, text))
    }

    /// A queue comes that the user has declared; where its bytes count. The empty name is nobody's.
    pub(crate) fn queue_declared(&mut self, user: &str, is_log: bool) -> Stored {
        let owned = self.owned.entry(user.to_owned()).or_default();
        *(if is_log { &mut owned.logs } else { &mut owned.queues }) += 1;
        owned.stored.clone()
    }

    /// It is gone.
    pub(crate) fn queue_gone(&mut self, user: &str, is_log: bool) {
        let Some(owned) = self.owned.get_mut(user) else { return };
        *(if is_log { &mut owned.logs } else { &mut owned.queues }) -= 1;
        if owned.queues + owned.logs == 0 {
            self.owned.remove(user);
        }
    }

    /// Queues that a user has declared.
    pub(crate) fn owned_queues(&self, user: &str) -> u64 {
        self.owned.get(user).map_or(0, |owned| owned.queues)
    }

    /// Bytes that wait in them.
    pub(crate) fn owned_bytes(&self, user: &str) -> u64 {
        self.owned.get(user).map_or(0, |owned| owned.stored.bytes())
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
