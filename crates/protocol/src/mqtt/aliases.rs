//! Topic aliases: numbers that stand for topics on one connection, each side's own.

use std::collections::BTreeMap;

/// The topics that a client's aliases stand for.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    topics: Vec<Option<Box<[u8]>>>,
}

impl Aliases {
    /// An alias stands for a topic from now on. It is within the maximum that the client was told.
    pub(super) fn set(&mut self, alias: u16, topic: &[u8]) {
        let index = usize::from(alias) - 1;
        if self.topics.len() <= index {
            self.topics.resize_with(index + 1, || None);
        }
        self.topics[index] = Some(topic.into());
    }

    /// The topic that an alias stands for.
    pub(super) fn get(&self, alias: u16) -> Option<&[u8]> {
        self.topics.get(usize::from(alias) - 1)?.as_deref()
    }

    /// Bytes that they take.
    pub(super) fn held_bytes(&self) -> usize {
        let topics = self.topics.iter().flatten().map(|topic| topic.len()).sum::<usize>();
        topics + self.topics.capacity() * size_of::<Option<Box<[u8]>>>()
    }
}

/// Topics for which the client knows an alias of ours.
#[derive(Debug, Default)]
pub(super) struct GivenAliases {
    /// How many the client takes.
    pub(super) most: u16,
    aliases: BTreeMap<Box<[u8]>, u16>,
}

/// How a topic is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// By its name.
    Named,
    /// By its name, and an alias for it.
    Introduced(u16),
    /// By its alias alone.
    Aliased(u16),
}

impl GivenAliases {
    /// How a topic is to be said. Those that come first have aliases, and keep them.
    pub(super) fn say(&self, topic: &[u8]) -> Said {
        match self.aliases.get(topic) {
            Some(alias) => Said::Aliased(*alias),
            None if self.aliases.len() < usize::from(self.most) => {
                Said::Introduced(self.aliases.len() as u16 + 1)
            }
            None => Said::Named,
        }
    }

    /// The client knows the alias.
    pub(super) fn introduced(&mut self, topic: &[u8], alias: u16) {
        self.aliases.insert(topic.into(), alias);
    }

    /// Bytes that they take, about.
    pub(super) fn held_bytes(&self) -> usize {
        self.aliases.keys().map(|topic| topic.len() + 2 * size_of::<Box<[u8]>>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_that_come_first_have_aliases() {
        let mut given = GivenAliases { most: 1, ..GivenAliases::default() };
        assert_eq!(given.say(b"a"), Said::Introduced(1));
        given.introduced(b"a", 1);
        assert_eq!((given.say(b"a"), given.say(b"b")), (Said::Aliased(1), Said::Named));
        assert_eq!(GivenAliases::default().say(b"a"), Said::Named);
    }
}
