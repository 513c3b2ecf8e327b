//! Sessions of MQTT while the broker is killed: what was acknowledged comes, with QoS 2 exactly once, in its
//! order and with the packet identifiers that it had.

use crate::broker::Broker;
use crate::mqtt_wire::{MqttClient, PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, Packet, Will};
use crate::random::Random;
use crate::{folder, seed};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROUNDS: u64 = 8;
/// Messages of a publisher that wait for the end of their handshake.
const WINDOW: usize = 40;
/// Times that clients which lack something come back.
const TRIES: usize = 20;
/// How long nothing must come before it counts as "does not come".
const SILENCE: Duration = Duration::from_millis(300);

/// A message whose handshake has not ended.
#[derive(Debug)]
struct Pending {
    packet: Packet,
    /// PUBREC has come: only PUBREL is sent again.
    released: bool,
}

/// A publisher of one quality of service, with what it knows over its connections.
#[derive(Debug)]
struct Publisher {
    qos: u8,
    /// Messages so far: each has the number of those before it as its payload.
    attempted: u64,
    pending: VecDeque<Pending>,
    resumes: bool,
}

impl Publisher {
    fn new(qos: u8) -> Publisher {
        Publisher { qos, attempted: 0, pending: VecDeque::new(), resumes: false }
    }

    fn topic(&self) -> String {
        format!("crash/{}", self.qos)
    }

    /// Publishes until the connection is lost, or ends all handshakes once nothing more shall begin.
    fn run(&mut self, address: SocketAddr, begins: &AtomicBool) -> io::Result<()> {
        let mut client = MqttClient::connect(address, &format!("publisher-{}", self.qos))?;
        assert!(client.resumed || !self.resumes, "a publisher's session is gone");
        self.resumes = true;
        for it in &mut self.pending {
            it.packet.duplicate = true;
            match it.released {
                true => client.answer(PUBREL, it.packet.id)?,
                false => client.publish(&format!("crash/{}", self.qos), &it.packet)?,
            }
        }
        loop {
            let more = begins.load(Ordering::SeqCst);
            while more && self.pending.len() < WINDOW {
                self.begin(&mut client)?;
            }
            if self.pending.is_empty() {
                return Ok(());
            }
            let answer = client.next()?;
            self.take(&mut client, &answer)?;
        }
    }

    fn begin(&mut self, client: &mut MqttClient) -> io::Result<()> {
        let (qos, number) = (self.qos, self.attempted);
        self.attempted += 1;
        let id = (number % 65_535) as u16 + 1;
        let payload = number.to_be_bytes().to_vec();
        let packet = Packet { kind: PUBLISH, qos, duplicate: false, id, payload };
        self.pending.push_back(Pending { packet: packet.clone(), released: false });
        client.publish(&self.topic(), &packet)
    }

    fn take(&mut self, client: &mut MqttClient, answer: &Packet) -> io::Result<()> {
        let at = self.pending.iter().position(|it| it.packet.id == answer.id);
        let at = at.unwrap_or_else(|| panic!("an answer to nothing: {answer:?}"));
        match (self.qos, answer.kind) {
            (1, PUBACK) | (2, PUBCOMP) => drop(self.pending.remove(at)),
            (2, PUBREC) => {
                self.pending[at].released = true;
                client.answer(PUBREL, answer.id)?;
            }
            _ => panic!("an answer that does not fit: {answer:?}"),
        }
        Ok(())
    }
}

/// A session with QoS 2, with what it knows over its connections.
#[derive(Debug, Default)]
struct Subscriber {
    name: String,
    /// The numbers that came, by quality of service, as often as they came.
    came: [Vec<u64>; 3],
    /// Identifiers of QoS 2 that are not released.
    held: BTreeSet<u16>,
    resumes: bool,
}

impl Subscriber {
    fn new(name: &str) -> Subscriber {
        Subscriber { name: name.to_owned(), ..Subscriber::default() }
    }

    /// Takes until the connection is lost, or nothing comes any more after the end.
    fn run(&mut self, address: SocketAddr, goes_on: &AtomicBool) -> io::Result<()> {
        let mut client = MqttClient::connect(address, &self.name)?;
        assert!(client.resumed || !self.resumes, "the subscriber's session is gone");
        if !self.resumes {
            client.subscribe("crash/#")?;
            self.resumes = true;
        }
        loop {
            let is_over = !goes_on.load(Ordering::SeqCst);
            match client.next_within(SILENCE)? {
                Some(packet) => self.take(&mut client, &packet)?,
                None if is_over => return Ok(()),
                None => {}
            }
        }
    }

