//! Retained messages, published and asked for on any shard, over crashes and ends.

use super::host::Host;
use angarium_protocol::Protocol;
use angarium_protocol::mqtt::codec::{
    Ack, Connect, FilterOptions, Packet, Properties, Publish, Qos, Subscribe, Version,
};
use angarium_protocol::mqtt::frame::{Frame, PacketType};

const VERSION: Version = Version::V5;

/// A broker, and clients of MQTT on any shard.
struct Clients {
    host: Host,
    names: usize,
    packets: u16,
}

impl Clients {
    fn new(shards: usize) -> Clients {
        Clients { host: Host::new(shards), names: 0, packets: 0 }
    }

    fn connect(&mut self, shard: usize) -> usize {
        self.names += 1;
        let name = format!("client-{}", self.names);
        let shard = shard % self.host.nodes.len();
        let client = self.host.connect_by(shard, Protocol::Mqtt);
        let connect = Connect {
            version: VERSION,
            clean_start: true,
            keep_alive: 0,
            properties: Properties::NONE,
            client_id: &name,
            will: None,
            user_name: Some("user"),
            password: Some(b"secret"),
        };
        self.say(client, &Packet::Connect(Box::new(connect)));
        self.host.taken(client);
        client
    }

    fn say(&mut self, client: usize, packet: &Packet<'_>) {
        let mut bytes = Vec::new();
        packet.write(VERSION, &mut bytes);
        self.host.send_bytes(client, &bytes);
        self.host.settle_down();
    }

    /// Publishes what is retained; says whether it was acknowledged, for which QoS 0 counts as well.
    fn retain(&mut self, client: usize, topic: &str, payload: &str, qos: u8) -> bool {
        self.packets += u16::from(qos > 0);
        let packet_id = if qos > 0 { self.packets } else { 0 };
        let publish = Publish { packet_id, ..publish(topic, payload, qos) };
        self.say(client, &Packet::Publish(publish));
        let answer = self.host.taken(client);
        qos == 0 || answer.first().is_some_and(|octet| *octet == 0x40 || *octet == 0x50)
    }

    /// Subscribes, and returns what came, acknowledged, in the order of topics.
    fn subscribe(&mut self, client: usize, filter: &str, qos: u8) -> Vec<String> {
        let options = FilterOptions { qos: Qos::of(qos).unwrap(), ..FilterOptions::default() };
        let filters = vec![(filter, options)];
        let subscribe = Subscribe { packet_id: 1, properties: Properties::NONE, filters };
        self.say(client, &Packet::Subscribe(subscribe));
        let mut came = Vec::new();
        loop {
            let output = self.host.taken(client);
            let acks = read(&output, &mut came);
            if output.is_empty() {
                break;
            }
            for ack in acks {
                self.say(client, &Packet::Ack(ack));
            }
            self.host.settle_down();
        }
        came.sort();
        came
    }
}

fn publish<'a>(topic: &'a str, payload: &'a str, qos: u8) -> Publish<'a> {
    Publish {
        dup: false,
        qos: Qos::of(qos).unwrap(),
        retain: true,
        topic: topic.as_bytes(),
        packet_id: 0,
        properties: Properties::NONE,
        payload: payload.as_bytes(),
    }
}

/// Adds the messages among what a client got; returns its answers.
fn read(mut output: &[u8], came: &mut Vec<String>) -> Vec<Ack<'static>> {
    let mut answers = Vec::new();
    while let Some((frame, used)) = Frame::read(output, usize::MAX).unwrap() {
        output = &output[used..];
        match Packet::decode(&frame, VERSION).unwrap() {
            Packet::Publish(publish) => {
                assert!(publish.retain);
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                came.push(format!("{} {}", text(publish.topic), text(publish.payload)));
                let kind = match publish.qos {
                    Qos::AtMostOnce => continue,
                    Qos::AtLeastOnce => PacketType::Puback,
                    Qos::ExactlyOnce => PacketType::Pubrec,
                };
                answers.push(Ack::plain(kind, publish.packet_id));
            }
            Packet::Ack(ack) if ack.packet_type == PacketType::Pubrel => {
                answers.push(Ack::plain(PacketType::Pubcomp, ack.packet_id));
            }
            _ => {}
        }
    }
    answers
}

#[test]
fn they_are_the_same_on_every_shard_and_after_every_end() {
    for shards in [1, 3] {
        let mut all = Clients::new(shards);
        let publisher = all.connect(1);
        for (topic, qos) in [("a/0", 0), ("a/1", 1), ("a/2", 2), ("b", 1)] {
            assert!(
                all.retain(publisher, topic, "old", qos)
                    && all.retain(publisher, topic, "new", qos)
            );
        }
        assert!(all.retain(publisher, "b", "", 1));
        for end in [None, Some(Host::crash as fn(&mut Host)), Some(Host::close), Some(Host::crash)]
        {
            if let Some(end) = end {
                end(&mut all.host);
            }
            for (shard, qos) in [(0, 0), (1, 1), (2, 2)] {
                let client = all.connect(shard);
                let came = all.subscribe(client, "#", qos);
                assert_eq!(came, ["a/0 new", "a/1 new", "a/2 new"], "{shards} shards, QoS {qos}");
            }
        }
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_crash() {
    for shards in [1, 2] {
        let mut all = Clients::new(shards);
        let publisher = all.connect(1);
        assert!(all.retain(publisher, "a", "old", 1));
        all.host.holds_jobs = true;
        assert!(!all.retain(publisher, "a", "new", 1), "it is not flushed");
        all.host.crash();
        all.host.holds_jobs = false;
        let client = all.connect(1);
        assert_eq!(all.subscribe(client, "a", 0), ["a old"]);
    }
}

#[test]
fn many_reach_who_subscribes_to_all_of_them() {
    const COUNT: usize = 2_000;
    for (shards, qos) in [(1, 0), (2, 0), (1, 1), (2, 1)] {
        let mut all = Clients::new(shards);
        let publisher = all.connect(1);
        let body = "x".repeat(200);
        let mut bytes = Vec::new();
        for at in 0..COUNT {
            let topic = format!("n/{at:05}");
            Packet::Publish(publish(&topic, &body, 0)).write(VERSION, &mut bytes);
        }
        all.host.send_bytes(publisher, &bytes);
        all.host.settle_down();
        let client = all.connect(1);
        assert_eq!(all.subscribe(client, "n/#", qos).len(), COUNT, "{shards} shards, QoS {qos}");
    }
}
