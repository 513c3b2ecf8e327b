//! Outcomes that the peer gives to deliveries.

use super::codec::{Condition, DeliveryState, Disposition, Outcome as OutcomeState, Role};
use super::fault::Fault;
use super::handler::Handler;
use super::mapping::{condition, outcome};
use super::transactions;
use crate::{Context, Host};
use angarium_engine::{Outcome, Settle};

impl Handler {
    /// Takes a disposition frame.
    #[inline]
    pub(super) fn disposition(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        disposition: &Disposition<'_>,
    ) -> Result<(), Fault> {
        if self.usable(number, "disposition")?.is_none() || disposition.role == Role::Sender {
            // What the peer settles that it has sent, we have forgotten.
            return Ok(());
        }
        let first = disposition.first;
        let last = disposition.last.unwrap_or(first);
        let mut transaction = None;
        let state = match disposition.state {
            Some(DeliveryState::TransactionalState(state)) => {
                transaction = transactions::id_of(state.txn_id);
                if transaction.is_none() {
                    let text = "there is no transaction of that id";
                    return Err(Fault::session(Condition::TransactionUnknownId, text));
                }
                state.outcome
            }
            state => state.and_then(terminal),
        };
        let (outcome, annotations) = match state {
            Some(state @ OutcomeState::Modified(modified)) => {
                let map = modified.message_annotations.unwrap_or_default();
                (outcome(state), map.bytes())
            }
            Some(state) => (outcome(state), &[][..]),
            None if disposition.settled => (Outcome::RELEASE, &[][..]),
            None => return Ok(()),
        };
        let id = self.channel_id(number);
        let (writer, out) = self.outgoing(context);
        let Some(session) = writer.session(number) else { return Ok(()) };
        let ranges = session.tags(first, last);
        if !disposition.settled {
            // The peer settles when we have.
            let answer = Disposition { role: Role::Sender, settled: true, ..*disposition };
            super::codec::write_frame(&answer, number, &[], &mut out.bytes);
        }
        for (first, last) in ranges {
            let settle = Settle { transaction, ..Settle::range(first, last, outcome) };
            context
                .engine
                .settle_annotated(context.now, id, settle, annotations, context.host)
                .map_err(|refusal| Fault::session(condition(refusal.kind), refusal.text))?;
        }
        Ok(())
    }
}

/// The outcome that a state is, if it is one.
fn terminal(state: DeliveryState<'_>) -> Option<OutcomeState<'_>> {
    Some(match state {
        DeliveryState::Accepted(it) => OutcomeState::Accepted(it),
        DeliveryState::Rejected(it) => OutcomeState::Rejected(it),
        DeliveryState::Released(it) => OutcomeState::Released(it),
        DeliveryState::Modified(it) => OutcomeState::Modified(it),
        DeliveryState::Received(_)
        | DeliveryState::Declared(_)
        | DeliveryState::TransactionalState(_) => return None,
    })
}
