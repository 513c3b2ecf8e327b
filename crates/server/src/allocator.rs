//! The program's allocator: mimalloc with a reserve for the time when the system refuses memory, so that the
//! broker can refuse what its clients want instead of ending.
//!
//! Where the system refuses memory (`ulimit -v` and `-d`, `LimitAS=`, strict overcommit), the standard
//! library ends the process. Here the reserve serves what the broker needs until its shards see
//! [`is_exhausted`] and take nothing more. It is a part of the addresses that nothing else is allocated in,
//! so it is whole again once what was allocated there is freed, however the rest is fragmented. The thread
//! of `memory.rs` asks whether there is memory again. Allocations of more than [`SERVED_MAX`] do not use it:
//! those that can be that large are made with an answer for a refusal. A second reserve is for the check of
//! a password, which needs one large block.

use libmimalloc_sys::{
    mi_collect, mi_free, mi_heap_collect, mi_heap_malloc, mi_heap_malloc_aligned,
    mi_heap_new_in_arena, mi_heap_realloc_aligned, mi_heap_t, mi_heap_zalloc_aligned, mi_malloc,
    mi_option_set, mi_option_t, mi_reserve_os_memory_ex,
};
use mimalloc::MiMalloc;
use rustix::process::{Resource, getrlimit};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ffi::{c_long, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Duration;

/// The addresses of a reserve, the least that mimalloc can keep apart. They take no memory of the machine
/// until they are used.
const RESERVE: usize = 32 << 20;
/// The largest allocation that the reserve is used for; it serves some of them.
const SERVED_MAX: usize = 8 << 20;
/// The largest that the reserve of passwords is used for; it serves one.
const PASSWORD_MAX: usize = 20 << 20;
/// What must be free besides the reserve before there is memory again: as many blocks as large as what
/// mimalloc takes for the blocks of one size.
const ROOM_BLOCKS: usize = 4;
const ROOM_BLOCK: usize = 4 << 20;
/// How often an allocation is tried again for which the reserve has no room, and how long it waits each time:
/// other threads may free memory meanwhile.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// What allocates in each reserve; null where there is none, since no broker runs in this process.
static RESERVED: AtomicPtr<mi_heap_t> = AtomicPtr::new(ptr::null_mut());
static FOR_PASSWORDS: AtomicPtr<mi_heap_t> = AtomicPtr::new(ptr::null_mut());
/// The reserve is in use.
static IS_EXHAUSTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// This thread may use the reserve of passwords now.
    static CHECKS_PASSWORD: Cell<bool> = const { Cell::new(false) };
}

/// What the program allocates with.
#[derive(Debug)]
pub struct Allocator;

#[expect(unsafe_code, reason = "this is what an allocator is")]
// SAFETY: everything is done by mimalloc, which is an allocator; what is done again has changed nothing
// before, since it returned null. mimalloc frees and reallocates what it allocated in any of its heaps.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = unsafe { MiMalloc.alloc(layout) };
        if !block.is_null() {
            return block;
        }
        let (size, align) = (layout.size(), layout.align());
        let ordinary = || unsafe { MiMalloc.alloc(layout) };
        refused(size, ordinary, |heap| unsafe { mi_heap_malloc_aligned(heap, size, align) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let block = unsafe { MiMalloc.alloc_zeroed(layout) };
        if !block.is_null() {
            return block;
        }
        let (size, align) = (layout.size(), layout.align());
        let ordinary = || unsafe { MiMalloc.alloc_zeroed(layout) };
        refused(size, ordinary, |heap| unsafe { mi_heap_zalloc_aligned(heap, size, align) })
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let larger = unsafe { MiMalloc.realloc(block, layout, size) };
        if !larger.is_null() {
            return larger;
        }
        let ordinary = || unsafe { MiMalloc.realloc(block, layout, size) };
        let align = layout.align();
        refused(size, ordinary, |heap| unsafe {
            mi_heap_realloc_aligned(heap, block.cast(), size, align)
        })
    }
}

/// Memory is refused: has it from a reserve, else waits for it.
#[cold]
fn refused(
    bytes: usize,
    ordinary: impl Fn() -> *mut u8,
    reserved: impl Fn(*mut mi_heap_t) -> *mut c_void,
) -> *mut u8 {
    if bytes > SERVED_MAX {
        let may = bytes <= PASSWORD_MAX && CHECKS_PASSWORD.try_with(Cell::get).unwrap_or(false);
        let heap = FOR_PASSWORDS.load(Ordering::Acquire);
        return if may && !heap.is_null() { reserved(heap).cast() } else { ptr::null_mut() };
    }
    let heap = RESERVED.load(Ordering::Acquire);
    if heap.is_null() {
        return ptr::null_mut();
    }
    IS_EXHAUSTED.store(true, Ordering::Release);
    for _ in 0..TRIES {
        let block = reserved(heap);
        if !block.is_null() {
            return block.cast();
        }
        std::thread::sleep(PAUSE);
        let block = ordinary();
        if !block.is_null() {
            return block;
        }
    }
    ptr::null_mut()
}

