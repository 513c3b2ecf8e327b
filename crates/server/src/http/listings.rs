//! Long listings: a shard is asked for some of the rows at a time, and does other work in between. Rows that
//! come or go meanwhile may be listed or not. Does not know what the rows show.

use crate::reactor::{Gone, Mailbox, Shard};
use std::ops::Range;

/// Places that a shard looks at before others get their turn: some tenths of a millisecond.
const PLACES_PER_TURN: usize = 128;

/// What was found in some of the places.
#[derive(Debug)]
pub(super) struct Part<T> {
    pub(super) rows: Vec<T>,
    /// How many places there are, taken or not.
    pub(super) places: usize,
}

/// All rows of these shards.
pub(super) async fn rows<T, L>(mailboxes: &[Mailbox], look: L) -> Result<Vec<T>, Gone>
where
    T: Send + 'static,
    L: FnOnce(&mut Shard, Range<usize>) -> Part<T> + Clone + Send + 'static,
{
    let mut rows = Vec::new();
    for mailbox in mailboxes {
        let ask = |places| {
            let look = look.clone();
            mailbox.ask(move |shard| look(shard, places))
        };
        rows.append(&mut in_parts(ask).await?);
    }
    Ok(rows)
}

async fn in_parts<T, A>(ask: impl Fn(Range<usize>) -> A) -> Result<Vec<T>, Gone>
where
    A: Future<Output = Result<Part<T>, Gone>>,
{
    let (mut rows, mut from) = (Vec::new(), 0);
    loop {
        let to = from + PLACES_PER_TURN;
        let mut part = ask(from..to).await?;
        rows.append(&mut part.rows);
        if to >= part.places {
            return Ok(rows);
        }
        from = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_looked_at_once_and_few_at_a_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for places in [0, 1, 127, 128, 129, 1_000] {
            let asked = std::cell::Cell::new(0);
            let rows = runtime.block_on(in_parts(|range: Range<usize>| {
                asked.set(asked.get() + 1);
                assert!(range.len() <= 128);
                let rows = range.filter(|place| *place < places).collect();
                async move { Ok(Part { rows, places }) }
            }));
            assert_eq!(rows, Ok((0..places).collect::<Vec<_>>()));
            assert_eq!(asked.get(), places.div_ceil(128).max(1), "{places}");
        }
    }
}
