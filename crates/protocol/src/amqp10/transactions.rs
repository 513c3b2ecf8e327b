//! Transactions (part 4): links to the coordinator, by which peers declare and discharge them, and the states
//! that make transfers and outcomes part of one.

use super::codec::{
    Condition, CoordinatorRequest, Declare, Declared, DeliveryState, Discharge, Limits, Sections,
    Union, Value,
};
use super::fault::Reason;
use super::handler::Handler;
use super::mapping;
use super::pending::{Asked, Pending};
use super::unconfirmed::Run;
use crate::{Context, Host};
use angarium_engine::{Refusal, RefusalKind, Reply, Request, TransactionId};

/// The id of a transaction on the wire.
pub(super) fn id_bytes(id: TransactionId) -> [u8; 8] {
    id.0.to_be_bytes()
}

/// The transaction that this is the id of; `None`: the broker has given out no such id.
pub(super) fn id_of(bytes: &[u8]) -> Option<TransactionId> {
    bytes.try_into().ok().map(|bytes| TransactionId(u64::from_be_bytes(bytes)))
}

impl Handler {
    /// Takes a message to the coordinator.
    pub(super) fn coordinate(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        asked: Asked,
        message: &[u8],
    ) {
        let limits = Limits { properties_bytes_max: self.settings.properties_bytes_max };
        let read = Sections::walk(message, limits).and_then(|sections| sections.amqp_value());
        let request = match read {
            Ok(Some(Value::Described(described))) => CoordinatorRequest::from_described(described),
            Ok(_) => {
                let reason = Reason::new(
                    Condition::InvalidField,
                    "the message to the coordinator is neither declare nor discharge",
                );
                return self.tell_coordinated(context, number, asked, Err(reason));
            }
            Err(malformed) => Err(malformed),
        };
        let (request, pending) = match request {
            Ok(CoordinatorRequest::Declare(Declare { global_id: None })) => {
                (Request::BeginTransaction, Pending::Declare(asked))
            }
            Ok(CoordinatorRequest::Declare(_)) => {
                let text = "distributed transactions are not offered";
                let reason = Reason::new(Condition::NotImplemented, text);
                return self.tell_coordinated(context, number, asked, Err(reason));
            }
            Ok(CoordinatorRequest::Discharge(Discharge { txn_id, fail })) => match id_of(txn_id) {
                Some(id) => {
                    (Request::EndTransaction { id, commits: !fail }, Pending::Discharge(asked))
                }
                None => {
                    let text = "there is no transaction of that id";
                    let reason = Reason::new(Condition::TransactionUnknownId, text);
                    return self.tell_coordinated(context, number, asked, Err(reason));
                }
            },
            Err(malformed) => {
                let text = malformed.to_string();
                let reason = Reason::new(malformed.condition(), &text);
                return self.tell_coordinated(context, number, asked, Err(reason));
            }
        };
        self.ask(context, number, request, pending);
    }

    /// A transaction has begun, or not.
    pub(super) fn declared(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        asked: Asked,
        reply: Result<Reply, Refusal>,
    ) {
        match reply {
            Ok(Reply::Transaction { id }) => {
                let txn_id = &id_bytes(id);
                let state = DeliveryState::Declared(Declared { txn_id });
                self.tell_coordinated(context, number, asked, Ok(state));
            }
            Ok(_) => {}
            Err(refusal) => {
                let reason = Reason::new(mapping::condition(refusal.kind), &refusal.text);
                self.tell_coordinated(context, number, asked, Err(reason));
            }
        }
    }

    /// A transaction has ended as the peer asked for, or was rolled back.
    pub(super) fn discharged(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        asked: Asked,
        reply: Result<Reply, Refusal>,
    ) {
        match reply {
            Ok(_) => {
                self.tell_coordinated(context, number, asked, Ok(super::codec::ACCEPTED));
            }
            Err(refusal) => {
                let condition = match refusal.kind {
                    RefusalKind::NotFound => Condition::TransactionUnknownId,
                    // It may be committed.
                    RefusalKind::InDoubt => mapping::condition(refusal.kind),
                    _ => Condition::TransactionRollback,
                };
                let reason = Reason::new(condition, &refusal.text);
                self.tell_coordinated(context, number, asked, Err(reason));
            }
        }
    }

    fn tell_coordinated(
        &self,
        context: &mut Context<impl Host>,
        number: u16,
        asked: Asked,
        outcome: Result<DeliveryState<'_>, Reason<'_>>,
    ) {
        let Asked { handle, delivery_id, is_settled } = asked;
        let (writer, out) = self.outgoing(context);
        let Some(session) = writer.session(number) else { return };
        if !is_settled {
            let run = Run::one(delivery_id, true);
            match outcome {
                Ok(state) => run.put(&mut out.bytes, number, state),
                Err(reason) => run.put_rejected(&mut out.bytes, number, reason),
            }
        }
        session.top_up(out, handle);
    }
}
