//! BEGIN, COMMIT and ABORT: a connection may have several transactions open.

use super::asked::{Asked, Beginning, Ending, MAIN, Taken};
use super::codec::Headers;
use super::fault::{Failure, Fault, refused};
use super::handler::Handler;
use super::subscription::Transaction;
use crate::{Context, Host};
use angarium_engine::{Refusal, RefusalKind, Reply, Request};

/// Bytes in a transaction's name.
const NAME_BYTES_MAX: usize = 1_024;

impl Handler {
    /// The open transaction of that name.
    pub(super) fn transaction(&mut self, name: &str) -> Result<&mut Transaction, Fault> {
        self.transactions.get_mut(name).ok_or_else(|| no_transaction(name))
    }

    /// Takes BEGIN.
    pub(super) fn begin_transaction(
        &mut self,
        context: &mut Context<impl Host>,
        headers: &Headers<'_>,
    ) -> Result<Taken, Fault> {
        let name = headers.get("transaction")?;
        let name = name.ok_or_else(|| Fault::missing("BEGIN", "transaction"))?;
        if self.transactions.contains_key(&*name) {
            let text = format!("transaction '{name}' has begun already");
            return Err(Fault::new("Bad transaction", text));
        }
        if name.len() > NAME_BYTES_MAX {
            let text = format!("the transaction's name is longer than {NAME_BYTES_MAX} bytes");
            return Err(Fault::new("Bad transaction", text));
        }
        let receipt = headers.get("receipt")?.map(Into::into);
        let asked = Asked::Begin(Beginning { name: name.into(), receipt });
        self.ask(context, MAIN, Request::BeginTransaction, asked);
        Ok(Taken::Done)
    }

    pub(super) fn begun(
        &mut self,
        context: &mut Context<impl Host>,
        Beginning { name, receipt }: Beginning,
        reply: Result<Reply, Refusal>,
    ) -> Result<(), Failure> {
        match reply {
            Ok(Reply::Transaction { id }) => {
                self.transactions.insert(name, Transaction { id, receipts: Vec::new() });
                self.receipt(context, receipt.as_deref());
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(refusal) => Err((refusal.into(), receipt)),
        }
    }

    /// Takes COMMIT or ABORT.
    pub(super) fn end_transaction(
        &mut self,
        context: &mut Context<impl Host>,
        headers: &Headers<'_>,
        commits: bool,
    ) -> Result<Taken, Fault> {
        let name = headers.get("transaction")?;
        let command = if commits { "COMMIT" } else { "ABORT" };
        let name = name.ok_or_else(|| Fault::missing(command, "transaction"))?;
        let ended = self.transactions.remove(&*name).ok_or_else(|| no_transaction(&name))?;
        let receipt = headers.get("receipt")?.map(Into::into);
        let Transaction { id, receipts } = ended;
        let asked = Asked::End(Ending { receipts, receipt, commits });
        self.ask(context, MAIN, Request::EndTransaction { id, commits }, asked);
        Ok(Taken::Done)
    }

    pub(super) fn ended(
        &mut self,
        context: &mut Context<impl Host>,
        ending: Ending,
        reply: Result<Reply, Refusal>,
    ) -> Result<(), Failure> {
        let Ending { receipts, receipt, commits } = ending;
        if let Err(refusal) = reply {
            let text = match refusal.kind {
                // The refusal itself says what has become of it.
                RefusalKind::InDoubt => refusal.text,
                _ if !commits => refusal.text,
                _ => format!("the transaction was rolled back: {}", refusal.text),
            };
            let kind = match refusal.kind {
                RefusalKind::Unroutable => RefusalKind::NotFound,
                kind => kind,
            };
            return Err((refused(kind, &text), receipt));
        }
        // What was in a transaction that is aborted has not been carried out.
        for receipt in receipts.iter().filter(|_| commits) {
            self.receipt(context, Some(receipt));
        }
        self.receipt(context, receipt.as_deref());
        Ok(())
    }
}

fn no_transaction(name: &str) -> Fault {
    Fault::new(
        "Bad transaction",
        format!("there is no open transaction '{name}': BEGIN comes first"),
    )
}
