//! The memory account: what peers hold, by connection, by user and in all, and how much each may hold.
//!
//! A connection may hold as much as is free, a user three times that, and neither more than its own limit:
//! the more is held in all, the less each may hold, and those that hold most reach their bound first. A
//! value without clock or I/O; each shard has one, and they tell each other the sums of users.

use angarium_engine::{ConnectionId, HeldMemory, MemoryKind, ShardId, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Limits of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// What all peers may hold together.
    pub all: u64,
    /// What the connections and definitions of one user may.
    pub user: u64,
    /// What one connection may.
    pub connection: u64,
}

impl MemoryLimits {
    /// Limits of which none is ever reached.
    pub const NONE: MemoryLimits =
        MemoryLimits { all: u64::MAX, user: u64::MAX, connection: u64::MAX };
}

/// A connection may always hold this much: what clients need that do nothing wrong.
pub(crate) const CONNECTION_LEAST: u64 = 128 << 10;
/// And a user this much.
const USER_LEAST: u64 = 1 << 20;
/// How many times what is free a user may hold.
const USER_TIMES: u64 = 3;
/// The part of the limit in all, or of users, by which a user's sum changes before other shards learn of it.
const TOLD_PART: u64 = 1024;
/// The least such change.
const TOLD_LEAST: u64 = 16 << 10;
/// A connection that held too much may hold more again when it holds this part less than it may.
const RELIEVED_PART: u64 = 8;

/// A user in the account; the first one is nobody: connections that have not logged in, what is stored, and
/// what operators have declared.
const NOBODY: usize = 0;

/// What one user holds.
#[derive(Debug, Default)]
struct User {
    name: Arc<str>,
    /// On this shard.
    here: u64,
    /// Part of that: definitions.
    definitions: u64,
    /// What other shards were last told of it.
    told: u64,
    is_untold: bool,
    /// What other shards have told.
    elsewhere: BTreeMap<ShardId, u64>,
    /// Its connections to this shard.
    connections: u64,
}

impl User {
    fn all(&self) -> u64 {
        self.here + self.elsewhere.values().sum::<u64>()
    }
}

/// A user and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub user: Arc<str>,
    /// What its connections and definitions hold.
    pub held: u64,
}

/// What one connection holds.
#[derive(Debug, Default)]
struct Slot {
    is_taken: bool,
    user: usize,
    held: HeldMemory,
    is_short: bool,
}

/// What a connection may do, as the account stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// It holds more than it may.
    pub(crate) is_short: bool,
    /// It or its user does: nothing is done that would make it hold more.
    pub(crate) is_refused: bool,
    /// What it may hold.
    pub(crate) ceiling: u64,
}

/// Unsent output of a connection from which on it is reckoned each turn.
pub(crate) const OUTPUT_BYTES: usize = 64 << 10;

/// A connection, as far as the account has made it wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemoryWait {
    /// Input since it was last reckoned.
    pub(crate) uncounted: usize,
    /// It is not read from since then, because of its unfinished messages.
    pub(crate) paused_since: Option<Time>,
}

/// The account of one shard.
#[derive(Debug)]
pub(crate) struct Account {
    limits: MemoryLimits,
    users: Vec<User>,
    numbers: BTreeMap<Arc<str>, usize>,
    slots: Vec<Slot>,
    /// What is held on this shard, by kind.
    here: HeldMemory,
    elsewhere: u64,
    untold: Vec<usize>,
    /// Nobody may hold more than the least.
    is_closed: bool,
    /// Connections that hold more than they may.
    short: u64,
}

impl Account {
    pub(crate) fn new(limits: MemoryLimits) -> Account {
        let mut account = Account {
            limits,
            users: Vec::new(),
            numbers: BTreeMap::new(),
            slots: Vec::new(),
            here: HeldMemory::default(),
            elsewhere: 0,
            untold: Vec::new(),
            is_closed: false,
            short: 0,
        };
        account.number_of("");
        account
    }