    fn take(&mut self, client: &mut MqttClient, packet: &Packet) -> io::Result<()> {
        match (packet.kind, packet.qos) {
            (PUBLISH, 1) => {
                self.note(packet);
                client.answer(PUBACK, packet.id)
            }
            (PUBLISH, 2) => {
                if self.held.insert(packet.id) {
                    self.note(packet);
                } else {
                    assert!(packet.duplicate, "comes again without saying so: {packet:?}");
                }
                client.answer(PUBREC, packet.id)
            }
            (PUBREL, _) => {
                self.held.remove(&packet.id);
                client.answer(PUBCOMP, packet.id)
            }
            _ => panic!("came to the subscriber: {packet:?}"),
        }
    }

    fn note(&mut self, packet: &Packet) {
        let number = packet.payload.as_slice().try_into().expect("eight bytes were published");
        self.came[usize::from(packet.qos)].push(u64::from_be_bytes(number));
    }

    /// Everything that was published has come: with QoS 2 once and in its order, with QoS 1 in the order of
    /// the first copies.
    fn check(&self, publishers: &[Publisher]) {
        for publisher in publishers {
            let came = &self.came[usize::from(publisher.qos)];
            let mut seen = BTreeSet::new();
            let first: Vec<u64> =
                came.iter().copied().filter(|number| seen.insert(*number)).collect();
            let all: Vec<u64> = (0..publisher.attempted).collect();
            let wrong = first.iter().zip(&all).find(|(first, all)| first != all);
            assert_eq!(wrong, None, "QoS {}: what came, and what should have", publisher.qos);
            assert_eq!(first.len(), all.len(), "QoS {}: lost", publisher.qos);
            if publisher.qos == 2 {
                assert_eq!(came.len(), all.len(), "QoS 2: came twice");
            }
        }
    }
}

#[test]
#[ignore = "slow: cargo xtask test --only crash"]
fn mqtt_sessions_survive_kill_9_and_qos_2_comes_once() {
    let data = folder();
    let mut random = Random::new(seed());
    let mut broker = Broker::start(data.path());
    let mut publishers = [Publisher::new(1), Publisher::new(2)];
    let mut subscribers = [Subscriber::new("subscriber")];
    subscribe(&broker, &mut subscribers);
    for _ in 0..ROUNDS {
        let killed_after = Duration::from_micros(100_000 + random.below(400_000));
        play(&mut broker, &mut publishers, &mut subscribers, Some(killed_after));
    }
    play(&mut broker, &mut publishers, &mut subscribers, None);
    subscribers[0].check(&publishers);
    let attempted: u64 = publishers.iter().map(|it| it.attempted).sum();
    assert!(attempted > 10 * ROUNDS, "there was hardly any load");
}

fn subscribe(broker: &Broker, subscribers: &mut [Subscriber]) {
    let goes_on = AtomicBool::new(false);
    for subscriber in subscribers {
        subscriber.run(broker.mqtt, &goes_on).expect("it can subscribe");
    }
}

/// Has all of them at work until the broker is killed, which starts again then, or until nothing is left to
/// be done.
fn play(
    broker: &mut Broker,
    publishers: &mut [Publisher],
    subscribers: &mut [Subscriber],
    killed_after: Option<Duration>,
) {
    let (begins, goes_on) = (AtomicBool::new(killed_after.is_some()), AtomicBool::new(true));
    let count = |publishers: &[Publisher]| publishers.iter().map(|it| it.attempted).sum::<u64>();
    let before = count(publishers);
    std::thread::scope(|scope| {
        let (address, begins, goes_on) = (broker.mqtt, &begins, &goes_on);
        let publish = |it| scope.spawn(move || Publisher::run(it, address, begins));
        let publishing: Vec<_> = publishers.iter_mut().map(publish).collect();
        let take = |it| scope.spawn(move || Subscriber::run(it, address, goes_on));
        let taking: Vec<_> = subscribers.iter_mut().map(take).collect();
        if let Some(time) = killed_after {
            std::thread::sleep(time);
            broker.kill();
        }
        for publisher in publishing {
            let ended = publisher.join().expect("no promise to a publisher is broken");
            assert_eq!(ended.is_ok(), killed_after.is_none(), "{ended:?}");
        }
        goes_on.store(false, Ordering::SeqCst);
        for subscriber in taking {
            let ended = subscriber.join().expect("no promise to a subscriber is broken");
            assert_eq!(ended.is_ok(), killed_after.is_none(), "{ended:?}");
        }
    });
    if killed_after.is_some() {
        let (start, attempted) = (broker.restart(), count(publishers) - before);
        println!("{attempted} published, start in {} ms", start.as_millis());
    }
}

