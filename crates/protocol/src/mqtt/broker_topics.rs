//! What the broker tells about itself in topics below `$SYS/broker`.
//!
//! Such messages are written to those who subscribe to them by name, and go through nothing else: no filter
//! with a wildcard in front takes them, no queue keeps them, and nobody else can publish them.

use super::codec::topic;
use super::handler::Handler;
use super::mapping;
use super::subscriptions::Matched;
use crate::broker_figures::Told;
use crate::{Context, Host};

/// Whether a filter can match some.
pub(super) fn may_match(filter: &str) -> bool {
    let mut levels = filter.split('/');
    levels.next() == Some("$SYS") && matches!(levels.next(), Some("broker" | "+" | "#"))
}

impl Handler {
    /// The client has subscribed to a filter, now or on an earlier connection: it hears of what changes.
    pub(super) fn watch_broker_topics(&self, context: &mut Context<impl Host>, text: &str) {
        if may_match(text)
            && let Some(topics) = context.host.broker_topics()
        {
            topics.watching.insert(self.id);
        }
    }

    /// Tells the client what was told last in the topics that match a filter of it.
    pub(super) fn replay_broker_topics(&self, context: &mut Context<impl Host>, text: &str) {
        let topics = context.host.broker_topics().filter(|_| may_match(text));
        let Some(topics) = topics.and_then(|topics| topics.last.clone()) else { return };
        let (writer, _) = self.outgoing(context);
        let Some(subscription) = writer.subscriptions.get(text) else { return };
        let matched = subscription.alone();
        for (topic, told) in topics.all.iter().filter(|(topic, _)| topic::matches(text, topic)) {
            self.tell_topic(context, topic, told, &matched, true);
        }
    }

    /// Tells the client what has changed of the topics that it subscribes to.
    pub(super) fn tell_changed_topics(&self, context: &mut Context<impl Host>) {
        let topics = context.host.broker_topics();
        let Some(topics) = topics.and_then(|topics| topics.last.clone()) else { return };
        if !self.is_open() || !context.host.has_room(self.id) {
            return;
        }
        for (topic, told) in topics.all.iter().filter(|(_, told)| told.is_new) {
            let (writer, _) = self.outgoing(context);
            let matched = writer.subscriptions.matching(topic, false);
            let is_retained = matched.retain_as_published;
            if matched.count > 0 {
                self.tell_topic(context, topic, told, &matched, is_retained);
            }
        }
    }

    /// Writes one message, where the user may read the topic.
    fn tell_topic(
        &self,
        context: &mut Context<impl Host>,
        topic: &str,
        told: &Told,
        matched: &Matched,
        is_retained: bool,
    ) {
        if context.engine.may_hear(self.channel(), &mapping::subject_of(topic)) {
            let (writer, out) = self.outgoing(context);
            writer.write_own(out, topic, told.value.as_bytes(), matched, is_retained);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_them_by_name_alone() {
        for (filter, expected) in [
            ("$SYS/#", true),
            ("$SYS/+/uptime", true),
            ("$SYS/broker/clients/#", true),
            ("$SYS", false),
            ("$SYS/ADVISORY/#", false),
            ("#", false),
            ("+/broker/uptime", false),
            ("$share/g/$SYS/#", false),
        ] {
            assert_eq!(may_match(filter), expected, "{filter}");
        }
    }
}
