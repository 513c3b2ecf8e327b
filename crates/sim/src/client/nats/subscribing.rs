//! Listens, for ever or for so many messages or so long, and then again.

use crate::client::nats::connection::Arrived;
use crate::client::nats::context::{Act, Scene};
use crate::plan::nats::Listening;
use angarium_engine::Time;
use std::time::Duration;

/// Longest pause between two subscriptions, in microseconds.
const PAUSE_MAX: u64 = 150_000;

/// See the module.
#[derive(Debug)]
pub(super) struct Listener {
    plan: Listening,
    now: Option<Subscription>,
    is_finishing: bool,
}

#[derive(Debug)]
struct Subscription {
    sid: u32,
    heard: u64,
    /// The broker was told after how many messages it ends.
    is_limited: bool,
    ends_at: Option<Time>,
}

impl Listener {
    pub(super) fn new(plan: Listening) -> Listener {
        Listener { plan, now: None, is_finishing: false }
    }

    fn listen(&mut self, scene: &mut Scene<'_>) {
        let sid = scene.listen(&self.plan.pattern, self.plan.group.as_deref(), false);
        let is_limited = self.plan.until.is_some() && !self.plan.until_later;
        if is_limited {
            scene.unlisten(sid, self.plan.until);
        }
        scene.line.ping();
        let ends_at = self.plan.life_max.map(|max| {
            scene.wake_within(max);
            scene.now.plus(Duration::from_micros(scene.random.below(max)))
        });
        self.now = Some(Subscription { sid, heard: 0, is_limited, ends_at });
    }
}

impl Act for Listener {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        self.listen(scene);
    }

    fn heard(&mut self, scene: &mut Scene<'_>, message: &Arrived) {
        let Some(now) = self.now.as_mut().filter(|now| now.sid == message.sid) else { return };
        now.heard += 1;
        let Some(until) = self.plan.until else { return };
        if !now.is_limited && now.heard >= until / 2 {
            now.is_limited = true;
            scene.unlisten(message.sid, Some(until));
            scene.line.ping();
        }
        if now.heard >= until {
            self.now = None;
            scene.wake_within(PAUSE_MAX);
        }
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        if self.is_finishing {
            return;
        }
        let Some(now) = &self.now else { return self.listen(scene) };
        match now.ends_at {
            Some(due) if due <= scene.now => {
                scene.unlisten(now.sid, None);
                scene.line.ping();
                self.now = None;
                scene.wake_within(PAUSE_MAX);
            }
            Some(due) => *scene.wake_at = Some(due),
            None => {}
        }
    }

    fn ended(&mut self) {
        self.now = None;
    }

    fn finish(&mut self) {
        self.is_finishing = true;
    }
}
