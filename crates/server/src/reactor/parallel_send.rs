//! Sends to several hundred clients at once from several threads: each send is some microseconds of the
//! kernel's work, and processors without a shard can do a part of it.
//!
//! Helpers borrow sockets and bytes for the length of one call and decide nothing: the shard handles the
//! results as if it had sent all of it itself. It sends too, and joins its helpers before the call returns:
//! since sockets are non-blocking, it waits no longer than their last few sends take.

use super::clients::offer;
use super::shard::Shard;
use super::socket::{Offer, Sent, Socket};
use super::watchdog::Step;
use crate::allocator;
use angarium_engine::ConnectionId;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Clients from which on output is sent in parallel: their sends take about a millisecond, much more than
/// starting a thread.
const PARALLEL_SENDS_MIN: usize = 256;
/// Sends between two looks at what is left to do.
const STRIDE: usize = 8;
/// More helpers would contend in the kernel.
const HELPERS_MAX: usize = 3;

/// How many threads may help each of `shards` shards: its part of the processors that no shard has.
pub(super) fn helpers(shards: usize) -> usize {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    processors.saturating_sub(shards).div_ceil(shards).min(HELPERS_MAX)
}

/// The output for one client.
struct Output<'a> {
    index: usize,
    id: ConnectionId,
    socket: &'a Socket,
    offer: Offer<'a>,
}

/// The result of sending to one client.
struct Done {
    index: usize,
    id: ConnectionId,
    offered: usize,
    sent: Sent,
}

impl Shard {
    /// Sends clients their output from several threads if they are many and there are processors to spare.
    /// What remains to be done for them is done as for other clients.
    pub(super) fn send_in_parallel(&mut self, to: &[ConnectionId]) {
        if to.len() < PARALLEL_SENDS_MIN || self.helpers == 0 {
            return;
        }
        let (node, clients) = (&self.node, &self.clients);
        let outputs = to.iter().filter_map(|id| {
            let index = clients.index_of(*id)?;
            let socket = clients.plain_socket(index)?;
            let offer = offer(node, *id);
            (offer.len() > 0).then_some(Output { index, id: *id, socket, offer })
        });
        let outputs: Vec<Output<'_>> = outputs.collect();
        let (watchdog, clock) = (&mut self.watchdog, self.clock);
        let mut slow_steps = Vec::new();
        let mut watch =
            |id| slow_steps.extend(watchdog.look(clock.now()).map(|slow| (Step::Send(id), slow)));
        let mut done = send_all(&outputs, self.helpers, &mut watch);
        drop(outputs);
        // The end of a client may change other clients' output (an outbox may drop its oldest messages), so
        // that all sent bytes are recorded first.
        done.sort_by_key(|done| done.sent == Sent::Ended);
        for done in done {
            self.clients.took(done.index, done.offered, &done.sent);
            self.sent(done.index, done.id, done.offered, &done.sent);
        }
        for (step, slow) in slow_steps {
            self.name_step(step, slow);
        }
    }
}

/// Sends all, from this thread and `helpers` others; calls `watch` on this thread between sends.
fn send_all(
    outputs: &[Output<'_>],
    helpers: usize,
    mut watch: impl FnMut(ConnectionId),
) -> Vec<Done> {
    let next = AtomicUsize::new(0);
    let take = || {
        let start = next.fetch_add(STRIDE, Ordering::Relaxed);
        outputs
            .get(start..)
            .map(|rest| &rest[..rest.len().min(STRIDE)])
            .filter(|some| !some.is_empty())
    };
    let send = |output: &Output<'_>| Done {
        index: output.index,
        id: output.id,
        offered: output.offer.len(),
        sent: output.socket.offer(&output.offer),
    };
    let help = || {
        let mut done = Vec::new();
        while let Some(some) = take() {
            done.extend(some.iter().map(send));
        }
        done
    };
    thread::scope(|scope| {
        // Without a further thread the others send all, as where the system refuses memory, which a thread
        // needs to begin.
        let helpers = if allocator::is_exhausted() { 0 } else { helpers };
        let start = |_| {
            thread::Builder::new().name("send-helper".to_owned()).spawn_scoped(scope, help).ok()
        };
        let helping: Vec<_> = (0..helpers).filter_map(start).collect();
        let mut done = Vec::with_capacity(outputs.len());
        while let Some(some) = take() {
            done.extend(some.iter().map(send));
            watch(some[some.len() - 1].id);
        }
        for helper in helping {
            done.extend(helper.join().expect("a helper only sends"));
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::{Done, Offer, Output, send_all};
    use crate::reactor::socket::{Sent, Socket};
    use angarium_engine::ConnectionId;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// `count` sockets, and their other ends.
    fn pairs(count: usize) -> (Vec<Socket>, Vec<UnixStream>) {
        let pair = |_| {
            let (near, far) = UnixStream::pair().unwrap();
            near.set_nonblocking(true).unwrap();
            (Socket::new(near.into()), far)
        };
        (0..count).map(pair).unzip()
    }

    /// Sends each of `count` clients its own bytes. One of them has gone, one has more than it takes at once,
    /// one takes nothing.
    #[track_caller]
    fn check(count: usize, helpers: usize) {
        const GONE: usize = 3;
        const MUCH: usize = 5;
        const FULL: usize = 7;
        let (near, mut far) = pairs(count);
        let bytes = |index: usize| match index {
            MUCH => vec![b'x'; 4 << 20],
            _ => format!("for client {index}").into_bytes(),
        };
        let bytes: Vec<Vec<u8>> = (0..count).map(bytes).collect();
        while let Sent::Bytes(_) = near[FULL].send(&[0; 1 << 10]) {}
        drop(far.remove(GONE));
        fn offer(index: usize, bytes: &[u8]) -> Offer<'_> {
            match index % 2 {
                0 => Offer::Whole(std::io::IoSlice::new(bytes)),
                _ => Offer::of(bytes.chunks(1 << 19), usize::MAX),
            }
        }
        let output = |(index, bytes)| {
            let id = ConnectionId(index as u32);
            Output { index, id, socket: &near[index], offer: offer(index, bytes) }
        };
        let outputs: Vec<Output<'_>> =
            bytes.iter().map(Vec::as_slice).enumerate().map(output).collect();
        let mut looks = 0;
        let mut done = send_all(&outputs, helpers, |_| looks += 1);
        done.sort_by_key(|done| done.index);
        assert_eq!(done.len(), count);
        assert!(helpers > 0 || looks == count.div_ceil(super::STRIDE));
        for (index, Done { id, offered, sent, .. }) in done.iter().enumerate() {
            assert_eq!((id.0 as usize, *offered), (index, bytes[index].len()));
            match index {
                GONE => assert_eq!(*sent, Sent::Ended),
                FULL => assert_eq!(*sent, Sent::Full),
                MUCH => assert!(matches!(sent, Sent::Bytes(1..) if *sent != Sent::Bytes(*offered))),
                _ => assert_eq!(*sent, Sent::Bytes(*offered)),
            }
        }
        drop(near);
        for (index, far) in (0..count).filter(|it| *it != GONE).zip(&mut far) {
            let mut got = Vec::new();
            far.read_to_end(&mut got).unwrap();
            let Sent::Bytes(taken) = done[index].sent else { continue };
            assert_eq!(got, bytes[index][..taken], "client {index}");
        }
    }

    #[test]
    fn each_is_sent_its_own_bytes_once() {
        for helpers in [0, 1, 3] {
            check(8, helpers);
            check(301, helpers);
        }
    }
}
