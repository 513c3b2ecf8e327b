//! Retained messages for a new subscription are asked for, once that is there.

use super::codec::RetainHandling;
use super::handler::Handler;
use super::mapping;
use super::pending::Pending;
use super::replayed;
use super::subscriptions::Subscription;
use crate::{Context, Host};
use angarium_engine::{Replay, Request};

/// Whether a subscription, in place of the one that there was, gets retained messages.
pub(super) fn is_wanted(before: Option<&Subscription>, subscription: &Subscription) -> bool {
    !subscription.is_shared
        && match subscription.options.retain_handling {
            RetainHandling::Always => true,
            RetainHandling::IfNew => before.is_none(),
            RetainHandling::Never => false,
        }
}

impl Handler {
    /// Has the retained messages of a filter come, to which the client has just subscribed.
    pub(super) fn replay(&mut self, context: &mut Context<impl Host>, text: &str) {
        if !self.settings.retain_available {
            return;
        }
        let (writer, _) = self.outgoing(context);
        let Some(subscription) = writer.subscriptions.get(text).cloned() else { return };
        let replay = Replay {
            name: text.to_owned(),
            key: mapping::binding_key_of(text),
            through_session: subscription.is_queued(),
            note: replayed::note(text, &subscription),
        };
        self.ask(context, Request::Replay(Box::new(replay)), Pending::Nothing);
    }

    /// No more of them are to come: the client has unsubscribed.
    pub(super) fn end_replay(
        &mut self,
        context: &mut Context<impl Host>,
        text: &str,
        subscription: &Subscription,
    ) {
        if self.settings.retain_available && !subscription.is_shared {
            let name = text.to_owned();
            self.ask(context, Request::EndReplay { name }, Pending::Nothing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mqtt::codec::Qos;
    use crate::mqtt::codec::{Filter, FilterOptions};

    fn subscription(qos: Qos, retain_handling: RetainHandling) -> Subscription {
        let options = FilterOptions { qos, retain_handling, ..FilterOptions::default() };
        Subscription::new(&Filter::read("+/b").unwrap(), options, 7)
    }

    #[test]
    fn retain_handling_says_whether_they_are_wanted() {
        for (handling, is_there, expected) in [
            (RetainHandling::Always, false, true),
            (RetainHandling::Always, true, true),
            (RetainHandling::IfNew, false, true),
            (RetainHandling::IfNew, true, false),
            (RetainHandling::Never, false, false),
        ] {
            let new = subscription(Qos::AtMostOnce, handling);
            assert_eq!(is_wanted(is_there.then_some(&new), &new), expected);
        }
        let shared = Filter::read("$share/g/a").unwrap();
        let shared = Subscription::new(&shared, FilterOptions::default(), 0);
        assert!(!is_wanted(None, &shared));
    }
}
