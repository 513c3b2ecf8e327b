//! A full disk: publishes are refused, consumers go on, and everything works again when there is space.
//! Needs the right to mount a small file system; says so where it is missing.

use crate::broker::Broker;
use crate::folder;
use crate::history::{Id, body, identify};
use crate::wire::{Client, Event};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const DISK_BYTES: u64 = 512 << 20;
const QUEUE: &str = "q";
const PATIENCE: Duration = Duration::from_secs(30);

/// A small file system in memory; unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path) -> Option<Disk> {
        let size = format!("size={DISK_BYTES}");
        let mut mount = Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        mount.is_ok_and(|output| output.status.success()).then(|| Disk(at.to_path_buf()))
    }

    /// Fills the disk except for `spare` bytes.
    fn fill(&self, spare: u64) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = File::create(&path).expect("the small disk takes a file");
        let block = vec![1; 64 << 10];
        while file.write_all(&block).is_ok() {}
        let size = file.metadata().expect("a file has a size").len();
        file.set_len(size.saturating_sub(spare)).expect("a file can be shortened");
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: the broker may still be about to end.
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// A producer that remembers what was confirmed.
struct Producer {
    client: Client,
    sent: u64,
    first: u64,
    confirmed: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    blocked: bool,
}

impl Producer {
    fn new(broker: &Broker, first: u64) -> Producer {
        let mut client = Client::connect(broker.address).expect("the broker listens");
        client.select_confirms().expect("confirms are offered");
        let (confirmed, refused) = (BTreeSet::new(), BTreeSet::new());
        Producer { client, sent: first, first, confirmed, refused, blocked: false }
    }

    fn publish(&mut self) {
        let mut bytes = body((0, self.sent));
        bytes.resize(bytes.len() + (32 << 10), 7);
        self.client.publish("", QUEUE, &bytes);
        self.sent += 1;
    }

    fn open(&self) -> u64 {
        self.sent - self.first - (self.confirmed.len() + self.refused.len()) as u64
    }

    /// Takes in what the broker says, until it is silent.
    fn listen(&mut self, silence: Duration) {
        let event = self.client.next_within(silence).expect("the connection stays open");
        match event {
            Some(Event::Confirm { tag, multiple, positive }) => {
                let last = self.first + tag - 1;
                let from = if multiple { self.first } else { last };
                for number in from..=last {
                    if self.confirmed.contains(&number) || self.refused.contains(&number) {
                        continue;
                    }
                    let set = if positive { &mut self.confirmed } else { &mut self.refused };
                    set.insert(number);
                }
            }
            Some(Event::Blocked(why)) => {
                assert!(!why.is_empty(), "blocked without a reason");
                self.blocked = true;
            }
            Some(Event::Unblocked) => self.blocked = false,
            Some(other) => panic!("unexpected: {other:?}"),
            None => {}
        }
    }
}

fn id_of(bytes: &[u8]) -> Id {
    identify(&bytes[..bytes.len() - (32 << 10)]).expect("what was published comes back whole")
}

/// Takes and acknowledges everything that is ready.
fn take_all(broker: &Broker) -> BTreeSet<u64> {
    let mut client = Client::connect(broker.address).expect("consumers are served");
    let mut found = BTreeSet::new();
    while let Some(Event::Delivery { tag, body, .. }) = client.get(QUEUE).expect("get is served") {
        found.insert(id_of(&body).1);
        client.ack(tag, false);
    }
    client.declare_queue(QUEUE).expect("the acknowledgements are taken");
    found
}

#[test]
#[ignore = "slow: cargo xtask test --only crash"]
fn a_full_disk_loses_nothing_and_passes() {
    let folder = folder();
    let Some(disk) = Disk::mount(folder.path()) else {
        println!("skip: mounting a small file system needs root");
        return;
    };
    let mut broker = Broker::start(&disk.0.join("data"));
    let mut producer = Producer::new(&broker, 0);
    producer.client.declare_queue(QUEUE).expect("the queue can be declared");
    for _ in 0..100 {
        producer.publish();
    }
    wait(&mut producer, "the first confirms", |producer| producer.confirmed.len() == 100);
    let filler = disk.fill(1 << 20);
    let begun = Instant::now();
    while !producer.blocked && producer.refused.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "a full disk was never noticed");
        if producer.open() < 50 {
            producer.publish();
        }
        producer.listen(Duration::from_millis(1));
    }
    // Consumers are served meanwhile.
    let mut got = take_all(&broker);
    assert!(got.len() >= 100, "only {} messages while the disk is full", got.len());
    std::fs::remove_file(filler).expect("the filler can be removed");
    wait(&mut producer, "the end of the blocking", |producer| !producer.blocked);
    let mut second = Producer::new(&broker, producer.sent);
    let begun = Instant::now();
    while second.confirmed.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "no confirm after there is space again");
        if second.open() == 0 {
            second.publish();
        }
        second.listen(Duration::from_millis(100));
    }
    broker.kill_and_restart();
    got.extend(take_all(&broker));
    let confirmed: BTreeSet<u64> = &producer.confirmed | &second.confirmed;
    let lost: Vec<&u64> = confirmed.difference(&got).collect();
    assert!(lost.is_empty(), "confirmed and lost: {lost:?}");
    println!("{} confirmed, {} refused, none lost", confirmed.len(), producer.refused.len());
}

fn wait(producer: &mut Producer, what: &str, until: impl Fn(&Producer) -> bool) {
    let begun = Instant::now();
    while !until(producer) {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        producer.listen(Duration::from_millis(10));
    }
}