    /// What is held on this shard, by kind.
    pub(crate) fn here(&self) -> HeldMemory {
        self.here
    }

    /// How many connections hold more than they may.
    pub(crate) fn short(&self) -> u64 {
        self.short
    }

    /// What is held on all shards, as far as they have told.
    pub(crate) fn all(&self) -> u64 {
        self.here.all().saturating_add(self.elsewhere)
    }

    /// The user who holds most.
    pub(crate) fn largest(&self) -> Option<Owner> {
        let users = self.users.iter().skip(NOBODY + 1);
        let largest = users.max_by_key(|user| user.all()).filter(|user| user.all() > 0)?;
        Some(Owner { user: Arc::clone(&largest.name), held: largest.all() })
    }

    fn number_of(&mut self, user: &str) -> usize {
        if let Some(number) = self.numbers.get(user) {
            return *number;
        }
        let name: Arc<str> = user.into();
        let number = self.users.len();
        self.users.push(User { name: Arc::clone(&name), ..User::default() });
        self.numbers.insert(name, number);
        number
    }

    /// Nothing is free from now on, or what the limit leaves: the system refuses memory, or no longer does.
    pub(crate) fn set_closed(&mut self, is_closed: bool) {
        self.is_closed = is_closed;
    }

    fn free(&self) -> u64 {
        if self.is_closed { 0 } else { self.limits.all.saturating_sub(self.all()) }
    }

    fn change(&mut self, user: usize, before: u64, after: u64) {
        if before == after {
            return;
        }
        let step = (self.limits.all.min(self.limits.user) / TOLD_PART).max(TOLD_LEAST);
        let it = &mut self.users[user];
        it.here = it.here.saturating_sub(before).saturating_add(after);
        let is_much = it.here.abs_diff(it.told) >= step || (it.here == 0 && it.told > 0);
        if is_much && !std::mem::replace(&mut it.is_untold, true) {
            self.untold.push(user);
        }
    }

    /// Sets what a connection of `user` holds; says how it stands.
    pub(crate) fn set(&mut self, id: ConnectionId, user: &str, held: HeldMemory) -> Standing {
        let at = id.0 as usize;
        if at >= self.slots.len() {
            self.slots.resize_with(at + 1, Slot::default);
        }
        let (is_taken, known) = (self.slots[at].is_taken, self.slots[at].user);
        if !is_taken || *self.users[known].name != *user {
            let number = self.number_of(user);
            self.leave(at);
            self.users[number].connections += 1;
            let slot = &mut self.slots[at];
            (slot.is_taken, slot.user) = (true, number);
        }
        let (user, before) = (self.slots[at].user, self.slots[at].held);
        self.count(before, held);
        self.change(user, before.all(), held.all());
        self.slots[at].held = held;
        let standing = self.standing(at);
        let was_short = std::mem::replace(&mut self.slots[at].is_short, standing.is_short);
        self.short += u64::from(standing.is_short);
        self.short -= u64::from(was_short);
        standing
    }

    fn count(&mut self, before: HeldMemory, after: HeldMemory) {
        let kinds = self.here.0.iter_mut().zip(before.0).zip(after.0);
        kinds.for_each(|((here, before), after)| *here = here.saturating_sub(before) + after);
    }

    fn standing(&self, at: usize) -> Standing {
        let Slot { user, held, is_short, .. } = &self.slots[at];
        let free = self.free();
        let own = self.limits.connection.min(free.max(CONNECTION_LEAST));
        let (user, held) = (&self.users[*user], held.all());
        let user_ceiling = self.limits.user.min(free.saturating_mul(USER_TIMES).max(USER_LEAST));
        let is_user_over = *user.name != *"" && user.all() > user_ceiling;
        // Of a user that holds too much, those connections hold too much that hold more than their share.
        let share = user_ceiling / user.connections.max(1);
        let ceiling = if is_user_over { own.min(share) } else { own };
        let relief = if *is_short { ceiling / RELIEVED_PART } else { 0 };
        let is_short = held > ceiling - relief;
        Standing { is_short, is_refused: is_short || is_user_over || self.is_closed, ceiling }
    }

