//! What handlers share: the shards' mailboxes and the settings.

use crate::reactor::{Gone, Mailbox, Shard};
use crate::settings::Settings;
use angarium_node::shard_of;
use std::sync::Arc;

/// What handlers share.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) mailboxes: Mailboxes,
    /// Who may come from where, and see what.
    pub(super) settings: Arc<Settings>,
}

/// The mailboxes of all shards; home's is the first.
#[derive(Clone, Debug)]
pub struct Mailboxes(Arc<[Mailbox]>);

impl Mailboxes {
    /// Of a broker with these; there is one at least.
    pub fn new(mailboxes: Arc<[Mailbox]>) -> Mailboxes {
        Mailboxes(mailboxes)
    }

    /// Where queues, users and virtual hosts are.
    pub fn home(&self) -> &Mailbox {
        &self.0[0]
    }

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
