//! A client that does not settle a delivery in time, on any shard: its channel is closed, and it goes on with
//! another.

use super::host::Host;
use angarium_protocol::amqp091::codec::table::put_table;
use angarium_protocol::amqp091::codec::wire::Reader;
use angarium_protocol::amqp091::codec::{Method, Table};

/// A client's place: its shard, of how many.
const PLACES: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 2)];

fn consume(host: &mut Host, client: usize, timeout_ms: i64) {
    let mut arguments = Vec::new();
    put_table(&mut arguments, |table| table.int("x-consumer-timeout", timeout_ms));
    let method = Method::BasicConsume {
        ticket: 0,
        queue: "q",
        consumer_tag: "c",
        no_local: false,
        no_ack: false,
        exclusive: false,
        no_wait: false,
        arguments: Table::read(&mut Reader::new(&arguments)).expect("it was written just now"),
    };
    host.send(client, 1, &method);
    host.settle_down();
}

#[test]
fn a_channel_that_settles_too_late_is_closed_with_a_reason_on_any_shard() {
    for (shard, shards) in PLACES {
        let mut host = Host::new(shards);
        let client = host.client_on(shard);
        host.declare(client, "q");
        host.publish(client, "q", b"1", false);
        host.transcript(client);
        consume(&mut host, client, 300);
        let heard = host.transcript(client);
        assert!(heard.iter().any(|method| method.contains("BasicDeliver")), "{heard:?}");
        host.pass(1000);
        // What comes late is ignored, as all is on a closed channel.
        host.ack(client, 1);
        host.publish(client, "q", b"late", false);
        host.settle_down();
        let heard = host.transcript(client);
        assert!(
            heard.len() == 1
                && heard[0].contains("ChannelClose { reply_code: 406")
                && heard[0].contains("delivery acknowledgement on channel 1 timed out.")
                && heard[0].contains("class_id: 0, method_id: 0"),
            "{shard} of {shards}: {heard:?}"
        );
        host.send(client, 1, &Method::ChannelCloseOk {});
        host.send(client, 1, &Method::ChannelOpen { out_of_band: "" });
        host.get(client, "q", 2);
        let heard = host.transcript(client);
        assert!(
            heard[1].contains("BasicGetOk") && heard[1].contains("redelivered: true"),
            "{heard:?}"
        );
        assert!(heard[2].contains("BasicGetEmpty"), "{heard:?}");
    }
}
