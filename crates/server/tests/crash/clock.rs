//! The wall clock is set while no broker runs: what is held back or expires does so when its time has passed,
//! neither early nor late. The clock itself is left alone: the file in which a broker leaves its time is what
//! a broker would have left whose wall clock was an hour ahead or behind.

use crate::broker::Broker;
use crate::folder;
use crate::wire::Client;
use angarium_journal::checksum;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const HOUR: u64 = 3_600_000_000;
/// Milliseconds that pass within the test, and that do not, unless the clock jumps.
const SHORT: u32 = 1_500;
const LONG: u32 = 1_800_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// Writes the file of a broker whose time is `time`.
fn leave_clock(data: &Path, time: u64, since_boot: u64, boot: &str) {
    let line = format!("{time} {since_boot} {boot}");
    let text = format!("{line} {:08x}\n", checksum(line.as_bytes()));
    fs::write(data.join("clock"), text).expect("the folder can be written to");
}

/// Has the file say that the machine was started again since.
fn reboot(data: &Path) {
    let text = fs::read_to_string(data.join("clock")).expect("a broker leaves its time");
    let mut words = text.split(' ');
    let mut number = || words.next().and_then(|word| word.parse().ok()).expect("a number");
    let (time, since_boot) = (number(), number());
    leave_clock(data, time, since_boot, "an-earlier-boot");
}

/// How many messages are in both queues: those that expire, and those whose delay is over.
fn counts(broker: &Broker) -> (u32, u32) {
    let mut client = Client::connect(broker.address).expect("the broker listens");
    let mut count = |queue| client.declare_queue(queue).expect("it is there");
    (count("expiring"), count("due"))
}

/// `is_behind`: the time of the first broker is an hour behind the wall clock, else ahead of it.
fn check(is_behind: bool, is_rebooted: bool) {
    let folder = folder();
    let data = folder.path();
    let micros = |time: Duration| u64::try_from(time.as_micros()).expect("a time of this century");
    let wall = micros(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970"));
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let uptime = fs::read_to_string("/proc/uptime").expect("Linux says how long it is up");
    let uptime: f64 = uptime.split(' ').next().and_then(|it| it.parse().ok()).expect("seconds");
    let time = if is_behind { wall - HOUR } else { wall + HOUR };
    leave_clock(data, time, micros(Duration::from_secs_f64(uptime)), boot.trim());
    let mut broker = Broker::start(data);
    let mut client = Client::connect(broker.address).expect("the broker listens");
    for queue in ["expiring", "due"] {
        client.declare_queue(queue).expect("queues can be declared");
    }
    client.declare_delaying("later").expect("exchanges can be declared");
    client.bind("due", "later").expect("it can be bound");
    client.select_transactions().expect("transactions are offered");
    // Lives and delays count from the send, however long the commit takes.
    let begun = Instant::now();
    for millis in [SHORT, LONG] {
        client.publish_expiring("expiring", millis);
        client.publish_delayed("later", millis);
    }
    client.commit().expect("it is stored");
    drop(client);
    broker.kill();
    if is_rebooted {
        reboot(data);
    }
    broker.restart();
    // A clock that was set forward cannot be told from a long pause of the machine.
    let jumps = is_behind && is_rebooted;
    let expected = if jumps { (0, 2) } else { (1, 1) };
    let what = format!("behind {is_behind}, rebooted {is_rebooted}");
    if !jumps && begun.elapsed() < Duration::from_millis(u64::from(SHORT) / 2) {
        assert_eq!(counts(&broker), (2, 0), "{what}, at the start");
    }
    while counts(&broker) != expected {
        assert!(begun.elapsed() < PATIENCE, "{what}: {:?} and not {expected:?}", counts(&broker));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(jumps || begun.elapsed() >= Duration::from_millis(SHORT.into()), "{what}: early");
}

#[test]
#[ignore = "slow: cargo xtask test --only crash"]
fn a_clock_that_is_set_between_two_brokers_holds_nothing_longer_and_expires_nothing_early() {
    std::thread::scope(|scope| {
        for (is_behind, is_rebooted) in [(false, false), (false, true), (true, false), (true, true)]
        {
            scope.spawn(move || check(is_behind, is_rebooted));
        }
    });
}
