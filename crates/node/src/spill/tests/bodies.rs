//! Whether those who read one message from the log have a copy each.

use super::*;

/// Two consumers read a message of `bytes` bytes, in memory or on the disk: whether they share its memory.
#[track_caller]
fn check_shared(bytes: usize, is_on_disk: bool, expected: bool) {
    let options = SpillOptions { loaded_max: 1, ..SpillOptions::default() };
    let mut effects = TestHost::of(&options);
    assert_eq!(effects.store("ab", bytes), "ab");
    for _ in 0..5 * usize::from(is_on_disk) {
        effects.store("c", 900_000);
        effects.work();
    }
    let mut place = |name| {
        let number = effects.slow_consumers[&name];
        if is_on_disk && name == 'a' {
            assert!(matches!(effects.spill.next(number), Err(NoMessage::Waits)));
            effects.work();
        }
        match effects.spill.next(number) {
            Ok(delivery) => delivery.message.shared.map(|body| body.as_ptr()),
            other => panic!("{other:?}"),
        }
    };
    let [one, other] = ['a', 'b'].map(&mut place);
    assert_eq!(one.is_some() && one == other, expected, "{bytes}, {is_on_disk}");
}

#[test]
fn large_bodies_are_shared_by_those_who_read_them() {
    for is_on_disk in [false, true] {
        check_shared(3 << 20, is_on_disk, true);
        check_shared(10_000, is_on_disk, false);
    }
    check_shared(700_000, true, true);
}
