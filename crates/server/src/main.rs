//! The program: everything it does is in the library.

use angarium_server::allocator::{self, Allocator};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The C library calls what is here before anything is allocated.
#[expect(unsafe_code, reason = "the linker is told where this belongs")]
#[used]
// SAFETY: the section holds addresses of functions without parameters, and this is one.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = allocator::before_main;

fn main() -> ExitCode {
    angarium_server::commands::run(std::env::args_os())
}
