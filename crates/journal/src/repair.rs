//! Repairs a damaged journal by giving up what is damaged, and reports what that is.

use std::io;

use crate::check::ProblemKind;
use crate::checkpoint::{Chain, Checkpoint, read_file};
use crate::files;
use crate::format::{self, BLOCK_ALIGN};
use crate::scan::{self, Block, Walk};
use crate::storage::failed;
use crate::{Position, Report, Storage};

/// Bytes copied at a time.
const COPY_BYTES: u64 = 1 << 20;

/// Gives up what `report` found damaged, and nothing else. Returns one sentence for each thing that was given
/// up or left. A damaged checkpoint can hide further damage: check again afterwards.
///
/// # Errors
/// What cannot be repaired, in words; what comes before it in the report is repaired.
pub fn repair(storage: &dyn Storage, report: &Report) -> Result<Vec<String>, String> {
    let mut dropped = Vec::new();
    for problem in &report.problems {
        let name = &problem.name;
        dropped.push(match &problem.kind {
            ProblemKind::Checkpoint => drop_checkpoint(storage, name)?,
            ProblemKind::Segment { id, bytes } => {
                fill_up(storage, *id, *bytes, problem.offset).map_err(failed("repair", name))?
            }
            ProblemKind::Gap { walk, resumes } => bridge(storage, walk, resumes)?,
            ProblemKind::Unreadable => format!(
                "left as it is: {name} from offset {}; live records there that cannot be read are \
                 lost, and reported when they are asked for",
                problem.offset
            ),
        });
    }
    Ok(dropped)
}

/// Removes the newest checkpoint, if the log can be replayed without it.
fn drop_checkpoint(storage: &dyn Storage, name: &str) -> Result<String, String> {
    let names = storage.list().map_err(|error| error.to_string())?;
    let older = names.iter().rev().find(|other| {
        files::parse_checkpoint_name(other).is_some()
            && *other != name
            && read_file(storage, other).is_ok_and(|bytes| Checkpoint::decode(&bytes).is_ok())
    });
    let instead = match older {
        Some(older) => format!("{older} takes its place, which needs no segment that is gone"),
        None => {
            let files = files::segments(storage, &names)?;
            let mut walk = Walk::new(files, &Checkpoint::default());
            if walk.next(storage, &mut Vec::new())?.is_none() {
                return Err(format!(
                    "{name} cannot be repaired: there is no older checkpoint, and the beginning of \
                     the log is no longer there; restore the data from a copy"
                ));
            }
            "the log is there from its beginning and is replayed whole".to_owned()
        }
    };
    storage.remove(name).map_err(failed("remove", name))?;
    Ok(format!("dropped {name}: {instead}"))
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
    let from = format::align(there as usize) as u64;
    if from < bytes {
        let end = Position(Position::at(id, 0).0 + bytes);
        let hole = scan::hole(Position::at(id, from as u32), None, end, Chain::default());
        storage.write(&preparing, from, &hole)?;
    }
    storage.sync(&preparing)?;
    storage.rename(&preparing, &name)?;
    Ok(format!("gave up {name} from offset {there} to its end at {bytes}: records there are lost"))
}

/// Writes a hole block that leads the chain over the gap.
fn bridge(storage: &dyn Storage, walk: &Walk, resumes: &Block) -> Result<String, String> {
    let to = resumes.header.position();
    let chain = Chain { sequence: resumes.header.sequence - 1, checksum: resumes.header.previous };
    let blocks = chain.sequence - walk.chain.sequence;
    let at = place(storage, walk, to)?;
    let name = files::segment_name(at.segment());
    let hole = scan::hole(at, Some(walk), to, chain);
    let written = storage.write(&name, at.offset().into(), &hole);
    written.and_then(|()| storage.sync(&name)).map_err(failed("repair", &name))?;
    Ok(format!(
        "gave up everything from {} up to {to}: {blocks} blocks with their records",
        walk.at
    ))
}

/// A place for a block within the gap behind the walk.
fn place(storage: &dyn Storage, walk: &Walk, to: Position) -> Result<Position, String> {
    let room = BLOCK_ALIGN as u64;
    let from = walk.at.segment();
    for file in walk.files.iter().filter(|file| (from..=to.segment()).contains(&file.id)) {
        let offset = if file.id == from { walk.at.offset() } else { 0 };
        let end = if file.id == to.segment() { to.offset().into() } else { file.bytes };
        if u64::from(offset) + room <= end {
            return Ok(Position::at(file.id, offset));
        }
    }
    let is_there = |id: &u32| walk.files.iter().any(|file| file.id == *id && file.bytes > 0);
    let id = (from + 1..to.segment())
        .find(|id| !is_there(id))
        .ok_or_else(|| format!("the gap between {} and {to} has no room for a repair", walk.at))?;
    let (preparing, name) = (files::preparing_name(id), files::segment_name(id));
    let created = storage.create(&preparing, room);
    created.and_then(|()| storage.rename(&preparing, &name)).map_err(failed("create", &name))?;
    Ok(Position::at(id, 0))
}
