//! Who listens, for sure, before a message is published hears it, or is told how many it missed: in any
//! case before it hears a later one of the same publisher, and if it stays connected until the end.
//! (In a group another one may have it; see there.)

use crate::checks::subscriptions::{Ear, Hearing, Said};
use crate::history::{History, MessageId};
use angarium_engine::SlowConsumerPolicy;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(history: &History) -> Result<(), String> {
    let hearing = Hearing::of(history);
    let can_lag = history.plan.can_lag();
    for ear in hearing.ears.values().filter(|ear| ear.group().is_none()) {
        // Without headers there is no place in which it could be told.
        if !can_lag || ear.listen.takes_headers {
            judge(&hearing, ear, can_lag, history.plan.slow_consumer_policy)?;
        }
    }
    Ok(())
}

fn judge(
    hearing: &Hearing<'_>,
    ear: &Ear<'_>,
    can_lag: bool,
    slow_consumer_policy: SlowConsumerPolicy,
) -> Result<(), String> {
    // What was written before the oldest messages were taken out, or waited on the disk when others were
    // lost there, tells nothing of that: last words do, and the very last where they too may be taken out.
    // One that is takes with it what it told of, and none that came with it tells of that again.
    let last = ear.heard.iter().filter_map(|(_, hear)| hear.message).next_back();
    let tells = |message| match slow_consumer_policy {
        SlowConsumerPolicy::DropOldest => {
            Some(message) == last
                && hearing.is_last_word(message)
                && !misses_last_words(hearing, ear)
        }
        SlowConsumerPolicy::Spool => hearing.is_last_word(message),
        SlowConsumerPolicy::DropNew | SlowConsumerPolicy::Disconnect => true,
    };
    // Where a disk keeps next to nothing they may get lost themselves, and nothing comes after them. And
    // what is taken out for others that come with it is told of once all of these are written.
    let keeps_last_words =
        !matches!(slow_consumer_policy, SlowConsumerPolicy::Spool | SlowConsumerPolicy::DropOldest);
    let counts =
        |said: &&Said<'_>| keeps_last_words || !can_lag || !hearing.is_last_word(said.emit.message);
    let who = ear.listen.listener;
    let mut newest: BTreeMap<u32, MessageId> = BTreeMap::new();
    let (mut missing, mut told) = (0, 0);
    for (_, hear) in &ear.heard {
        let Some(message) = hear.message else { continue };
        let before = newest.insert(message.producer(), message);
        let after = before.unwrap_or(MessageId::new(message.producer(), 0));
        missing += expected(hearing, ear, after, message).filter(counts).count();
        told += usize::try_from(hear.missed).unwrap_or(usize::MAX);
        if missing > told && tells(message) {
            return Err(format!(
                "listener {who} heard {message:?} and misses {missing} before it, of which it was \
                 told of {told}"
            ));
        }
    }
    if told > 0 && (!can_lag || told > missed_at_most(hearing, ear)) {
        return Err(format!("listener {who} was told that it missed {told}, and did not"));
    }
    if !can_lag && hearing.stays(ear) && !ear.has_ended() {
        let all = hearing.said.keys().map(|message| message.producer());
        for producer in all.collect::<BTreeSet<u32>>() {
            let nothing = MessageId::new(producer, 0);
            let after = newest.get(&producer).copied().unwrap_or(nothing);
            let end = MessageId::new(producer + 1, 0);
            if let Some(said) = expected(hearing, ear, after, end).next() {
                let message = said.emit.message;
                return Err(format!("listener {who} never heard {message:?}"));
            }
        }
    }
    Ok(())
}

/// What it must hear between two messages of a publisher, both left out.
fn expected<'h>(
    hearing: &'h Hearing<'_>,
    ear: &'h Ear<'_>,
    after: MessageId,
    before: MessageId,
) -> impl Iterator<Item = &'h Said<'h>> {
    let range = MessageId(after.0 + 1)..before;
    let between = (range.start < range.end).then(|| hearing.said.range(range));
    between.into_iter().flatten().map(|(_, said)| said).filter(|said| {
        let is_known = said.processed.is_some() && ear.knows_before(said.at);
        is_known && ear.is_for(said.emit)
    })
}

/// Whether it may have missed some of the last words.
fn misses_last_words(hearing: &Hearing<'_>, ear: &Ear<'_>) -> bool {
    let heard: BTreeSet<_> = ear.heard.iter().filter_map(|(_, hear)| hear.message).collect();
    let mut last_words = hearing.said.keys().filter(|message| hearing.is_last_word(**message));
    last_words.any(|message| ear.is_for(hearing.said[message].emit) && !heard.contains(message))
}

/// How many it may have missed before the last message that it heard.
fn missed_at_most(hearing: &Hearing<'_>, ear: &Ear<'_>) -> usize {
    let heard: BTreeSet<_> = ear.heard.iter().filter_map(|(_, hear)| hear.message).collect();
    let last = ear.heard.last().map_or(0, |(at, _)| *at);
    let said = hearing.said.values().filter(|said| said.at < last && ear.is_for(said.emit));
    said.filter(|said| !heard.contains(&said.emit.message)).count()
}
