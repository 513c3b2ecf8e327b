//! ACK and NACK.

use super::asked::{Acknowledging, Asked, MAIN, Taken, check_receipt};
use super::codec::{Frame, Headers};
use super::fault::{Failure, Fault};
use super::frame::Version;
use super::handler::Handler;
use super::mapping::truth;
use super::subscription::{AckMode, ID_SEPARATOR};
use crate::{Context, Host};
use angarium_engine::{Outcome, Refusal, RefusalKind, Reply, Request, Settle};

/// Messages whose acknowledgements are one transaction: well below what a transaction may hold.
const PART_TAGS: u64 = 50_000;

/// A delivery, as a message's id names it.
struct Named {
    serial: u32,
    tag: u64,
}

impl Handler {
    /// Takes ACK or NACK.
    pub(super) fn acknowledge(
        &mut self,
        context: &mut Context<impl Host>,
        frame: &Frame<'_>,
    ) -> Result<Taken, Fault> {
        let (headers, is_ack) = (&frame.headers, frame.command == b"ACK");
        let command = if is_ack { "ACK" } else { "NACK" };
        let header = if self.version == Version::V1_2 { "id" } else { "message-id" };
        let id = headers.get(header)?.ok_or_else(|| Fault::missing(command, header))?;
        let Some(Named { serial, tag }) = self.parse_id(&id) else {
            let text =
                format!("{command} of '{id}', which is no {header} of this connection's messages");
            return Err(Fault::new("Invalid message-id", text));
        };
        let found = self.subscriptions.iter().find(|it| it.serial == serial);
        let Some(subscription) = found else {
            let text = format!("{command} of '{id}', whose subscription has ended");
            return Err(Fault::new("Subscription not found", text));
        };
        let (channel, ack) = (subscription.channel, subscription.ack);
        let outcome = if is_ack { Outcome::Accept } else { nack_outcome(headers)? };
        let settle = match ack {
            // There is nothing to acknowledge, and no harm in it.
            AckMode::Auto => {
                self.receipt(context, headers.get("receipt")?.as_deref());
                return Ok(Taken::Done);
            }
            AckMode::Client => {
                Settle::range(subscription.settled.saturating_add(1).min(tag), tag, outcome)
            }
            AckMode::Individual => Settle::one(tag, outcome),
        };
        if tag == 0 || tag > self.outgoing(context).0.last_tag(channel) {
            let text = format!("{command} of '{id}', which was not delivered");
            return Err(Fault::new("Invalid message-id", text));
        }
        if ack == AckMode::Client
            && let Some(it) = self.subscriptions.iter_mut().find(|it| it.serial == serial)
        {
            it.settled = it.settled.max(tag);
        }
        self.settle(context, channel, settle, headers)?;
        Ok(Taken::Done)
    }

    fn settle(
        &mut self,
        context: &mut Context<impl Host>,
        channel: u16,
        settle: Settle,
        headers: &Headers<'_>,
    ) -> Result<(), Fault> {
        let mut receipt: Option<Box<str>> = headers.get("receipt")?.map(Into::into);
        check_receipt(receipt.as_deref())?;
        let mut transaction = None;
        if let Some(name) = headers.get("transaction")? {
            let found = self.transaction(&name)?;
            transaction = Some(found.id);
            found.receipts.extend(receipt.take());
        }
        if let Some(receipt) = receipt {
            let part = part_of(settle, settle.first);
            let it = Acknowledging { channel, settle, receipt, part, has_begun: false };
            self.ask(context, MAIN, Request::BeginTransaction, Asked::Acknowledge(it.into()));
            return Ok(());
        }
        let (id, settle) = (self.channel_id(channel), settle.within(transaction));
        context.engine.settle(context.now, id, settle, context.host).map_err(not_settled)
    }

    pub(super) fn acknowledge_answered(
        &mut self,
        context: &mut Context<impl Host>,
        it: Acknowledging,
        reply: Result<Reply, Refusal>,
    ) -> Result<(), Failure> {
        match reply {
            Ok(Reply::Transaction { id }) if !it.has_begun => {
                let (channel, settle) = (self.channel_id(it.channel), it.part.within(Some(id)));
                let settled = context.engine.settle(context.now, channel, settle, context.host);
                if let Err(refusal) = settled {
                    return Err((not_settled(refusal), Some(it.receipt)));
                }
                let asked = Asked::Acknowledge(Acknowledging { has_begun: true, ..it }.into());
                self.ask(context, MAIN, Request::EndTransaction { id, commits: true }, asked);
            }
            Ok(_) if it.part.last < it.settle.last => {
                let part = part_of(it.settle, it.part.last + 1);
                let asked = Acknowledging { part, has_begun: false, ..it };
                let asked = Asked::Acknowledge(asked.into());
                self.ask(context, MAIN, Request::BeginTransaction, asked);
            }
            Ok(_) => self.receipt(context, Some(&it.receipt)),
            Err(refusal) => return Err((not_settled(refusal), Some(it.receipt))),
        }
        Ok(())
    }

    /// What a message's id names.
    fn parse_id(&self, id: &str) -> Option<Named> {
        let rest = id.strip_prefix(&*self.session)?.strip_prefix(ID_SEPARATOR)?;
        let (serial, tag) = rest.split_once(ID_SEPARATOR)?;
        Some(Named { serial: serial.parse().ok()?, tag: tag.parse().ok()? })
    }
}

/// The part of a settle that begins with a tag.
fn part_of(settle: Settle, first: u64) -> Settle {
    Settle { first, last: settle.last.min(first.saturating_add(PART_TAGS - 1)), ..settle }
}

/// What becomes of a message that the client does not want: it goes back to its queue unless the client says
/// otherwise.
fn nack_outcome(headers: &Headers<'_>) -> Result<Outcome, Fault> {
    let requeues = headers.get("requeue")?.and_then(|text| truth(&text)).unwrap_or(true);
    Ok(if requeues { Outcome::REQUEUE } else { Outcome::Discard })
}

fn not_settled(refusal: Refusal) -> Fault {
    match refusal.kind {
        RefusalKind::PreconditionFailed => {
            let text = "the message does not wait for an acknowledgement: it has had one, or the \
                        broker has taken it back";
            Fault::new("Invalid message-id", text)
        }
        _ => refusal.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_messages_are_acknowledged_in_parts() {
        let all = Settle::range(1, 2 * PART_TAGS + 1, Outcome::Accept);
        let parts: Vec<_> = [1, PART_TAGS + 1, 2 * PART_TAGS + 1]
            .map(|first| part_of(all, first))
            .map(|part| (part.first, part.last))
            .into();
        let n = PART_TAGS;
        assert_eq!(parts, [(1, n), (n + 1, 2 * n), (2 * n + 1, 2 * n + 1)]);
    }
}
