//! UNSUBSCRIBE.

use super::asked::{Asked, MAIN, Taken, Unsubscribing};
use super::codec::Headers;
use super::destination::Destination;
use super::fault::{Failure, Fault};
use super::handler::Handler;
use super::mapping::{self, DURABLE, SUBSCRIPTION_NAMES};
use super::subscribe::consumer_name;
use super::subscription::Durable;
use crate::{Context, Host};
use angarium_engine::{Refusal, Reply, Request};

impl Handler {
    /// Takes UNSUBSCRIBE.
    pub(super) fn unsubscribe(
        &mut self,
        context: &mut Context<impl Host>,
        headers: &Headers<'_>,
    ) -> Result<Taken, Fault> {
        let (id, destination) = (headers.get("id")?, headers.get("destination")?);
        if id.is_none() && destination.is_none() {
            return Err(Fault::missing("UNSUBSCRIBE", "id"));
        }
        let receipt: Option<Box<str>> = headers.get("receipt")?.map(Into::into);
        let own_name = mapping::first_of(headers, &SUBSCRIPTION_NAMES)?;
        let deletes = own_name.is_some() || mapping::is_true(headers, &DURABLE)?;
        let found = self.subscriptions.iter().position(|it| match &id {
            Some(id) => it.id.as_deref() == Some(id),
            None => Some(&*it.destination) == destination.as_deref(),
        });
        let Some(index) = found else {
            let name = match destination.as_deref() {
                _ if !deletes => None,
                None if own_name.is_none() => None,
                destination => {
                    self.durable_name(own_name, id.as_deref(), destination.unwrap_or_default())
                }
            };
            let Some((_, name)) = name else {
                let what = id.or(destination).unwrap_or_default();
                let text = format!("there is no subscription '{what}' on this connection");
                return Err(Fault::new("Subscription not found", text));
            };
            let owner = self.client_id.as_deref().map(str::to_owned);
            self.delete_durable(context, Durable::Named { owner, name }, receipt);
            return Ok(Taken::Done);
        };
        let ended = self.subscriptions.remove(index);
        let (channel, deleted) = (ended.channel, ended.durable.filter(|_| deletes));
        if ended.is_direct {
            let id = self.channel_id(channel);
            context.engine.unsubscribe(id, "", None, context.host);
            self.end_subscription(context, channel);
            self.receipt(context, receipt.as_deref());
            return Ok(Taken::Done);
        }
        let name = consumer_name(ended.id.as_deref());
        let request = Request::CancelConsumer { name, returns: true };
        let unsubscribing = Unsubscribing { receipt, channel: Some(channel), deleted };
        self.ask(context, channel, request, Asked::Unsubscribe(unsubscribing));
        Ok(Taken::Done)
    }

    fn end_subscription(&mut self, context: &mut Context<impl Host>, channel: u16) {
        context.engine.close(context.now, self.channel_id(channel), context.host);
        self.outgoing(context).0.forget(channel);
        self.forget_temporary();
    }

    /// Forgets temporary queues without subscriptions: they were deleted with their last one.
    fn forget_temporary(&mut self) {
        let Handler { temporary, subscriptions, .. } = self;
        let is_of = |destination: &str, name: &str| {
            let parsed = Destination::parse(destination, false);
            matches!(parsed, Ok(Destination::TempQueue(it)) if it == name)
        };
        temporary.retain(|name, _| subscriptions.iter().any(|it| is_of(&it.destination, name)));
    }

    fn delete_durable(
        &mut self,
        context: &mut Context<impl Host>,
        durable: Durable,
        receipt: Option<Box<str>>,
    ) {
        let request = match durable {
            Durable::Named { owner, name } => Request::DeleteSubscription { owner, name },
            Durable::Queue(name) => {
                Request::DeleteQueue { name, if_unused: false, if_empty: false }
            }
        };
        let unsubscribing = Unsubscribing { receipt, channel: None, deleted: None };
        self.ask(context, MAIN, request, Asked::Unsubscribe(unsubscribing));
    }

    pub(super) fn unsubscribe_answered(
        &mut self,
        context: &mut Context<impl Host>,
        it: Unsubscribing,
        reply: Result<Reply, Refusal>,
    ) -> Result<(), Failure> {
        let Unsubscribing { receipt, channel, deleted } = it;
        if let Some(channel) = channel {
            // A queue that was deleted has taken its consumers with it.
            self.end_subscription(context, channel);
        } else if let Err(refusal) = reply {
            return Err((refusal.into(), receipt));
        }
        match deleted {
            Some(durable) => self.delete_durable(context, durable, receipt),
            None => self.receipt(context, receipt.as_deref()),
        }
        Ok(())
    }
}