/// Whether the system refuses memory: the reserve is in use.
#[must_use]
pub fn is_exhausted() -> bool {
    IS_EXHAUSTED.load(Ordering::Relaxed)
}

/// Has what runs allocate a large block in the reserve of passwords, where the system refuses it.
pub(crate) fn with_reserve_of_passwords<T>(run: impl FnOnce() -> T) -> T {
    CHECKS_PASSWORD.set(true);
    let result = run();
    CHECKS_PASSWORD.set(false);
    result
}

/// Makes the reserves, at the start. False: there is no memory for them.
pub(crate) fn make_reserves() -> bool {
    let (Some(reserved), Some(for_passwords)) = (reserve(SERVED_MAX), reserve(PASSWORD_MAX)) else {
        return false;
    };
    RESERVED.store(reserved, Ordering::Release);
    FOR_PASSWORDS.store(for_passwords, Ordering::Release);
    true
}

/// A reserve that has room for a block of `most` bytes.
#[expect(unsafe_code, reason = "the allocator's interface is one of C")]
fn reserve(most: usize) -> Option<*mut mi_heap_t> {
    let (is_committed, has_large_pages, is_exclusive) = (true, false, true);
    let mut arena = ptr::null_mut();
    // SAFETY: the pointer is to a variable, what is allocated is freed once, and null may be freed.
    unsafe {
        if mi_reserve_os_memory_ex(
            RESERVE,
            is_committed,
            has_large_pages,
            is_exclusive,
            &raw mut arena,
        ) != 0
        {
            return None;
        }
        let heap = mi_heap_new_in_arena(arena);
        if heap.is_null() {
            return None;
        }
        // Also allocates what mimalloc notes about these addresses elsewhere.
        let blocks: Vec<_> = (0..RESERVE / most).map(|_| mi_heap_malloc(heap, most)).collect();
        let has_room = blocks.iter().any(|block| !block.is_null());
        blocks.into_iter().for_each(|block| mi_free(block));
        has_room.then_some(heap)
    }
}

/// Has this thread, which begins, able to use the reserve: mimalloc notes something for each that does.
#[expect(unsafe_code, reason = "the allocator's interface is one of C")]
pub(crate) fn prepare_thread() {
    let heap = RESERVED.load(Ordering::Acquire);
    if !heap.is_null() {
        // SAFETY: the heap is never deleted; what is allocated is freed once, and null may be freed.
        unsafe { mi_free(mi_heap_malloc(heap, 1)) }
    }
}

/// Ends the exhaustion if there is memory again.
pub(crate) fn has_recovered() -> bool {
    let has_recovered = has_room();
    if has_recovered {
        IS_EXHAUSTED.store(false, Ordering::Release);
    }
    has_recovered
}

/// Whether there is memory, and the reserve could serve whatever it may be asked for.
#[expect(unsafe_code, reason = "the allocator's interface is one of C")]
fn has_room() -> bool {
    let heap = RESERVED.load(Ordering::Acquire);
    let mut room = [ptr::null_mut(); ROOM_BLOCKS];
    // SAFETY: the heap is never deleted; what is allocated is freed once, and null may be freed.
    unsafe {
        room.fill_with(|| mi_malloc(ROOM_BLOCK));
        let reserved = mi_heap_malloc(heap, SERVED_MAX);
        let has_room = !reserved.is_null() && room.iter().all(|block| !block.is_null());
        mi_free(reserved);
        room.iter().for_each(|block| mi_free(*block));
        has_room
    }
}

/// Has the allocator give back what this thread has freed, and what all threads have freed that is on no
/// thread's lists.
#[expect(unsafe_code, reason = "the allocator's interface is one of C")]
pub(crate) fn give_back() {
    // SAFETY: both may be called on any thread at any time, and do nothing where another allocator is in use;
    // the heap is never deleted.
    unsafe {
        mi_collect(true);
        if is_exhausted() {
            mi_heap_collect(RESERVED.load(Ordering::Acquire), true);
        }
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
