//! Repairs a damaged journal by giving up what is damaged, and reports what that is.

use std::io;

use crate::check::{Problem, ProblemKind, Resumption};
use crate::checkpoint;
use crate::files;
use crate::format::Mended;
use crate::salvage::{Link, Region};
use crate::scan::Walk;
use crate::storage::failed;
use crate::{Report, Storage};

/// Bytes copied at a time.
const COPY_BYTES: u64 = 1 << 20;

/// Gives up what `report` found damaged, and nothing else. Returns one sentence for each thing that was
/// given up or restored. Damage can hide further damage: check again afterwards.
///
/// # Errors
/// What cannot be repaired, in words; what comes before it in the report is repaired. Nothing is changed in
/// a journal of another format version.
pub fn repair(storage: &dyn Storage, report: &Report) -> Result<Vec<String>, String> {
    let of_other_version = |problem: &&Problem| problem.kind == ProblemKind::Version;
    if let Some(problem) = report.problems.iter().find(of_other_version) {
        return Err(problem.what.clone());
    }
    // The sizes of segments come first: the other problems may lie in what they lack.
    let is_size = |problem: &Problem| matches!(problem.kind, ProblemKind::Segment { .. });
    let sizes_first = report.problems.iter().any(is_size);
    let mut done = Vec::new();
    for problem in &report.problems {
        let name = &problem.name;
        if sizes_first && !is_size(problem) {
            continue;
        }
        match &problem.kind {
            ProblemKind::Version => {}
            ProblemKind::Checkpoint { log_is_whole: true } => {
                done.push(drop_checkpoints(storage, name)?);
            }
            ProblemKind::Checkpoint { log_is_whole: false } => {
                return Err(format!(
                    "{name}: what is whole has to be rebuilt by who knows what the records mean"
                ));
            }
            ProblemKind::Copy => done.push(restore_copy(storage, name)?),
            ProblemKind::Segment { id, bytes } => done.push(
                fill_up(storage, *id, *bytes, problem.offset).map_err(failed("repair", name))?,
            ),
            ProblemKind::Gap { walk, resumes } => done.extend(bridge(storage, walk, *resumes)?),
            ProblemKind::Unreadable(region) => {
                let mut salvaged = region.read(storage)?;
                done.push(salvaged.mended());
                salvaged.mend(storage, None).map_err(failed("repair", name))?;
            }
        }
    }
    Ok(done)
}

/// Removes all checkpoints, none of which is whole: the log is replayed without.
fn drop_checkpoints(storage: &dyn Storage, name: &str) -> Result<String, String> {
    let names = storage.list().map_err(|error| error.to_string())?;
    for name in names.iter().filter(|name| files::parse_checkpoint_name(name).is_some()) {
        storage.remove(name).map_err(failed("remove", name))?;
    }
    Ok(format!("dropped {name}: the log is there from its beginning and is replayed whole"))
}

/// Writes a file of the checkpoint again, or removes one of a newer checkpoint that is lost.
fn restore_copy(storage: &dyn Storage, name: &str) -> Result<String, String> {
    let names = storage.list().map_err(|error| error.to_string())?;
    let stored = checkpoint::newest(storage, &names).map_err(|lost| lost.to_string())?;
    let Some(stored) = stored.filter(|stored| stored.is_its_own(name)) else {
        storage.remove(name).map_err(failed("remove", name))?;
        return Ok(format!("removed {name}: an older checkpoint takes its place"));
    };
    storage.replace(name, &stored.bytes).map_err(failed("write", name))?;
    Ok(format!("wrote {name} again from what is whole"))
}

/// Restores a segment's size, with zeros for what is gone.
fn fill_up(storage: &dyn Storage, id: u32, bytes: u64, there: u64) -> io::Result<String> {
    let name = files::segment_name(id);
    if bytes == 0 {
        storage.remove(&name)?;
        return Ok(format!("dropped {name}, which is empty"));
    }
    let preparing = files::preparing_name(id);
    if storage.list()?.contains(&preparing) {
        storage.remove(&preparing)?;
    }
    storage.create(&preparing, bytes)?;
    let mut chunk = Vec::new();
    let mut at = 0;
    while at < there {
        chunk.resize((there - at).min(COPY_BYTES) as usize, 0);
        storage.read(&name, at, &mut chunk)?;
        storage.write(&preparing, at, &chunk)?;
        at += chunk.len() as u64;
    }
    storage.sync(&preparing)?;
    storage.rename(&preparing, &name)?;
    Ok(format!("restored the size of {name}, {bytes} bytes: what lay from {there} on is lost"))
}

/// Mends the blocks of a gap, so that the chain leads over it.
fn bridge(storage: &dyn Storage, walk: &Walk, resumes: Resumption) -> Result<Vec<String>, String> {
    let regions = regions(storage, walk, resumes)?;
    let Some(last) = regions.len().checked_sub(1) else {
        return Err(format!("the gap behind {} has no room for a repair", walk.at));
    };
    let mut walk = walk.clone();
    let mut done = Vec::new();
    for (at, region) in regions.into_iter().enumerate() {
        let name = files::segment_name(region.id);
        let mut salvaged = region.read(storage)?;
        // Only the last one leads to where the log goes on; those before it stand for no block.
        let mended = match resumes {
            Resumption::Block(block) if at == last => Mended {
                checksum: block.header.previous,
                blocks: (block.header.sequence - 1 - walk.chain.sequence) as u32,
            },
            Resumption::Nowhere(_) if at == last => Mended { checksum: 0, blocks: 1 },
            _ => Mended { checksum: 0, blocks: 0 },
        };
        done.push(salvaged.mended());
        let link = Link { walk: &walk, mended };
        salvaged.mend(storage, Some(link)).map_err(failed("repair", &name))?;
        walk.chain.sequence += u64::from(mended.blocks);
        walk.chain.checksum = mended.checksum;
    }
    Ok(done)
}

/// What lies in the gap behind the walk. Segments that are gone are made again: records may have been in
/// them.
fn regions(storage: &dyn Storage, walk: &Walk, resumes: Resumption) -> Result<Vec<Region>, String> {
    let to = match resumes {
        Resumption::Block(block) => block.header.position(),
        Resumption::Nowhere(end) => end,
    };
    let from = walk.at;
    let size = |id: u32| walk.files.iter().find(|file| file.id == id).map_or(0, |file| file.bytes);
    let mut regions = Vec::new();
    for id in from.segment().max(1)..=to.segment() {
        let mut bytes = size(id);
        if bytes == 0 && id != from.segment() {
            bytes = size(to.segment());
            let name = files::segment_name(id);
            fill_up(storage, id, bytes, 0).map_err(failed("create", &name))?;
        }
        let start = if id == from.segment() { from.offset().into() } else { 0 };
        let end = if id == to.segment() { to.offset().into() } else { bytes };
        if start < end {
            regions.push(Region { id, from: start, to: end });
        }
    }
    Ok(regions)
}
