//! The connection of a client: it comes, does what its role does, and leaves, by itself or not.

use super::broken::Broken;
use super::wire::{FORCED, Incoming, Wire};
use crate::canary::Canary;
use crate::client::context::{Phase, Presence, Surroundings};
use crate::client::endpoint::Endpoint;
use crate::history::Event;
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::Protocol;
use angarium_protocol::amqp10::frame;
use std::time::Duration;

/// How often a client sends something at least.
const BEAT: Duration = Duration::from_secs(5);
/// The code of a shutdown, and that of other errors, in the words of AMQP 0-9-1.
const CONNECTION_FORCED: u16 = 320;
const FAILED: u16 = 506;

/// How a client's visits go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Longest pause between two wake-ups, in microseconds.
    pub(super) think_max: u64,
    /// Longest time after which it leaves and comes back, in microseconds.
    pub(super) life_max: Option<u64>,
}

/// What a role can reach during one call.
pub(super) struct Context<'a, 'b> {
    pub(super) around: &'a mut Surroundings<'b>,
    pub(super) wire: &'a mut Wire,
    pub(super) random: &'a mut Random,
    pub(super) broken: &'a mut Broken,
    /// Its links are attached, and it does not leave.
    pub(super) is_working: bool,
}

impl Context<'_, '_> {
    pub(super) fn note(&mut self, event: Event) {
        self.around.note(event);
    }

    /// Records that the broker refused something, which it may only after a fault.
    pub(super) fn note_refusal(&mut self, text: String) {
        self.note(Event::Refused { code: FAILED, text });
    }

    /// The name of a queue of the plan.
    pub(super) fn queue_name(&self, queue: usize) -> String {
        self.around.history.plan.queues[queue].name.clone()
    }
}

/// What a client does on its connection. That may be lost at any time; on the next one it begins anew.
pub(super) trait Role: std::fmt::Debug {
    /// What its container id begins with.
    fn container_id(&self) -> String;
    /// How its visits go.
    fn pace(&self) -> Pace;
    /// The connection is open: asks for sessions and links.
    fn attach(&mut self, context: &mut Context<'_, '_>);
    /// A link is attached. Whether it is the last one, and work begins.
    fn attached(&mut self, context: &mut Context<'_, '_>) -> bool;
    /// All links are attached.
    fn begin(&mut self, context: &mut Context<'_, '_>);
    /// Something came. Fails if the broker breaks a promise.
    fn take(&mut self, context: &mut Context<'_, '_>, what: Incoming) -> Result<(), String>;
    /// A link is gone; whether the role has asked for that.
    fn detached(&mut self, _: &mut Context<'_, '_>) -> bool {
        false
    }
    /// It is woken.
    fn act(&mut self, context: &mut Context<'_, '_>);
    /// It is woken and is to begin nothing.
    fn finish(&mut self, _: &mut Context<'_, '_>) {}
    /// The connection has ended.
    fn ended(&mut self, around: &mut Surroundings<'_>);
    /// Whether it waits for nothing.
    fn is_idle(&self) -> bool;
}

/// A client of that role.
pub(super) fn client<R: Role + 'static>(role: R, start: Time, random: Random) -> Box<dyn Endpoint> {
    // What the client draws later is not changed by its name.
    let number = random.clone().draw();
    Box::new(Client {
        container_id: format!("{}.{number:016x}", role.container_id()),
        role,
        presence: Presence::new(Protocol::Amqp, start, random),
        wire: Wire::default(),
        wake_at: None,
        leaves_at: None,
        is_retiring: false,
        is_declared: false,
        broken: Broken::default(),
    })
}

/// One client.
#[derive(Debug)]
struct Client<R> {
    role: R,
    /// Its own on all of its connections: links of a lost one give way to those of the next.
    container_id: String,
    presence: Presence,
    wire: Wire,
    wake_at: Option<Time>,
    leaves_at: Option<Time>,
    is_retiring: bool,
    /// Its queues are declared: producers publish only after they have declared all queues. The broker would
    /// make others of those names.
    is_declared: bool,
    broken: Broken,
}

impl<R: Role> Client<R> {
    fn with_role<T>(
        &mut self,
        around: &mut Surroundings<'_>,
        act: impl FnOnce(&mut R, &mut Context<'_, '_>) -> T,
    ) -> T {
        let is_working = self.presence.is_working();
        let (wire, random) = (&mut self.wire, &mut self.presence.random);
        let broken = &mut self.broken;
        act(&mut self.role, &mut Context { around, wire, random, broken, is_working })
    }

    fn ended(&mut self, around: &mut Surroundings<'_>) {
        self.role.ended(around);
        self.presence.is_closing = true;
        if self.is_retiring {
            self.presence.phase = Phase::Gone;
        } else {
            self.presence.stay_away(around.now);
        }
    }

