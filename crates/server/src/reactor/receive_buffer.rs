//! How much the kernel takes in for a client before it is read: as it finds best, but at first no more
//! than one read takes from one on this machine. What has waited there for long has left the processor's
//! caches when it is read, and what is left of it after a read makes the next one small. Where others send
//! too, or messages are small, that counts for less than how often a client is woken to go on: it gets more.
//!
//! It only ever gets more: what has come under way to the room there was before would be dropped.

use super::socket::Socket;
use crate::reactor::read_budget::{READS_ALONE, SHARE_BYTES_MAX};

/// One read: the kernel doubles what it is told.
const LITTLE_BYTES: usize = SHARE_BYTES_MAX / 2;
/// More, about what the kernel finds over loopback where ten send as much as they can (0.4 to 1.3 MB): it
/// finds nothing itself once it has been told. It gives as much of this as `net.core.rmem_max` lets it.
const MUCH_BYTES: usize = 512 << 10;
/// So many reads in a row that were not of the largest kind, and it is more. One that is alone has had the
/// largest within half of them.
const READS_MAX: u8 = 2 * READS_ALONE;

/// The room of one client.
#[derive(Debug)]
pub(super) enum Room {
    /// As much as it ever gets.
    Settled,
    /// What one read takes, and how many reads in a row were smaller.
    Little { reads: u8 },
}

impl Room {
    /// Of a client that is on this machine or not.
    pub(super) fn new(socket: &Socket, is_local: bool) -> Room {
        if !is_local {
            return Room::Settled;
        }
        socket.limit_input(LITTLE_BYTES);
        Room::Little { reads: 0 }
    }

    /// The client is about to be read from, so many bytes at most.
    #[inline]
    pub(super) fn fit(&mut self, socket: &Socket, share_bytes: usize) {
        let Room::Little { reads } = self else { return };
        *reads = if share_bytes == SHARE_BYTES_MAX { 0 } else { *reads + 1 };
        if *reads == READS_MAX {
            socket.limit_input(MUCH_BYTES);
            *self = Room::Settled;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{READS_MAX, Room, SHARE_BYTES_MAX, Socket};
    use rustix::net::sockopt::socket_recv_buffer_size;
    use std::iter::repeat_n;
    use std::net::{TcpListener, TcpStream};

    /// What the kernel takes in after reads of so many bytes at most, and what it did before.
    fn room_after(is_local: bool, reads: impl IntoIterator<Item = usize>) -> [usize; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let before = socket_recv_buffer_size(&client).unwrap();
        let socket = Socket::new(client.into());
        let mut room = Room::new(&socket, is_local);
        reads.into_iter().for_each(|bytes| room.fit(&socket, bytes));
        [before, socket_recv_buffer_size(&socket).unwrap()]
    }

    const LARGE: usize = SHARE_BYTES_MAX;
    const USUAL: usize = 64 << 10;
    const FEW: usize = READS_MAX as usize - 1;

    #[test]
    fn one_that_sends_large_messages_alone_has_room_for_one_read() {
        let begins = repeat_n(USUAL, FEW).chain(repeat_n(LARGE, 100));
        assert_eq!(room_after(true, begins.clone())[1], SHARE_BYTES_MAX);
        // Others had a word in between.
        assert_eq!(room_after(true, begins.chain(repeat_n(USUAL, FEW)))[1], SHARE_BYTES_MAX);
    }

    #[test]
    fn who_has_company_has_more() {
        for alone in [0, 100] {
            let reads = repeat_n(LARGE, alone).chain(repeat_n(USUAL, FEW + 1));
            assert!(room_after(true, reads)[1] > SHARE_BYTES_MAX, "{alone}");
        }
    }

    #[test]
    fn one_far_away_has_what_the_kernel_finds() {
        for bytes in [USUAL, LARGE] {
            let [before, after] = room_after(false, repeat_n(bytes, 100));
            assert_eq!(before, after, "{bytes}");
        }
    }
}
