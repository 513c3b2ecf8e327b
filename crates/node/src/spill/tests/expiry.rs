//! Messages that live for a while.

use super::*;

#[test]
fn what_expires_on_the_disk_is_missed_and_the_rest_keeps_what_is_left() {
    let mut host = TestHost::new(1 << 20);
    host.spill.now = Time(1_000_000);
    for seconds in [1, 3] {
        host.ttl = Some(Duration::from_secs(seconds));
        host.store("a", 10);
    }
    host.spill.now = Time(2_500_000);
    let message = host.spill.next(host.slow_consumers[&'a']).unwrap().message;
    let left = Some(Duration::from_millis(1_500));
    assert_eq!((message.routing_key, message.priority, message.ttl), ("2", 7, left));
    host.work();
    assert_eq!(host.missed[&'a'], 1);
}
