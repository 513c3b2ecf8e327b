//! What lies behind the end of the log, and what that says of it: a write that was cut off, or damage.

use crate::format::{BlockHeader, NoBlock};
use crate::scan::{self, Walk};
use crate::{Position, Storage, salvage};

/// What lies behind the end of a walk.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The highest epoch of any block.
    pub(crate) epoch: u32,
    /// Why the missing block was written once for certain.
    pub(crate) proof: Option<Proof>,
    /// Whole blocks that belong behind the missing one, and their records.
    blocks: u64,
    records: u64,
    /// What is left of the missing block: its records, and how many of them are whole.
    remains: Option<(u32, usize)>,
}

/// Why bytes at the end of the log are damaged and not merely cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// A block says that they were flushed.
    Flushed(Position),
    /// This block was written behind them in the same boot of the machine, which keeps what was written
    /// before.
    Behind(Position),
    /// The missing block itself was written to its end in this boot.
    Complete,
}

impl Tail {
    /// Looks at what lies behind the end of `walk`. `gap`: see [`scan::search`].
    pub(crate) fn look(storage: &dyn Storage, walk: &Walk, gap: u64) -> Result<Tail, String> {
        let boot = storage.boot();
        let mut tail = Tail { epoch: walk.epoch, ..Tail::default() };
        scan::search(storage, &walk.files, walk.at, gap, |block, _| {
            let header = block.header;
            tail.epoch = tail.epoch.max(header.epoch);
            let place = header.position();
            if header.durable > walk.at {
                tail.proof = Some(Proof::Flushed(place));
            } else if walk.precedes(&header) {
                tail.blocks += 1;
                tail.records += u64::from(header.records);
                if is_of(boot, &header) && tail.proof.is_none() {
                    tail.proof = Some(Proof::Behind(place));
                }
            }
            !matches!(tail.proof, Some(Proof::Flushed(_)))
        })?;
        if tail.proof.is_none()
            && let Some((header, bytes)) = walk.damaged(storage)?
        {
            let (whole, is_complete) = salvage::whole_in_block(&bytes, &header)?;
            tail.remains = Some((header.records, whole));
            tail.proof = (is_complete && is_of(boot, &header)).then_some(Proof::Complete);
        }
        Ok(tail)
    }

    /// What was dropped although it may have been flushed, with counts; `None`: nothing was there.
    pub(crate) fn note(&self, walk: &Walk) -> Option<String> {
        let of_block = self.remains.map(|(records, whole)| {
            format!("a block of {records} records, {whole} of which are whole,")
        });
        let behind = (self.blocks > 0)
            .then(|| format!("{} whole blocks with {} records", self.blocks, self.records));
        let what = match (of_block, behind) {
            (None, None) if walk.end == NoBlock::Absent => return None,
            (None, None) => "remains of a block".to_owned(),
            (Some(what), None) | (None, Some(what)) => what,
            (Some(block), Some(behind)) => format!("{block} and {behind} behind it"),
        };
        Some(format!(
            "the log ends in {}; there lie {what} that nothing shows to have been flushed: a write that a \
             crash cut off, never confirmed, or else the last flush, damaged since; they do not count",
            walk.at
        ))
    }
}

impl Proof {
    /// What proves it, in words.
    pub(crate) fn text(self) -> String {
        match self {
            Proof::Flushed(place) => {
                format!("it was flushed once: a valid block follows in {place}")
            }
            Proof::Behind(place) => format!(
                "it was written once: since this machine started a valid block was written behind it \
                 in {place}"
            ),
            Proof::Complete => {
                "it was written to its end since this machine started: its last record is whole"
                    .to_owned()
            }
        }
    }
}

/// Whether a block was written in this boot of the machine.
pub(crate) fn is_of(boot: u32, header: &BlockHeader) -> bool {
    boot != 0 && header.boot == boot
}
