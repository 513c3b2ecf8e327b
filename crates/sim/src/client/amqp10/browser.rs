//! A client that browses a queue: it is shown what waits there, a part after the other, and takes nothing.

use super::connection::{Context, Pace, Role};
use super::wire::{At, Incoming, Message};
use crate::canary::Canary;
use crate::client::Surroundings;
use crate::client::context::next;
use crate::history::{Event, Sight};
use crate::plan::amqp10::Browser;
use angarium_protocol::amqp10::codec::{ACCEPTED, SenderSettleMode};

/// One pass through the queue.
#[derive(Debug)]
struct Browse {
    at: At,
    /// Its number.
    number: u32,
    /// Messages that it was shown, and what its drain counted as such.
    delivery_count: u32,
    /// The delivery-count up to which credit was given, and the highest that it ever was.
    limit: u32,
    highest: u32,
    is_draining: bool,
    /// It has seen everything, or gives up; the link is being detached.
    is_over: bool,
}

/// What the client knows of its connection.
#[derive(Debug)]
pub(super) struct Browsing {
    plan: Browser,
    browse: Option<Browse>,
    /// A link is being attached.
    is_attaching: bool,
    /// The handle of the next link.
    next_handle: u32,
}

impl Browsing {
    pub(super) fn new(plan: Browser) -> Browsing {
        Browsing { plan, browse: None, is_attaching: false, next_handle: 0 }
    }

    fn attach_next(&mut self, context: &mut Context<'_, '_>) {
        self.is_attaching = true;
        let at = At { channel: 0, handle: self.next_handle };
        let queue = context.queue_name(self.plan.queue);
        let takes = context.broken.breaks(Canary::BrowsesTake);
        let mode = match self.plan.is_settled {
            true => SenderSettleMode::Settled,
            false => SenderSettleMode::Mixed,
        };
        context.wire.attach_browser(at, &queue, mode, !takes);
    }

    /// Lets the broker show more, the rest perhaps.
    fn go_on(&mut self, context: &mut Context<'_, '_>) {
        let Some(browse) = self.browse.as_mut().filter(|it| !it.is_over && !it.is_draining) else {
            return;
        };
        let drains = context.random.percent(50);
        let credit = context.random.between(1, self.plan.credit_max.into()) as u32;
        browse.limit = browse.delivery_count.wrapping_add(credit);
        browse.highest = browse.highest.max(browse.limit);
        browse.is_draining = drains;
        context.wire.flow(browse.at, browse.delivery_count, credit, drains);
        if drains {
            context.note(Event::BrowseAsks { browse: browse.number });
            if context.broken.breaks(Canary::DrainsEarly) {
                self.drained(context, u32::MAX);
            }
        }
    }

    /// The broker has nothing more to show, or has used the credit up.
    fn drained(&mut self, context: &mut Context<'_, '_>, delivery_count: u32) {
        let Some(browse) = self.browse.as_mut().filter(|it| it.is_draining && !it.is_over) else {
            return;
        };
        browse.is_draining = false;
        if delivery_count > browse.delivery_count {
            context.note(Event::Browsed { browse: browse.number });
            self.detach(context);
        }
    }

    fn is_at(&self, at: At) -> bool {
        self.browse.as_ref().is_some_and(|browse| browse.at == at)
    }

    fn detach(&mut self, context: &mut Context<'_, '_>) {
        let Some(browse) = &mut self.browse else { return };
        browse.is_over = true;
        context.wire.detach(browse.at);
    }

    fn arrived(&mut self, context: &mut Context<'_, '_>, message: Message) -> Result<(), String> {
        let Some(browse) = self.browse.as_mut().filter(|it| !it.is_over) else { return Ok(()) };
        browse.delivery_count = browse.delivery_count.wrapping_add(1);
        let Message { delivery_id, id, is_first, failures, is_settled, .. } = message;
        if browse.delivery_count > browse.highest && context.broken.0.is_none() {
            return Err(format!("credit respected: more than {} messages came", browse.highest));
        }
        let is_marked = !is_first || failures > 0;
        let sight = Sight { browse: browse.number, message: id, is_marked };
        context.note(Event::Saw(sight.clone()));
        if context.broken.breaks(Canary::DeliveriesRepeated) {
            context.note(Event::Saw(sight));
        }
        if !is_settled {
            // What it says of messages that it only looks at has no effect.
            context.wire.settle(browse.at.channel, delivery_id, delivery_id, ACCEPTED);
        }
        Ok(())
    }
}

impl Role for Browsing {
    fn container_id(&self) -> String {
        "browser".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { think_max: self.plan.think_max, life_max: None }
    }

    fn attach(&mut self, context: &mut Context<'_, '_>) {
        context.wire.begin(0);
        self.next_handle = 0;
        self.attach_next(context);
    }

    fn attached(&mut self, context: &mut Context<'_, '_>) -> bool {
        let (number, queue) = (next(&mut context.around.numbers.browse), self.plan.queue);
        let at = At { channel: 0, handle: self.next_handle };
        self.next_handle = (self.next_handle + 1) % 8;
        self.is_attaching = false;
        context.note(Event::Browse { browse: number, queue });
        self.browse = Some(Browse {
            at,
            number,
            delivery_count: 0,
            limit: 0,
            highest: 0,
            is_draining: false,
            is_over: false,
        });
        true
    }

    fn begin(&mut self, context: &mut Context<'_, '_>) {
        self.go_on(context);
    }

    fn take(&mut self, context: &mut Context<'_, '_>, what: Incoming) -> Result<(), String> {
        if !context.is_working {
            return Ok(());
        }
        match what {
            Incoming::Flow { at, delivery_count, credit, drain }
                if (drain || credit == 0) && self.is_at(at) =>
            {
                self.drained(context, delivery_count);
            }
            Incoming::Message(message) => self.arrived(context, message)?,
            _ => {}
        }
        Ok(())
    }

    fn detached(&mut self, _: &mut Context<'_, '_>) -> bool {
        self.browse.take_if(|browse| browse.is_over).is_some()
    }

    fn act(&mut self, context: &mut Context<'_, '_>) {
        match &self.browse {
            None if self.is_attaching => {}
            None => self.attach_next(context),
            Some(browse) if browse.delivery_count >= browse.limit => self.go_on(context),
            // Some give up in the middle.
            Some(browse) if !browse.is_over && !browse.is_draining && context.random.percent(5) => {
                self.detach(context);
            }
            Some(_) if context.random.percent(20) => self.go_on(context),
            Some(_) => {}
        }
    }

    fn ended(&mut self, _: &mut Surroundings<'_>) {
        self.browse = None;
    }

    fn is_idle(&self) -> bool {
        self.browse.as_ref().is_none_or(|browse| browse.is_over || !browse.is_draining)
    }
}
