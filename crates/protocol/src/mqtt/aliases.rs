//! Topic aliases of a client: numbers that stand for topics on one connection.

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