/// They share a log while they are away, and take what is in it while the broker is killed under them.
#[test]
#[ignore = "slow: cargo xtask test --only crash"]
fn sessions_that_were_away_get_all_once_and_in_order_after_kill_9() {
    let data = folder();
    let mut random = Random::new(seed());
    let mut broker = Broker::start(data.path());
    let mut publishers = [Publisher::new(1), Publisher::new(2)];
    let names = (0..20).map(|number| format!("away-{number}"));
    let mut subscribers: Vec<_> = names.map(|name| Subscriber::new(&name)).collect();
    subscribe(&broker, &mut subscribers);
    for _ in 0..3 {
        let killed_after = Duration::from_micros(50_000 + random.below(100_000));
        play(&mut broker, &mut publishers, &mut [], Some(killed_after));
    }
    play(&mut broker, &mut publishers, &mut [], None);
    for _ in 0..4 {
        let killed_after = Duration::from_micros(20_000 + random.below(100_000));
        play(&mut broker, &mut [], &mut subscribers, Some(killed_after));
    }
    let attempted: u64 = publishers.iter().map(|it| it.attempted).sum();
    let has_all = |it: &Subscriber| it.came.iter().map(Vec::len).sum::<usize>() as u64 >= attempted;
    // A machine that is busy may be silent for longer than its clients wait.
    for _ in 0..TRIES {
        play(&mut broker, &mut [], &mut subscribers, None);
        if subscribers.iter().all(has_all) {
            break;
        }
    }
    subscribers.iter().for_each(|subscriber| subscriber.check(&publishers));
    assert!(attempted > 100, "there was hardly any load");
}

/// Publishes these numbers with QoS 1, each of which is acknowledged.
fn publish(broker: &Broker, numbers: std::ops::Range<u64>) {
    let mut client = MqttClient::connect(broker.mqtt, "publisher").expect("it listens");
    for number in numbers {
        let (id, payload) = (number as u16 + 1, number.to_be_bytes().to_vec());
        let packet = Packet { kind: PUBLISH, qos: 1, duplicate: false, id, payload };
        client.publish("crash/1", &packet).expect("it is open");
        let answer = client.next().expect("it is answered");
        assert_eq!((answer.kind, answer.id), (PUBACK, id));
    }
}

#[test]
#[ignore = "slow: cargo xtask test --only crash"]
fn what_was_not_acknowledged_comes_again_as_it_was() {
    const COUNT: u64 = 50;
    let data = folder();
    let mut broker = Broker::start(data.path());
    let connect = |broker: &Broker, resumed: bool| {
        let client = MqttClient::connect(broker.mqtt, "subscriber").expect("it listens");
        assert_eq!(client.resumed, resumed);
        client
    };
    let take = |client: &mut MqttClient| -> Vec<Packet> {
        let take = |_| client.next().expect("all of them come");
        (0..COUNT).map(take).collect()
    };
    connect(&broker, false).subscribe("crash/#").expect("it is answered");
    publish(&broker, 0..COUNT);
    let mut first = take(&mut connect(&broker, true));
    assert!(first.iter().all(|packet| !packet.duplicate), "{first:?}");
    first.iter_mut().for_each(|packet| packet.duplicate = true);
    assert_eq!(take(&mut connect(&broker, true)), first, "after the connection was lost");
    broker.kill_and_restart();
    let mut client = connect(&broker, true);
    assert_eq!(take(&mut client), first, "after kill -9");
    for packet in &first {
        client.answer(PUBACK, packet.id).expect("it is open");
    }
    assert_eq!(client.next_within(SILENCE).expect("it is open"), None);
    drop(client);
    let mut again = connect(&broker, true);
    assert_eq!(again.next_within(SILENCE).expect("it is open"), None);
}

#[test]
#[ignore = "slow: cargo xtask test --only crash"]
fn a_will_that_waits_comes_after_kill_9() {
    let data = folder();
    let mut broker = Broker::start(data.path());
    let watch = |broker: &Broker| MqttClient::connect(broker.mqtt, "watcher").expect("it listens");
    watch(&broker).subscribe("wills/#").expect("it is answered");
    let will = |topic| Will { topic, delay_s: 1 };
    let lose = |broker: &Broker, name, topic| {
        MqttClient::connect_with(broker.mqtt, name, will(topic)).expect("it listens")
    };
    let lost = lose(&broker, "lost", "wills/lost");
    let back = lose(&broker, "back", "wills/back");
    broker.kill_and_restart();
    drop((lost, back));
    // Who is back in time is not gone.
    let _back = lose(&broker, "back", "wills/back");
    let mut watcher = watch(&broker);
    let packet = watcher.next().expect("the will comes");
    assert_eq!((packet.qos, packet.payload.as_slice()), (1, b"gone".as_slice()));
    assert_eq!(watcher.next_within(2 * SILENCE).expect("it is open"), None);
}
