//! What becomes of the messages of a session, as its peer is informed; and which links get no credit because
//! of the queues that their messages went into.

use super::fault::Reason;
use super::link_state::LinkState;
use super::session_state::SessionState;
use super::unconfirmed::{Run, Told, Unconfirmed};
use crate::output::Output;
use angarium_engine::{Confirm, PublishRefusal, RefusalKind};

impl SessionState {
    /// A message is about to be published.
    #[inline]
    pub(super) fn publishing(&mut self, publish: Unconfirmed) {
        self.unconfirmed.push(publish);
        if let Some(link) = self.receiver(publish.handle) {
            link.unconfirmed += 1;
        }
    }

    /// It was refused before it got a number.
    pub(super) fn not_published(&mut self, out: &mut Output, reason: Reason<'_>) {
        if let Some(publish) = self.unconfirmed.pop() {
            self.tell_refused(out, publish, reason);
        }
    }

    /// A message of the broker itself is about to be published; nobody hears its outcome.
    pub(super) fn publishing_own(&mut self) {
        let (delivery_id, handle, told, transaction) = (0, u32::MAX, Told::Not, None);
        self.unconfirmed.push(Unconfirmed { delivery_id, handle, told, transaction });
    }

    /// It was refused before it got a number.
    pub(super) fn own_not_published(&mut self) {
        self.unconfirmed.pop();
    }

    fn tell_refused(&mut self, out: &mut Output, publish: Unconfirmed, reason: Reason<'_>) {
        if let Some(run) = Run::of(publish) {
            run.put_rejected(&mut out.bytes, self.number, reason);
        }
        self.confirmed(publish.handle);
        self.top_up(out, publish.handle);
    }

    /// The engine has refused a publish that it had counted. What an exchange leads nowhere is released: it
    /// may find its way later.
    fn tell_not_taken(
        &mut self,
        out: &mut Output,
        publish: Unconfirmed,
        refused: PublishRefusal<'_>,
    ) {
        let releases = self.receiver(publish.handle).is_some_and(|link| link.releases);
        match Run::of(publish) {
            Some(run) if releases && refused.kind == RefusalKind::Unroutable => {
                run.put_released(&mut out.bytes, self.number);
                self.confirmed(publish.handle);
                self.top_up(out, publish.handle);
            }
            _ => self.tell_refused(out, publish, Reason::of(refused)),
        }
    }

    /// A queue that a publish went into has more than its consumers keep up with: its link gets no more
    /// credit.
    pub(super) fn congested(&mut self, publish: u64, queue: u64) {
        let handle = self.unconfirmed.handle_of(publish);
        if let Some(link) = handle.and_then(|handle| self.receiver(handle))
            && !link.congested.contains(&queue)
        {
            link.congested.push(queue);
        }
    }

    /// The queue has less again.
    pub(super) fn eased(&mut self, out: &mut Output, queue: u64) {
        for index in 0..self.links.len() {
            if let LinkState::Receiver(link) = &mut self.links[index]
                && let Some(at) = link.congested.iter().position(|other| *other == queue)
            {
                link.congested.swap_remove(at);
                let handle = link.handle;
                self.top_up(out, handle);
            }
        }
    }

    #[inline]
    fn confirmed(&mut self, handle: u32) {
        if let Some(link) = self.receiver(handle) {
            link.unconfirmed = link.unconfirmed.saturating_sub(1);
        }
    }

    /// Tells the outcome of publishes.
    pub(super) fn confirm(&mut self, out: &mut Output, confirm: Confirm<'_>) {
        if !confirm.multiple {
            let Some(publish) = self.unconfirmed.take_one(confirm.number) else { return };
            if let Some(refused) = confirm.refused {
                return self.tell_not_taken(out, publish, refused);
            }
            if let Some(run) = Run::of(publish) {
                run.put_accepted(&mut out.bytes, self.number);
            }
            if publish.told != Told::Done {
                self.confirmed(publish.handle);
            }
            return self.top_up(out, publish.handle);
        }
        self.confirm_up_to(out, confirm);
    }

    fn confirm_up_to(&mut self, out: &mut Output, confirm: Confirm<'_>) {
        let mut unconfirmed = std::mem::take(&mut self.unconfirmed);
        let mut run: Option<Run> = None;
        // The link whose publishes are counted, and how many there are.
        let (mut handle, mut count) = (0, 0);
        for publish in unconfirmed.take_up_to(confirm.number) {
            if publish.told == Told::Done {
                continue;
            }
            if let Some(refused) = confirm.refused {
                self.tell_not_taken(out, publish, refused);
                continue;
            }
            if publish.handle != handle {
                self.count_confirmed(out, handle, count);
                (handle, count) = (publish.handle, 0);
            }
            count += 1;
            let Some(next) = Run::of(publish) else { continue };
            let is_taken = run.as_mut().is_some_and(|run| run.takes(next));
            if !is_taken && let Some(run) = run.replace(next) {
                run.put_accepted(&mut out.bytes, self.number);
            }
        }
        if let Some(run) = run {
            run.put_accepted(&mut out.bytes, self.number);
        }
        self.unconfirmed = unconfirmed;
        self.count_confirmed(out, handle, count);
    }

    fn count_confirmed(&mut self, out: &mut Output, handle: u32, count: u32) {
        if count > 0 {
            if let Some(link) = self.receiver(handle) {
                link.unconfirmed = link.unconfirmed.saturating_sub(count);
            }
            self.top_up(out, handle);
        }
    }
}
