//! Drops values that take long to drop on another thread, where the host has one for that.

use std::sync::OnceLock;

/// Who takes it there.
static TAKES: OnceLock<fn(Box<dyn Send>)> = OnceLock::new();

/// Has what takes long to drop handed to `take`, to be dropped on another thread; the first such call counts.
/// Without it, it is dropped where it is.
pub fn drop_elsewhere_with(take: fn(Box<dyn Send>)) {
    let _ = TAKES.set(take);
}

/// Drops what takes long to drop.
pub fn drop_elsewhere(what: impl Send + 'static) {
    if let Some(take) = TAKES.get() {
        take(Box::new(what));
    }
}
