//! The program's allocator: mimalloc with a reserve for the time when the system refuses memory, so that the
//! broker can refuse what its clients want instead of ending.
//!
//! Where the system refuses memory (`ulimit -v` and `-d`, `LimitAS=`, strict overcommit), the standard
//! library ends the process. Here a part of the reserve is freed first, which serves what the broker needs
//! until its shards see [`is_exhausted`] and take nothing more. The thread of `memory.rs` completes the
//! reserve as soon as there is memory for it. Allocations of more than [`SERVED_MAX`] do not use it: those
//! that can be that large are made with an answer for a refusal.

use crate::threads;
use libmimalloc_sys::{mi_free, mi_malloc, mi_option_set, mi_option_t};
use mimalloc::MiMalloc;
use rustix::process::{Resource, getrlimit};
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_long, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Duration;

/// The blocks of the reserve, and the bytes of each. Nothing is in them, so they take addresses and no memory
/// of the machine.
const BLOCKS: usize = 4;
const BLOCK: usize = 16 << 20;
/// The largest allocation that the reserve is used for.
const SERVED_MAX: usize = BLOCK / 2;
/// How often an allocation is tried again that is refused though the reserve is used, and how long it waits
/// each time: other threads may free memory meanwhile.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// The blocks; null where one is used.
static RESERVED: [AtomicPtr<c_void>; BLOCKS] = [const { AtomicPtr::new(ptr::null_mut()) }; BLOCKS];
/// There is a reserve in this process: a broker runs.
static IS_GUARDED: AtomicBool = AtomicBool::new(false);
/// Some of the reserve is used.
static IS_EXHAUSTED: AtomicBool = AtomicBool::new(false);

/// What the program allocates with.
#[derive(Debug)]
pub struct Allocator;

#[expect(unsafe_code, reason = "this is what an allocator is")]
// SAFETY: everything is done by mimalloc, which is an allocator; what is done again has changed nothing
// before, since it returned null.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let allocate = || unsafe { MiMalloc.alloc(layout) };
        let block = allocate();
        if block.is_null() { refused(layout.size(), allocate) } else { block }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let allocate = || unsafe { MiMalloc.alloc_zeroed(layout) };
        let block = allocate();
        if block.is_null() { refused(layout.size(), allocate) } else { block }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let allocate = || unsafe { MiMalloc.realloc(block, layout, size) };
        let block = allocate();
        if block.is_null() { refused(size, allocate) } else { block }
    }
}

/// Memory is refused: has it from the reserve.
#[cold]
fn refused(bytes: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    if bytes > SERVED_MAX || !IS_GUARDED.load(Ordering::Relaxed) {
        return ptr::null_mut();
    }
    for _ in 0..TRIES {
        free_one();
        let block = allocate();
        if !block.is_null() {
            return block;
        }
        std::thread::sleep(PAUSE);
    }
    ptr::null_mut()
}

/// Frees a block of the reserve, if there is one left.
#[expect(unsafe_code, reason = "the allocator's interface is one of C")]
fn free_one() {
    let take = |place: &AtomicPtr<c_void>| place.swap(ptr::null_mut(), Ordering::AcqRel);
    if let Some(block) = RESERVED.iter().map(take).find(|block| !block.is_null()) {
        IS_EXHAUSTED.store(true, Ordering::Release);
        // SAFETY: mimalloc allocated it, and nobody else has taken it out.
        unsafe { mi_free(block) }
    }
}

/// Whether the system refuses memory: some of the reserve is used and not back.
#[must_use]
pub fn is_exhausted() -> bool {
    IS_EXHAUSTED.load(Ordering::Relaxed)
}

/// Completes the reserve, at the start and after it was used. False: there is no memory for it.
pub(crate) fn complete_reserve() -> bool {
    // Another thread needs some itself.
    if !has_room() {
        return false;
    }
    // A block whose thread has ended is free at once, whichever thread frees it.
    let is_done = threads::spawn("reserve", lay_in).is_ok_and(|thread| thread.join().is_ok());
    let is_whole = RESERVED.iter().all(|place| !place.load(Ordering::Acquire).is_null());
    if is_done && is_whole {
        IS_GUARDED.store(true, Ordering::Relaxed);
        IS_EXHAUSTED.store(false, Ordering::Release);
    }
    is_done && is_whole
}

/// Whether there is memory for one more block than is missing.
#[expect(unsafe_code, reason = "the allocator's interface is one of C")]
fn has_room() -> bool {
    let missing = RESERVED.iter().filter(|place| place.load(Ordering::Acquire).is_null()).count();
    let mut room = [ptr::null_mut(); BLOCKS + 1];
    let room = &mut room[..=missing];
    // SAFETY: what is allocated is freed once; null may be freed.
    unsafe {
        room.fill_with(|| mi_malloc(BLOCK));
        let has_room = room.iter().all(|block| !block.is_null());
        room.iter().for_each(|block| mi_free(*block));
        has_room
    }
}

#[expect(unsafe_code, reason = "the allocator's interface is one of C")]
fn lay_in() {
    for place in RESERVED.iter().filter(|place| place.load(Ordering::Acquire).is_null()) {
        // SAFETY: it takes no pointer.
        place.store(unsafe { mi_malloc(BLOCK) }, Ordering::Release);
    }
}

/// mimalloc's number for how much it asks the system for at once, in KiB, which the bindings do not have.
const ARENA_RESERVE: mi_option_t = 23;
/// The part of the addresses that it asks for at once where they are limited, and the least and most.
const ARENA_PART: u64 = 16;
const ARENA_LEAST: u64 = 32 << 20;
const ARENA_MOST: u64 = 1 << 30;

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the C library is asked")]
mod c_library {
    use std::ffi::c_int;

    const M_ARENA_MAX: c_int = -8;

    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }

    /// Has all threads share what the C library allocates from: it would reserve 64 MiB of addresses for
    /// each, and hardly uses them, since the program allocates elsewhere.
    pub(super) fn share() {
        // SAFETY: it takes no pointer, and no other thread runs yet.
        unsafe { mallopt(M_ARENA_MAX, 1) };
    }
}

/// Prepares both allocators for a limit of addresses or data; runs before anything is allocated.
#[expect(unsafe_code, reason = "the allocator's interface is one of C")]
pub extern "C" fn before_main() {
    #[cfg(target_env = "gnu")]
    c_library::share();
    let limits = [Resource::As, Resource::Data].map(|limit| getrlimit(limit).current);
    if let Some(most) = limits.into_iter().flatten().min() {
        // What mimalloc once has of the system it keeps, and nothing else can use it.
        let bytes = (most / ARENA_PART).clamp(ARENA_LEAST, ARENA_MOST);
        // SAFETY: it takes no pointer, and no other thread runs yet.
        unsafe { mi_option_set(ARENA_RESERVE, (bytes >> 10) as c_long) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "the allocator's interface is one of C")]
    fn the_number_is_that_of_the_option() {
        // SAFETY: it takes no pointer.
        let default = unsafe { libmimalloc_sys::mi_option_get(ARENA_RESERVE) };
        assert_eq!(default, (ARENA_MOST >> 10) as c_long);
    }
}
