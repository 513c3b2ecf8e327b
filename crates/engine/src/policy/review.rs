//! Policies that come and go: set, cleared, recorded, and followed by what is there, some of it in each turn
//! where that is much. What is declared meanwhile follows them at once.

use super::Policies;
use super::reviews::Progress;
use crate::engine::Engine;
use crate::interface::refusal::refuse;
use crate::routing::vhost::Vhost;
use crate::storage::record::Record;
use crate::{
    Arguments, Effects, Followed, Policy, PolicyKind, PolicyListing, QueueOptions, Refusal, Time,
};

/// Exchanges that are looked at before queues get their turn.
const EXCHANGES_AT_ONCE: usize = 256;

impl Engine {
    /// Sets a policy, or takes one away. Refused: what [`Policies::set`] refuses, a limit, no such policy.
    pub(crate) fn change_policy<F: Effects>(
        &mut self,
        now: Time,
        vhost: &str,
        kind: PolicyKind,
        name: &str,
        policy: Option<&Policy>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let slot = self.vhost_slot(vhost)?;
        let operator = kind == PolicyKind::Operator;
        match policy {
            Some(policy) => {
                policy.check(kind)?;
                self.check_policy_bounds(policy)?;
                self.policies(slot).set(kind, name, policy)?;
                let policy = policy.clone();
                self.append_record(&Record::PolicySet { vhost, operator, name, policy }, fx);
            }
            None if self.policies(slot).clear(kind, name) => {
                self.append_record(&Record::PolicyCleared { vhost, operator, name }, fx);
            }
            None => refuse!(NotFound, "no policy '{name}' in vhost '{vhost}'"),
        }
        self.agenda.policy_reviews.put(slot, Progress::default());
        self.review_some_policies(now, fx);
        Ok(())
    }

    fn policies(&mut self, vhost: u32) -> &mut Policies {
        &mut self.topology.vhosts[vhost].policies
    }

    /// Refuses what no queue could be declared with, of values that are of their types.
    fn check_policy_bounds(&self, policy: &Policy) -> Result<(), Refusal> {
        let mut options = QueueOptions::default();
        super::definition::set_queue_options(&mut options, &policy.definition);
        self.check_queue_options("policy", &options)
    }

    /// Changes policies as a record or a snapshot says. What is there follows them once all is recovered.
    pub(crate) fn replay_policy(
        &mut self,
        vhost: &str,
        operator: bool,
        name: &str,
        policy: Option<&Policy>,
    ) -> Result<(), String> {
        let slot = self.vhost_slot(vhost)?;
        let kind = if operator { PolicyKind::Operator } else { PolicyKind::Ordinary };
        match policy {
            Some(policy) => self.policies(slot).set(kind, name, policy)?,
            None => {
                self.policies(slot).clear(kind, name);
            }
        }
        Ok(())
    }

    /// All records are replayed: everything follows the policies there are.
    pub(crate) fn policies_recovered<F: Effects>(&mut self, now: Time, fx: &mut F) {
        let slots: Vec<u32> = self.topology.vhost_slots.values().copied().collect();
        for slot in slots {
            self.lead_exchanges(slot, 0..usize::MAX);
        }
        for slot in 0..self.queues.slots() as u32 {
            self.lead_queue(now, slot, fx);
        }
    }

    /// Has as much follow the policies as there is time for.
    #[cold]
    pub(crate) fn review_some_policies<F: Effects>(&mut self, now: Time, fx: &mut F) {
        while let Some((vhost, mut progress)) = self.agenda.policy_reviews.take() {
            if !self.review_policies_of(now, vhost, &mut progress, fx) {
                self.agenda.policy_reviews.put(vhost, progress);
                return;
            }
        }
    }

    /// Goes on in one virtual host; says whether that was the last of it.
    fn review_policies_of<F: Effects>(
        &mut self,
        now: Time,
        vhost: u32,
        progress: &mut Progress,
        fx: &mut F,
    ) -> bool {
        let steps = self.topology.vhosts[vhost].policies.len() as u64 + 1;
        while progress.exchange < self.topology.vhosts[vhost].router.exchange_places() {
            if self.has_much_unasked() {
                return false;
            }
            let end = progress.exchange + EXCHANGES_AT_ONCE;
            self.lead_exchanges(vhost, progress.exchange..end);
            self.unasked_steps += steps * EXCHANGES_AT_ONCE as u64 / 8;
            progress.exchange = end;
        }
        while progress.queue < self.queues.slots() as u32 {
            if self.has_much_unasked() {
                return false;
            }
            self.unasked_steps += 1;
            if self.queues.get(progress.queue).is_some_and(|queue| queue.vhost == vhost) {
                self.unasked_steps += steps;
                self.lead_queue(now, progress.queue, fx);
            }
            progress.queue += 1;
        }
        true
    }

    fn lead_exchanges(&mut self, vhost: u32, places: std::ops::Range<usize>) {
        let Vhost { router, policies, .. } = &mut self.topology.vhosts[vhost];
        router.lead_exchanges(places, |name| policies.lead_exchange(name));
    }

    /// Has an exchange follow the policies that was just declared.
    pub(crate) fn lead_declared_exchange(&mut self, vhost: u32, name: &str) {
        let Vhost { router, policies, .. } = &mut self.topology.vhosts[vhost];
        if !policies.is_empty() {
            router.lead_exchange(name, policies.lead_exchange(name));
        }
    }

    /// Has a queue follow the policies, with all that comes of it.
    fn lead_queue<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let Some(queue) = self.queues.get_mut(slot) else { return };
        let expires = queue.options.expires;
        if !self.topology.vhosts[queue.vhost].policies.lead(queue) {
            return;
        }
        if queue.options.expires != expires {
            self.queue_used(now, slot);
        }
        self.enforce_limits(now, slot, fx);
    }

    /// All policies, by virtual host, each kind in the order in which they are followed.
    pub fn list_policies(&self) -> impl Iterator<Item = PolicyListing<'_>> {
        self.topology.by_name().flat_map(|vhost| {
            vhost.policies.iter().map(|(kind, name, policy)| PolicyListing {
                vhost: &vhost.name,
                kind,
                name,
                policy,
            })
        })
    }

    /// The values of options that follow from policies of those names together.
    #[must_use]
    pub fn policy_definition(&self, vhost: &str, followed: Followed<'_>) -> Arguments {
        let slot = self.topology.vhost_slots.get(vhost);
        let vhost = slot.and_then(|slot| self.topology.vhosts.get(*slot));
        vhost.map(|vhost| vhost.policies.definition_of(followed)).unwrap_or_default()
    }
}
