//! The transactions of a connection, one after the other: each commit also begins the next one.
//! Independent of sockets.

use super::message::{self, Sending};
use angarium_protocol::amqp10::codec::wire::{DESCRIBED, SMALL_ULONG};
use angarium_protocol::amqp10::codec::{
    self, Declare, DeliveryState, Discharge, Disposition, Outcome, Role, SectionKind,
    TransactionalState, put_list, put_section,
};
use std::collections::VecDeque;

/// The longest id that is taken; the specification has no limit.
pub(super) const ID_BYTES_MAX: usize = 64;
/// The channel of the coordinator's session.
pub(super) const CHANNEL: u16 = 0;

/// What a consumer does within transactions.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Accepts deliveries.
    Accept(Accepted),
    /// Commits.
    Commit,
}

/// Deliveries that a consumer accepts, by delivery-id.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accepted {
    pub(super) channel: u16,
    pub(super) first: u32,
    pub(super) last: u32,
}

/// The open transaction, and what waits for the next one.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// The id of the open one; empty until the first was declared.
    id: Vec<u8>,
    /// The delivery-id of the next request to the coordinator, which counts from 1.
    requests: u32,
    commits: Option<u32>,
    declares: Option<u32>,
    waiting: VecDeque<Step>,
}

impl Transactions {
    /// The id of the open transaction; empty if there is none.
    pub(super) fn id(&self) -> &[u8] {
        &self.id
    }

    /// Whether a commit is not answered yet.
    pub(super) fn is_busy(&self) -> bool {
        self.commits.is_some() || self.declares.is_some()
    }

    /// Appends the request for a transaction.
    pub(super) fn declare(&mut self, out: &mut Vec<u8>) {
        let mut sections = Vec::new();
        put_section(&mut sections, SectionKind::Value, &Declare::default());
        self.declares = Some(self.request(&sections, out));
    }

    /// Appends the request to commit.
    fn discharge(&mut self, out: &mut Vec<u8>) {
        let id = std::mem::take(&mut self.id);
        // By hand: Artemis takes no discharge without the flag, which has a default.
        let mut sections = [SectionKind::Value as u8, Discharge::INFO.code as u8]
            .map(|code| [DESCRIBED, SMALL_ULONG, code])
            .concat();
        put_list(&mut sections, |list| {
            list.put(&id.as_slice());
            list.put(&false);
        });
        self.commits = Some(self.request(&sections, out));
    }

    fn request(&mut self, sections: &[u8], out: &mut Vec<u8>) -> u32 {
        let sending = Sending {
            channel: CHANNEL,
            settled: false,
            transaction: &[],
            frame_bytes_max: u32::MAX,
        };
        self.requests = self.requests.wrapping_add(1);
        let encoded = message::write(out, sending, sections, 0);
        encoded.write_tag(out, self.requests.into());
        self.requests
    }

    /// Appends the acceptance of deliveries, or keeps it for the next transaction.
    pub(super) fn accept(&mut self, accepted: Accepted, out: &mut Vec<u8>) {
        self.step(Step::Accept(accepted), out);
    }

    /// Appends a commit and the request for the next transaction, or keeps them for after the commit that is
    /// on its way.
    pub(super) fn commit(&mut self, out: &mut Vec<u8>) {
        self.step(Step::Commit, out);
    }

    fn step(&mut self, step: Step, out: &mut Vec<u8>) {
        if self.is_busy() {
            self.waiting.push_back(step);
            return;
        }
        match step {
            Step::Accept(accepted) => self.write_accepted(accepted, out),
            Step::Commit => {
                self.discharge(out);
                self.declare(out);
            }
        }
    }

    fn write_accepted(&self, accepted: Accepted, out: &mut Vec<u8>) {
        let outcome = Some(Outcome::Accepted(codec::Accepted {}));
        let state = TransactionalState { txn_id: &self.id, outcome };
        let disposition = Disposition {
            role: Role::Receiver,
            first: accepted.first,
            last: (accepted.last != accepted.first).then_some(accepted.last),
            settled: true,
            state: Some(DeliveryState::TransactionalState(state)),
            batchable: false,
        };
        codec::write_frame(&disposition, accepted.channel, &[], out);
    }

    /// Notes a declared transaction.
    pub(super) fn declared(&mut self, id: &[u8]) {
        self.id = id.to_vec();
        self.declares = None;
    }

    /// Notes the acceptance of the requests from `first` to `last`; only commits are accepted.
    pub(super) fn accepted(&mut self, first: u32, last: u32) {
        self.commits = self.commits.filter(|commit| !(first..=last).contains(commit));
    }

    /// Appends what waited for the last commit, up to the next one.
    pub(super) fn go_on(&mut self, out: &mut Vec<u8>) {
        while !self.is_busy()
            && let Some(step) = self.waiting.pop_front()
        {
            self.step(step, out);
        }
    }
}
