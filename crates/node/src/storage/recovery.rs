//! From what is on the disk to a running node: restore the checkpoint, replay what came after it.

use crate::effects::NodeEffects;
use crate::options::Options;
use angarium_engine as engine;
use angarium_engine::{
    CancelReason, ChannelId, Confirm, ConnectionId, Delivery, DirectMessage, Effects, Engine,
    GetAnswer, Hints, Load, MessageView, Refusal, Reply, SendOutcome, Shards, Time,
};
use angarium_journal::{Position, Recovery, Storage};
use angarium_protocol as protocol;

/// Most records that are named one by one because they could not be applied.
const SKIPPED_NAMED_MAX: usize = 20;

/// Recovers engine and journal. Errors say what is wrong with which file.
pub(crate) fn recover(
    options: &Options,
    storage: &dyn Storage,
    now: Time,
) -> Result<(Engine, NodeEffects), String> {
    let mut engine = self::engine(options);
    let recovery = Recovery::open(storage, options.journal.clone())?;
    let is_clean = recovery.clean();
    if let Some(snapshot) = recovery.snapshot() {
        engine.restore(snapshot)?;
    }
    let mut skipped = Vec::new();
    let mut journal = recovery.replay(storage, |journal, position, record| {
        let is_mended = journal.is_mended();
        if is_mended {
            engine.expect_gaps();
        }
        let mut replay = Replay {
            count: |position: engine::Position, change| {
                let position = Position(position.0);
                match change {
                    Count::Retain(count) => journal.retain(position, count),
                    Count::Release(count) => journal.release(position, count),
                }
            },
        };
        match engine.replay(engine::Position(position.0), record, &mut replay) {
            // It refers to what a repair had to give up.
            Err(why) if is_mended => skipped.push(format!("the record in {position}: {why}")),
            result => result?,
        }
        Ok(())
    })?;
    if !skipped.is_empty() {
        journal.note(format!(
            "{} records could not be applied, since they refer to what a repair gave up: {}",
            skipped.len(),
            skipped[..skipped.len().min(SKIPPED_NAMED_MAX)].join("; ")
        ));
    }
    engine.take_rescued().into_iter().for_each(|text| journal.note(text));
    let mut effects = NodeEffects::new(Some(journal), options);
    if let Some(marks) = &options.handed_out {
        engine.recover_handed_out(marks);
    }
    engine.end_recovery(now, is_clean, &mut effects);
    Ok((engine, effects))
}

pub(crate) fn engine(options: &Options) -> Engine {
    Engine::new(engine::Options {
        seed: options.seed,
        limits: options.limits.clone(),
        conventions: &protocol::CONVENTIONS,
        shard: options.shard,
        others: Shards::others(options.shard, options.shards),
    })
}

/// A change of the references to a segment.
pub(crate) enum Count {
    Retain(u32),
    Release(u32),
}

/// Effects during replay: only reference counts. What a record caused when it was first applied
/// (deliveries, confirms) is in the past.
pub(crate) struct Replay<C> {
    pub(crate) count: C,
}

impl<C> Hints for Replay<C> {}

impl<C: FnMut(engine::Position, Count)> Effects for Replay<C> {
    fn deliver(&mut self, _: &Delivery<'_>) {}
    fn answer_get(&mut self, _: &GetAnswer<'_>) {}
    fn send_direct(&mut self, _: &DirectMessage<'_>) -> SendOutcome {
        SendOutcome::Dropped
    }
    fn confirm(&mut self, _: ChannelId, _: Confirm<'_>) {}
    fn return_unroutable(&mut self, _: ChannelId, _: &MessageView<'_>) {}
    fn consumer_cancelled(&mut self, _: ChannelId, _: &str, _: CancelReason) {}
    fn reply(&mut self, _: ChannelId, _: Result<Reply, Refusal>) {}
    fn has_room(&self, _: ConnectionId) -> bool {
        false
    }
    fn append(&mut self, _: &[&[u8]], _: bool) -> engine::Position {
        unreachable!("replay appends nothing: what it would append is already in the log")
    }
    fn reserve(&mut self, _: usize, _: usize) {}
    fn retain(&mut self, position: engine::Position, count: u32) {
        (self.count)(position, Count::Retain(count));
    }
    fn release(&mut self, position: engine::Position, count: u32) {
        (self.count)(position, Count::Release(count));
    }
    fn load(&mut self, _: Load) {}
}
