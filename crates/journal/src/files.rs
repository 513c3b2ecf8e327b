//! The journal's files: their names, and which of them are segments.

use crate::Storage;

const SEGMENT_SUFFIX: &str = ".segment";
const CHECKPOINT_PREFIX: &str = "checkpoint-";
const COPY_SUFFIX: &str = ".copy";
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
/// The two files of a checkpoint, which have the same content.
pub(crate) fn checkpoint_names(number: u32) -> [String; 2] {
    let name = format!("{CHECKPOINT_PREFIX}{number:08}");
    let copy = format!("{name}{COPY_SUFFIX}");
    [name, copy]
}
/// The number in a name made by [`segment_name`]; `None` for any other name.
pub(crate) fn parse_segment_name(name: &str) -> Option<u32> {
    let id = name.strip_suffix(SEGMENT_SUFFIX)?.parse().ok()?;
    (segment_name(id) == name).then_some(id)
}
/// The number in a name made by [`checkpoint_names`].
pub(crate) fn parse_checkpoint_name(name: &str) -> Option<u32> {
    let number = name.strip_prefix(CHECKPOINT_PREFIX)?;
    let number = number.strip_suffix(COPY_SUFFIX).unwrap_or(number).parse().ok()?;
    checkpoint_names(number).iter().any(|known| known == name).then_some(number)
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