    /// A connection has gone.
    pub(crate) fn remove(&mut self, id: ConnectionId) {
        if (id.0 as usize) < self.slots.len() {
            self.leave(id.0 as usize);
        }
    }

    fn leave(&mut self, at: usize) {
        let Slot { is_taken, user, held, is_short } = std::mem::take(&mut self.slots[at]);
        if is_taken {
            self.count(held, HeldMemory::default());
            self.change(user, held.all(), 0);
            self.users[user].connections -= 1;
            self.short -= u64::from(is_short);
        }
    }

    /// Sets what the definitions of a user take.
    pub(crate) fn set_definitions(&mut self, user: &str, bytes: u64) {
        let number = self.number_of(user);
        let before = std::mem::replace(&mut self.users[number].definitions, bytes);
        self.recount(MemoryKind::Definitions, before, bytes);
        self.change(number, before, bytes);
    }

    /// Sets what is held for all: messages, say.
    pub(crate) fn set_common(&mut self, kind: MemoryKind, bytes: u64) {
        let before = self.here.get(kind);
        self.recount(kind, before, bytes);
        self.change(NOBODY, before, bytes);
    }

    fn recount(&mut self, kind: MemoryKind, before: u64, after: u64) {
        let here = &mut self.here.0[kind as usize];
        *here = here.saturating_sub(before) + after;
    }

    /// The next user whose sum here other shards have to learn, with the sum.
    pub(crate) fn next_untold(&mut self) -> Option<(Arc<str>, u64)> {
        let user = &mut self.users[self.untold.pop()?];
        user.is_untold = false;
        user.told = user.here;
        Some((Arc::clone(&user.name), user.here))
    }

