//! DISCONNECT, errors, and the end of connections.

use super::asked::Taken;
use super::codec::Headers;
use super::fault::Fault;
use super::handler::{Handler, State};
use crate::{Close, Context, Host};

impl Handler {
    /// Takes DISCONNECT. Its receipt comes once all publishes before it are confirmed; the client closes the
    /// connection behind it.
    pub(super) fn disconnect(
        &mut self,
        context: &mut Context<impl Host>,
        headers: &Headers<'_>,
    ) -> Result<Taken, Fault> {
        let receipt = headers.get("receipt")?;
        // What was delivered and not acknowledged goes back immediately.
        for subscription in std::mem::take(&mut self.subscriptions) {
            let id = self.channel_id(subscription.channel);
            context.engine.close(context.now, id, context.host);
        }
        if let Some(receipt) = &receipt {
            let (writer, out) = self.outgoing(context);
            writer.farewell(out, receipt);
        }
        self.ending = Some("closed by the client".into());
        self.state = State::Leaving;
        let timeout = self.settings.close_timeout;
        self.patience = if receipt.is_some() { context.now.plus(timeout) } else { context.now };
        Ok(Taken::Done)
    }

    /// Sends ERROR and ends the connection.
    pub(super) fn fail(
        &mut self,
        context: &mut Context<impl Host>,
        fault: &Fault,
        receipt: Option<&str>,
    ) -> Close {
        let (writer, out) = self.outgoing(context);
        writer.fail(out, fault, receipt);
        self.closed(context)
    }

    /// Sends ERROR and has the connection ended at the next opportunity.
    pub(super) fn fail_later(
        &mut self,
        context: &mut Context<impl Host>,
        fault: &Fault,
        receipt: Option<&str>,
    ) {
        let close = self.fail(context, fault, receipt);
        self.ending = Some(close.reason.into());
        self.leave(context);
        self.state = State::Over;
        self.patience = context.now;
    }

    pub(super) fn closed(&mut self, context: &mut Context<impl Host>) -> Close {
        let (writer, _) = self.outgoing(context);
        let failed = writer.failed.clone();
        let reason = failed.as_deref().or(self.ending.as_deref()).unwrap_or("closed by the client");
        let close = Close { reason: reason.to_owned() };
        self.state = State::Over;
        close
    }

    /// Tells the engine, once, that the connection is gone.
    pub(super) fn leave(&mut self, context: &mut Context<impl Host>) {
        self.waiting = None;
        if self.connected {
            self.connected = false;
            context.engine.disconnect(context.now, self.id, context.host);
        }
    }
}
