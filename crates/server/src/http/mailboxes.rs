//! The shards' mailboxes: whom to ask.

use crate::reactor::{Gone, Mailbox, Shard};
use angarium_node::shard_of;
use std::sync::Arc;

/// The mailboxes of all shards.
#[derive(Clone, Debug)]
pub struct Mailboxes(Arc<[Mailbox]>);

impl Mailboxes {
    /// Of a broker with these; the first is home's, and there is one at least.
    #[must_use]
    pub fn new(mailboxes: Vec<Mailbox>) -> Mailboxes {
        Mailboxes(mailboxes.into())
    }

    /// Where queues, users and virtual hosts are.
    #[must_use]
    pub fn home(&self) -> &Mailbox {
        &self.0[0]
    }

    /// Those of all shards, home's first.
    pub(super) fn all(&self) -> &[Mailbox] {
        &self.0
    }

    /// Asks every shard the same.
    pub(super) async fn ask_all<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Shard) -> T + Clone + Send + 'static,
    ) -> Result<Vec<T>, Gone> {
        let mut answers = Vec::with_capacity(self.0.len());
        for mailbox in self.all() {
            answers.push(mailbox.ask(task.clone()).await?);
        }
        Ok(answers)
    }

    /// The shard whose connection people know by that number.
    pub(super) fn of_connection(&self, number: u64) -> &Mailbox {
        &self.0[shard_of(number, self.0.len())]
    }
}