    /// What another shard tells of a user.
    pub(crate) fn set_elsewhere(&mut self, from: ShardId, user: &str, bytes: u64) {
        let number = self.number_of(user);
        let before = self.users[number].elsewhere.insert(from, bytes).unwrap_or(0);
        self.elsewhere = self.elsewhere.saturating_sub(before) + bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn account(all: u64) -> Account {
        Account::new(MemoryLimits { all, user: all, connection: all })
    }

    fn set(account: &mut Account, id: u32, user: &str, bytes: u64) -> Standing {
        let mut held = HeldMemory::default();
        held.add(MemoryKind::Output, bytes);
        account.set(ConnectionId(id), user, held)
    }

    /// Lets connections of these users grow by turns until none may; what each holds then, in MiB.
    #[track_caller]
    fn check(limits: MemoryLimits, users: &[&str], expected: &[u64]) {
        let mut account = Account::new(limits);
        let mut held = vec![0; users.len()];
        loop {
            let mut grows = false;
            for (number, user) in (0..).zip(users) {
                let bytes = &mut held[number as usize];
                if !set(&mut account, number, user, *bytes).is_short {
                    *bytes += MIB / 4;
                    set(&mut account, number, user, *bytes);
                    grows = true;
                }
            }
            if !grows {
                break;
            }
        }
        let held: Vec<u64> = held.into_iter().map(|bytes| bytes / MIB).collect();
        assert_eq!(held, expected);
        assert!(account.here().all() <= limits.all + MIB * users.len() as u64);
    }

    #[test]
    fn each_may_hold_as_much_as_is_free() {
        let limits = MemoryLimits { all: 240 * MIB, user: 240 * MIB, connection: 240 * MIB };
        check(limits, &["a"], &[120]);
        check(limits, &["a", "b"], &[80, 80]);
        check(limits, &["a", "b", "c"], &[60, 60, 60]);
        // A user may hold three times what is free, whatever its connections are.
        check(limits, &["a"; 5], &[36; 5]);
        let connection = MemoryLimits { connection: 10 * MIB, ..limits };
        check(connection, &["a", "b"], &[10, 10]);
        let user = MemoryLimits { user: 50 * MIB, ..limits };
        check(user, &["a", "a", "b"], &[25, 25, 50]);
    }

    #[test]
    fn those_who_hold_little_go_on_whatever_others_hold() {
        let mut account = account(64 * MIB);
        assert!(set(&mut account, 1, "much", 60 * MIB).is_short);
        assert!(!set(&mut account, 2, "little", CONNECTION_LEAST).is_refused);
        assert!(set(&mut account, 3, "much", 0).is_refused);
        assert!(!set(&mut account, 3, "much", 0).is_short);
        assert_eq!(account.short(), 1);
        // It may grow again only once it holds clearly less.
        assert!(!set(&mut account, 1, "much", MIB).is_short);
        account.remove(ConnectionId(1));
        assert!(!set(&mut account, 3, "much", 0).is_refused);
        account.remove(ConnectionId(2));
        account.remove(ConnectionId(3));
        assert_eq!((account.here(), account.short()), (HeldMemory::default(), 0));
    }

    #[test]
    fn nobody_may_hold_more_while_the_system_refuses_memory() {
        let mut account = account(80 * MIB);
        assert!(!set(&mut account, 1, "a", MIB).is_refused);
        account.set_closed(true);
        assert!(set(&mut account, 1, "a", MIB).is_short);
        let little = set(&mut account, 2, "b", CONNECTION_LEAST);
        assert_eq!((little.is_short, little.is_refused), (false, true));
        account.set_closed(false);
        assert!(!set(&mut account, 1, "a", MIB).is_refused);
        assert!(!set(&mut account, 2, "b", CONNECTION_LEAST).is_refused);
    }

    #[test]
    fn one_that_is_relieved_holds_clearly_less() {
        let mut account = account(80 * MIB);
        assert!(set(&mut account, 1, "a", 41 * MIB).is_short);
        assert!(set(&mut account, 1, "a", 39 * MIB).is_short);
        assert!(!set(&mut account, 1, "a", 30 * MIB).is_short);
        assert!(!set(&mut account, 1, "a", 39 * MIB).is_short);
    }

    #[test]
    fn definitions_and_other_shards_count() {
        let (mut home, mut other) = (account(64 * MIB), account(64 * MIB));
        home.set_definitions("ann", 50 * MIB);
        home.set_common(MemoryKind::Messages, 4 * MIB);
        let mut told = 0;
        while let Some((user, bytes)) = home.next_untold() {
            other.set_elsewhere(ShardId::HOME, &user, bytes);
            told += bytes;
        }
        assert_eq!(told, 54 * MIB);
        assert_eq!((home.all(), other.all()), (54 * MIB, 54 * MIB));
        let ann = Owner { user: "ann".into(), held: 50 * MIB };
        assert_eq!(other.largest(), Some(ann));
        let standing = set(&mut other, 1, "ann", 0);
        assert_eq!((standing.is_short, standing.is_refused), (false, true));
        assert_eq!(standing.ceiling, 10 * MIB);
        assert!(!set(&mut other, 2, "bob", 0).is_refused);
        home.set_definitions("ann", 0);
        assert_eq!(home.next_untold().map(|(_, bytes)| bytes), Some(0));
        other.set_elsewhere(ShardId::HOME, "ann", 0);
        assert!(!set(&mut other, 1, "ann", 0).is_refused);
    }

    #[test]
    fn little_changes_are_not_told() {
        let mut account = account(1 << 30);
        set(&mut account, 1, "ann", 1000);
        assert_eq!(account.next_untold(), None);
        set(&mut account, 1, "ann", 2 * MIB);
        assert_eq!(account.next_untold().map(|(_, bytes)| bytes), Some(2 * MIB));
        set(&mut account, 1, "ann", 0);
        assert_eq!(account.next_untold().map(|(_, bytes)| bytes), Some(0));
    }
}
