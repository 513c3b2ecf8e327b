//! Pauses for producers that fill a queue faster than its consumers take from it: only what sends to that
//! queue pauses, for as long as the host would pause a whole connection.

use crate::channel::pauses::Pause;
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::{Effects, Time};
use std::time::Duration;

/// How long a producer pauses: one whose consumers are much slower, or take nothing, is to go on.
const PAUSE: Duration = Duration::from_millis(4);

impl Engine {
    /// The last publish of a channel outran the consumers of a queue.
    #[cold]
    pub(super) fn outran<F: Effects>(&mut self, now: Time, channel: u32, queue: u32, fx: &mut F) {
        let channel = &self.clients.channels[channel];
        let Some(confirms) = channel.confirms.as_ref().filter(|it| it.explained) else {
            return fx.consumers_outrun();
        };
        let Some(queue) = self.queues.get(queue).map(|queue| queue.number) else { return };
        let channel = channel.id;
        fx.congested(channel, confirms.last(), queue);
        let pauses = &mut self.agenda.pauses;
        let until = now.plus(PAUSE);
        if pauses.add(Pause { channel, queue, until }) {
            self.timers.bring_forward(&mut pauses.timer, until, Timer::Pauses);
        }
    }

    /// Some pauses are over.
    pub(crate) fn end_pauses<F: Effects>(&mut self, now: Time, fx: &mut F) {
        let pauses = &mut self.agenda.pauses;
        pauses.timer = None;
        while let Some(pause) = pauses.take_over(now) {
            fx.eased(pause.channel, pause.queue);
        }
        if let Some(next) = pauses.first() {
            self.timers.bring_forward(&mut pauses.timer, next.until, Timer::Pauses);
        }
    }
}
