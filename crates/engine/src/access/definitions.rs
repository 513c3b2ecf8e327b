//! How much memory the definitions of each user take: the queues, exchanges and bindings that it declared.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A user who declares, or nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Declarer(u32);

/// Changes of bytes that are not added up yet, by who declared; several in a row of one declarer are one.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Who declares what comes next.
    pub(crate) by: Declarer,
    changes: Vec<(Declarer, i64)>,
    /// The sums of all changes.
    sums: BTreeMap<Declarer, i64>,
}

impl Tally {
    /// Something of `bytes` came.
    pub(crate) fn came(&mut self, by: Declarer, bytes: u64) {
        self.change(by, i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Something of `bytes` went.
    pub(crate) fn went(&mut self, by: Declarer, bytes: u64) {
        self.change(by, -i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    fn change(&mut self, by: Declarer, bytes: i64) {
        *self.sums.entry(by).or_default() += bytes;
        match self.changes.last_mut() {
            Some((last, sum)) if *last == by => *sum += bytes,
            _ => self.changes.push((by, bytes)),
        }
    }

    /// All of it goes.
    pub(crate) fn all_went(&mut self) {
        let sums = std::mem::take(&mut self.sums);
        self.changes.extend(sums.into_iter().map(|(by, sum)| (by, -sum)));
    }
}

#[derive(Debug, Default)]
struct User {
    name: Arc<str>,
    bytes: u64,
    is_changed: bool,
}

/// All users who have declared something; the first is nobody.
#[derive(Debug)]
pub(crate) struct Definitions {
    users: Vec<User>,
    numbers: BTreeMap<Arc<str>, u32>,
    changed: Vec<u32>,
}

impl Default for Definitions {
    fn default() -> Definitions {
        let mut definitions =
            Definitions { users: Vec::new(), numbers: BTreeMap::new(), changed: Vec::new() };
        definitions.declarer("");
        definitions
    }
}

impl Definitions {
    /// The user as one who declares; the empty name is nobody's.
    pub(crate) fn declarer(&mut self, user: &str) -> Declarer {
        if let Some(number) = self.numbers.get(user) {
            return Declarer(*number);
        }
        let name: Arc<str> = user.into();
        let number = u32::try_from(self.users.len()).expect("fewer than 2^32 users");
        self.users.push(User { name: Arc::clone(&name), ..User::default() });
        self.numbers.insert(name, number);
        Declarer(number)
    }

    /// The name of one who declares; the empty one is nobody's.
    pub(crate) fn name(&self, by: Declarer) -> &str {
        &self.users[by.0 as usize].name
    }

    /// The user as one who declares, if it ever was one.
    pub(crate) fn find(&self, user: &str) -> Option<Declarer> {
        self.numbers.get(user).map(|number| Declarer(*number))
    }

    /// Adds up the changes of a tally.
    pub(crate) fn take(&mut self, tally: &mut Tally) {
        for (Declarer(number), bytes) in tally.changes.drain(..) {
            let user = &mut self.users[number as usize];
            user.bytes = user.bytes.saturating_add_signed(bytes);
            if !std::mem::replace(&mut user.is_changed, true) {
                self.changed.push(number);
            }
        }
    }

    /// The next user whose definitions take more or less since it was last told here.
    pub(crate) fn next_change(&mut self) -> Option<(Arc<str>, u64)> {
        let user = &mut self.users[self.changed.pop()? as usize];
        user.is_changed = false;
        Some((Arc::clone(&user.name), user.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_is_taken_from_who_declared_it() {
        let (mut definitions, mut tally) = (Definitions::default(), Tally::default());
        let (ann, bob) = (definitions.declarer("ann"), definitions.declarer("bob"));
        assert_eq!(definitions.declarer("ann"), ann);
        assert_eq!((definitions.name(ann), definitions.name(Declarer::default())), ("ann", ""));
        tally.came(ann, 100);
        tally.came(ann, 10);
        tally.came(bob, 7);
        tally.came(Declarer::default(), 1);
        tally.went(ann, 100);
        definitions.take(&mut tally);
        let mut changes: Vec<(String, u64)> = std::iter::from_fn(|| definitions.next_change())
            .map(|(name, bytes)| (name.to_string(), bytes))
            .collect();
        changes.sort();
        assert_eq!(changes, [(String::new(), 1), ("ann".into(), 10), ("bob".into(), 7)]);
        tally.all_went();
        definitions.take(&mut tally);
        while let Some((_, bytes)) = definitions.next_change() {
            assert_eq!(bytes, 0);
        }
    }
}
