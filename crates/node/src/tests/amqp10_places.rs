//! Links of one name that connections of one container attach at one moment, each on a shard of its own:
//! exactly one has it, and what is sent comes there.

use super::amqp10::{Client, Said};
use super::host::Host;
use angarium_protocol::amqp10::codec::{
    AnyTarget, Attach, Flow, Role, Source, Target, TerminusDurability, TerminusExpiryPolicy,
    write_frame,
};

/// The error of those that lose the link.
const STOLEN: &str = "amqp:link:stolen: ";
/// The handle of the link.
const LINK: u32 = 0;

/// What a link is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ToQueue,
    FromQueue,
    FromSubscription,
}

impl Kind {
    /// The bytes of an attach, and of credit for one message.
    fn attach(self) -> Vec<u8> {
        let target = Target { address: Some("q"), ..Target::default() };
        let source = Source { address: Some("q"), ..Source::default() };
        let (role, source, target) = match self {
            Kind::ToQueue => (Role::Sender, Source::default(), target),
            Kind::FromQueue => (Role::Receiver, source, Target::default()),
            Kind::FromSubscription => {
                let durable = TerminusDurability::UnsettledState;
                let expiry_policy = TerminusExpiryPolicy::Never;
                let address = Some("topic://t");
                let source = Source { address, durable, expiry_policy, ..source };
                (Role::Receiver, source, Target::default())
            }
        };
        let (source, target) = (Some(source), Some(AnyTarget::Target(target)));
        let initial_delivery_count = (role == Role::Sender).then_some(0);
        let attach =
            Attach { name: "link", handle: LINK, role, source, target, ..Attach::default() };
        let mut bytes = Vec::new();
        write_frame(&Attach { initial_delivery_count, ..attach }, 0, &[], &mut bytes);
        if role == Role::Receiver {
            let (handle, delivery_count, link_credit) = (Some(LINK), Some(0), Some(10));
            let flow = Flow { next_incoming_id: Some(0), incoming_window: 100, ..Flow::default() };
            let flow = Flow { outgoing_window: 100, handle, delivery_count, ..flow };
            write_frame(&Flow { link_credit, ..flow }, 0, &[], &mut bytes);
        }
        bytes
    }

    fn address(self) -> &'static str {
        if self == Kind::FromSubscription { "topic://t" } else { "q" }
    }
}

/// Whether a client that heard this has the link; who has it not was told why.
fn has_link(said: &[Said]) -> bool {
    let lost = said.iter().find_map(|said| match said {
        Said::Detached(LINK, why) => Some(why),
        _ => None,
    });
    assert!(lost.is_none_or(|why| why.starts_with(STOLEN)), "{said:?}");
    lost.is_none() && said.contains(&Said::Attached(LINK))
}

/// Clients on these shards attach one after the other, with that many turns between them.
fn check(kind: Kind, shards: &[usize], turns: usize) {
    let context = format!("{kind:?} {shards:?} {turns}");
    let mut host = Host::new(3);
    let clients: Vec<_> =
        shards.iter().map(|shard| Client::open_as(&mut host, *shard, "one")).collect();
    // What is asked of home is on its way from all shards.
    for client in &clients {
        host.send_bytes(client.number, &kind.attach());
        for _ in 0..turns {
            host.turn();
        }
    }
    host.settle_down();
    let mut has: Vec<_> = clients.iter().map(|client| has_link(&client.said(&mut host))).collect();
    assert_eq!(has.iter().filter(|has| **has).count(), 1, "{context}: {has:?}");
    let mut other = Client::open(&mut host, 0);
    other.sends_to(&mut host, 1, kind.address());
    other.publish(&mut host, 1, 1, 10);
    let came = |said: &[Said]| said.iter().filter(|it| matches!(it, Said::Delivered(_))).count();
    for (client, has) in clients.iter().zip(&mut has) {
        let expected = usize::from(*has && kind != Kind::ToQueue);
        assert_eq!(came(&client.said(&mut host)), expected, "{context}");
    }
    // One that comes later takes it over.
    let last = Client::open_as(&mut host, 1, "one");
    host.send_bytes(last.number, &kind.attach());
    let said = last.said(&mut host);
    assert!(has_link(&said), "{context}: {said:?}");
    // It gets what the one before has not settled.
    assert_eq!(came(&said), usize::from(kind != Kind::ToQueue), "{context}: {said:?}");
}

#[test]
fn of_links_that_are_attached_at_one_moment_on_several_shards_one_is_left() {
    for kind in [Kind::ToQueue, Kind::FromQueue, Kind::FromSubscription] {
        for shards in [&[0, 1][..], &[1, 0], &[1, 2], &[2, 1], &[1, 1], &[0, 1, 2], &[2, 1, 0]] {
            for turns in 0..5 {
                check(kind, shards, turns);
            }
        }
    }
}
