//! How many subjects each user subscribes to, by all its connections to all shards: counted here, told to
//! other shards and by them. Does not know how many it may.

use crate::ShardId;
use std::collections::BTreeMap;

/// One user's.
#[derive(Debug, Default)]
struct User {
    here: u64,
    /// What other shards were last told of that.
    told: u64,
    elsewhere: BTreeMap<ShardId, u64>,
    is_changed: bool,
}

impl User {
    fn is_void(&self) -> bool {
        self.here == 0 && self.told == 0 && self.elsewhere.is_empty() && !self.is_changed
    }
}

/// All users'.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionCounts {
    users: BTreeMap<String, User>,
    /// Users whose count other shards may have to learn.
    changed: Vec<String>,
}

impl SubscriptionCounts {
    /// One begins to subscribe to one more here.
    pub(crate) fn begin(&mut self, name: &str) {
        if !self.users.contains_key(name) {
            self.users.insert(name.to_owned(), User::default());
        }
        if let Some(user) = self.users.get_mut(name) {
            user.here += 1;
        }
        self.reconsider(name);
    }

    /// Ends `count` subscriptions of a user here.
    pub(crate) fn end(&mut self, name: &str, count: usize) {
        if let Some(user) = self.users.get_mut(name).filter(|_| count > 0) {
            user.here -= count as u64;
            self.reconsider(name);
        }
    }

    /// How many a user subscribes to here.
    pub(crate) fn here(&self, name: &str) -> u64 {
        self.users.get(name).map_or(0, |user| user.here)
    }

    /// How many it subscribes to here and, as far as they have told, on other shards.
    pub(crate) fn everywhere(&self, name: &str) -> u64 {
        let user = self.users.get(name);
        user.map_or(0, |user| user.here + user.elsewhere.values().sum::<u64>())
    }

    /// Notes a user for [`SubscriptionCounts::next_change`]: it subscribes to more or less here, or
    /// may subscribe to another number.
    pub(crate) fn reconsider(&mut self, name: &str) {
        if let Some(user) = self.users.get_mut(name)
            && !std::mem::replace(&mut user.is_changed, true)
        {
            self.changed.push(name.to_owned());
        }
    }

    /// The next user whose count other shards have to learn, with the count: a user with a
    /// bound, or without subscriptions here. So other shards forget users that lose their bound
    /// or are deleted.
    pub(crate) fn next_change(
        &mut self,
        is_bounded: impl Fn(&str) -> bool,
    ) -> Option<(String, u64)> {
        while let Some(name) = self.changed.pop() {
            let user = self.users.get_mut(&name).expect("it stays until it was looked at");
            user.is_changed = false;
            let here = user.here;
            let has_to_be_told = here != user.told && (here == 0 || is_bounded(&name));
            if has_to_be_told {
                user.told = here;
            }
            self.forget_if_void(&name);
            if has_to_be_told {
                return Some((name, here));
            }
        }
        None
    }

    /// What another shard tells.
    pub(crate) fn set_elsewhere(&mut self, from: ShardId, name: &str, count: u64) {
        let user = self.users.entry(name.to_owned()).or_default();
        if count == 0 {
            user.elsewhere.remove(&from);
        } else {
            user.elsewhere.insert(from, count);
        }
        self.forget_if_void(name);
    }

    fn forget_if_void(&mut self, name: &str) {
        if self.users.get(name).is_some_and(User::is_void) {
            self.users.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What two shards count for ann after `steps`, exchanging changes after each: the total as
    /// each knows it, and whether anything is left once nothing is subscribed to.
    #[track_caller]
    fn check(steps: &str, expected: [u64; 2]) {
        let mut shards = [SubscriptionCounts::default(), SubscriptionCounts::default()];
        let mut is_bounded = true;
        let tell = |shards: &mut [SubscriptionCounts; 2], is_bounded: bool| {
            for (from, to) in [(0, 1), (1, 0)] {
                while let Some((name, count)) = shards[from].next_change(|_| is_bounded) {
                    shards[to].set_elsewhere(ShardId(from as u8), &name, count);
                }
            }
        };
        for step in steps.split_whitespace() {
            let (shard, count) = step.split_once('=').unwrap_or(("0", "0"));
            let (shard, count) = (shard.parse().unwrap_or(0), count.parse::<u64>().unwrap_or(0));
            match step {
                "bounded" | "free" => {
                    is_bounded = step == "bounded";
                    shards.iter_mut().for_each(|subscribing| subscribing.reconsider("ann"));
                }
                _ => {
                    let subscribing: &mut SubscriptionCounts = &mut shards[shard];
                    let before = subscribing.here("ann");
                    (before..count).for_each(|_| subscribing.begin("ann"));
                    subscribing.end("ann", before.saturating_sub(count) as usize);
                }
            }
            tell(&mut shards, is_bounded);
        }
        assert_eq!([0, 1].map(|at| shards[at].everywhere("ann")), expected, "{steps}");
        for (at, subscribing) in shards.iter_mut().enumerate() {
            let here = subscribing.here("ann") as usize;
            subscribing.end("ann", here);
            assert_eq!(subscribing.here("ann"), 0, "{steps}: {at}");
        }
        tell(&mut shards, is_bounded);
        let left = shards.map(|subscribing| (subscribing.users.len(), subscribing.changed.len()));
        assert_eq!(left, [(0, 0); 2], "{steps}");
    }

    #[test]
    fn shards_know_of_each_other_what_users_subscribe_to_who_are_bounded() {
        for (steps, expected) in [
            ("", [0, 0]),
            ("0=1", [1, 1]),
            ("0=2 1=3", [5, 5]),
            ("0=2 1=3 0=1", [4, 4]),
            ("0=2 1=3 0=0", [3, 3]),
            ("0=2 1=3 0=0 1=0 0=1", [1, 1]),
            // Counts of users without a bound are not sent.
            ("free 0=2 1=3", [2, 3]),
            ("free 0=2 1=3 bounded", [5, 5]),
            ("free 0=2 bounded 0=1", [1, 1]),
            ("0=2 free 0=3 1=1 bounded", [4, 4]),
            ("0=2 1=1 free 0=0 1=2 bounded", [2, 2]),
            ("0=2 free 0=0 bounded", [0, 0]),
        ] {
            check(steps, expected);
        }
    }
}