    fn take(&mut self, around: &mut Surroundings<'_>, what: Incoming) -> Result<(), String> {
        match what {
            Incoming::Authenticated => {
                self.presence.phase = Phase::Entering;
                self.wire.open(&self.container_id);
                self.with_role(around, |role, context| role.attach(context));
            }
            Incoming::Attached => {
                let is_last = self.with_role(around, |role, context| role.attached(context));
                if is_last && self.presence.phase == Phase::Entering {
                    self.begin(around);
                }
            }
            Incoming::Gone { what, condition, text } => self.gone(around, what, &condition, &text),
            what => return self.with_role(around, |role, context| role.take(context, what)),
        }
        Ok(())
    }

    fn gone(&mut self, around: &mut Surroundings<'_>, what: &str, condition: &str, text: &str) {
        if self.presence.phase == Phase::Leaving {
            if what == "connection" {
                self.ended(around);
            }
            return;
        }
        let is_asked_for = what == "link" && condition.is_empty();
        if is_asked_for && self.with_role(around, |role, context| role.detached(context)) {
            return;
        }
        // Its queues may not be declared yet.
        let is_expected = self.presence.phase == Phase::Entering;
        if !is_expected {
            let code = if condition == FORCED { CONNECTION_FORCED } else { FAILED };
            around.note(Event::Refused { code, text: format!("{what}: {condition} {text}") });
        }
        self.ended(around);
    }

    fn begin(&mut self, around: &mut Surroundings<'_>) {
        self.presence.phase = Phase::Working;
        let (now, random) = (around.now, &mut self.presence.random);
        let life_max = self.role.pace().life_max;
        self.leaves_at = life_max.map(|max| now.plus(Duration::from_micros(random.below(max))));
        self.with_role(around, |role, context| role.begin(context));
        self.wake_soon(now);
    }

    fn wake_soon(&mut self, now: Time) {
        let pause = self.presence.random.below(self.role.pace().think_max) + 1;
        self.wake_at = Some(now.plus(Duration::from_micros(pause)));
    }

    fn act(&mut self, around: &mut Surroundings<'_>) {
        if self.leaves_at.is_some_and(|due| due <= around.now) {
            if self.presence.random.percent(50) {
                return self.ended(around);
            }
            return self.leave();
        }
        self.with_role(around, |role, context| role.act(context));
    }

    fn leave(&mut self) {
        self.wire.close();
        self.presence.phase = Phase::Leaving;
    }
}

impl<R: Role> Endpoint for Client<R> {
    fn break_rule(&mut self, canary: Canary, random: Random) {
        self.broken = Broken(Some((canary, random)));
    }

    fn presence(&mut self) -> &mut Presence {
        &mut self.presence
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn woken(&mut self, around: &mut Surroundings<'_>) {
        self.wake_at = None;
        if !self.presence.is_working() {
            return;
        }
        if self.presence.is_finishing {
            self.with_role(around, |role, context| role.finish(context));
            frame::write_empty(&mut self.wire.output);
            self.wake_at = Some(around.now.plus(BEAT));
            return;
        }
        self.act(around);
        if self.presence.is_working() {
            self.wake_soon(around.now);
        }
    }

    fn connected(&mut self, around: &mut Surroundings<'_>) {
        self.presence.phase = Phase::Greeting;
        self.presence.is_closing = false;
        self.wire = Wire::default();
        (self.wake_at, self.leaves_at) = (None, None);
        let is_published_to = |(_, event): &(Time, Event)| matches!(event, Event::Publish(_));
        self.is_declared = self.is_declared || around.history.events.iter().any(is_published_to);
        if self.is_declared {
            self.wire.greet();
        } else {
            self.ended(around);
        }
    }

    fn is_done(&mut self) -> bool {
        let has_none = self.presence.is_finishing && !self.is_declared;
        has_none || self.is_gone() || (self.presence.is_working() && self.is_idle())
    }

    fn received(&mut self, around: &mut Surroundings<'_>, bytes: &[u8]) -> Result<(), String> {
        for what in self.wire.received(bytes)? {
            if self.presence.is_connected() {
                self.take(around, what)?;
            }
        }
        Ok(())
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.wire.output
    }

    fn lost(&mut self, around: &mut Surroundings<'_>) {
        if self.presence.is_connected() {
            self.ended(around);
        }
    }

    fn is_idle(&self) -> bool {
        self.role.is_idle()
    }

    fn waits_for(&self) -> String {
        format!("{:?}, {:?}", self.presence.phase, self.role)
    }

    fn retire(&mut self, around: &mut Surroundings<'_>) {
        self.is_retiring = true;
        match self.presence.phase {
            Phase::Working => self.leave(),
            Phase::Leaving | Phase::Gone => {}
            _ => self.ended(around),
        }
    }
}
