//! The journal's files: their names, and which of them are segments.

use crate::Storage;

const SEGMENT_SUFFIX: &str = ".segment";
const CHECKPOINT_PREFIX: &str = "checkpoint-";
/// Ends the names of unfinished files.
pub(crate) const PREPARING_SUFFIX: &str = ".preparing";
/// Exists after an orderly shutdown, until the next start.
pub(crate) const CLEAN_NAME: &str = "clean";

pub(crate) fn segment_name(id: u32) -> String {
    format!("{id:08}{SEGMENT_SUFFIX}")
}
pub(crate) fn preparing_name(id: u32) -> String {
    format!("{id:08}{SEGMENT_SUFFIX}{PREPARING_SUFFIX}")
}
pub(crate) fn checkpoint_name(number: u32) -> String {
    format!("{CHECKPOINT_PREFIX}{number:08}")
}
/// The number in a name made by [`segment_name`]; `None` for any other name.
pub(crate) fn parse_segment_name(name: &str) -> Option<u32> {
    let id = name.strip_suffix(SEGMENT_SUFFIX)?.parse().ok()?;
    (segment_name(id) == name).then_some(id)
}
pub(crate) fn parse_checkpoint_name(name: &str) -> Option<u32> {
    let number = name.strip_prefix(CHECKPOINT_PREFIX)?.parse().ok()?;
    (checkpoint_name(number) == name).then_some(number)
}

/// A segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentFile {
    pub(crate) id: u32,
    pub(crate) bytes: u64,
}

/// The segment files among `names`, ascending. An empty file counts: it is damaged, not absent.
pub(crate) fn segments(
    storage: &dyn Storage,
    names: &[String],
) -> Result<Vec<SegmentFile>, String> {
    let mut files = Vec::new();
    for name in names {
        if let Some(id) = parse_segment_name(name) {
            let bytes = storage.size(name).map_err(|error| format!("{name}: {error}"))?;
            files.push(SegmentFile { id, bytes });
        }
    }
    files.sort_by_key(|file| file.id);
    Ok(files)
}
