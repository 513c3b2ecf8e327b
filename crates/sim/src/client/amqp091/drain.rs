//! The last client of a run: empties every queue.

use super::channel::{Asked, Behaviour, Context};
use super::incoming::Message;
use crate::history::{Consume, Outcome};
use crate::plan::QueueIndex;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::Method;
use std::time::Duration;

/// Time without deliveries after which the queues are empty: longer than any delay, time to live
/// or disk job.
const QUIET: Duration = Duration::from_secs(12);
/// Time between two requests for the queues' depths.
const PAUSE: Duration = Duration::from_secs(4);
/// Unsettled deliveries per queue.
const PREFETCH: u16 = 100;

/// The state of the drain.
#[derive(Debug, Default)]
pub(super) struct Drain {
    /// Unanswered requests for a depth, and the sum of the answers.
    asking: usize,
    messages: u64,
    last: Time,
    has_begun: bool,
    is_done: bool,
}

impl Drain {
    fn queues(context: &Context<'_>) -> Vec<QueueIndex> {
        let queues = context.history.plan.queues.iter().enumerate();
        queues.filter(|(_, queue)| !queue.is_private()).map(|(index, _)| index).collect()
    }

    fn start_consumers(&mut self, context: &mut Context<'_>) {
        self.has_begun = true;
        context.link.ask_prefetch(PREFETCH, 0, Asked::Done);
        for queue in Drain::queues(context) {
            let messages_max = PREFETCH.into();
            context.start_consumer(Consume { queue, messages_max, ..Consume::default() });
        }
    }
}

impl Behaviour for Drain {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.last = context.now;
        self.woken(context);
    }

    fn arrived(&mut self, context: &mut Context<'_>, message: &Message) {
        self.last = context.now;
        match context.note_delivery(message) {
            Some(unsettled) => context.settle(unsettled, Outcome::Accept, None),
            // No producer made it, which the recorded delivery says already.
            None => {
                let delivery_tag = message.tag;
                context.link.send(&Method::BasicAck { delivery_tag, multiple: false });
            }
        }
    }

    fn answered(&mut self, context: &mut Context<'_>, asked: Asked, messages: u32) {
        let Asked::Depth(_) = asked else { return };
        self.messages += u64::from(messages);
        self.asking -= 1;
        if self.asking > 0 {
            return;
        }
        if !self.has_begun {
            self.start_consumers(context);
        } else if self.messages == 0 && context.now.since(self.last) >= QUIET {
            self.is_done = true;
            return;
        }
        *context.wake_at = Some(context.now.plus(PAUSE));
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        let queues = Drain::queues(context);
        (self.messages, self.asking) = (0, queues.len());
        for queue in queues {
            context.ask_depth(queue, Asked::Depth(queue));
        }
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn waits_for(&self) -> String {
        format!("{} messages are left", self.messages)
    }
}
