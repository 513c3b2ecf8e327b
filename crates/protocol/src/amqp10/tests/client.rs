//! A peer of tests: sends frames, and compares those that it gets.

use super::show;
use crate::Peer;
use crate::amqp10::Settings;
use crate::amqp10::codec::{
    AnyTarget, Attach, Begin, DeliveryState, Detach, Disposition, Field, Flow, Open, Role,
    SaslInit, SaslPerformative, SectionKind, Source, Symbol, Target, Transfer, put_section,
    write_frame,
};
use crate::amqp10::frame::ProtocolHeader;
use crate::tests::host::TestHost;

/// A connection of a test, and the host with it.
pub(super) struct Client {
    pub(super) host: TestHost,
    pub(super) number: usize,
}

/// A message of one data section.
pub(super) fn data(body: &str) -> Vec<u8> {
    let mut message = Vec::new();
    put_section(&mut message, SectionKind::Data, &body.as_bytes());
    message
}

/// The bytes of a frame.
pub(crate) fn frame<'a>(channel: u16, performative: &impl Field<'a>, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_frame(performative, channel, payload, &mut bytes);
    bytes
}

/// The bytes of a login by SASL.
pub(crate) fn login(user: &str) -> Vec<u8> {
    let mut bytes = ProtocolHeader::Sasl.bytes().to_vec();
    let response = format!("\0{user}\0{user}");
    let initial_response = Some(response.as_bytes());
    let init = SaslInit { mechanism: Symbol("PLAIN"), initial_response, hostname: None };
    SaslPerformative::SaslInit(init).write_frame(&mut bytes);
    bytes.extend_from_slice(&ProtocolHeader::Amqp.bytes());
    bytes
}

/// The open frame of tests.
pub(crate) fn open() -> Open<'static> {
    Open { container_id: "tester", ..Open::default() }
}

/// A begin frame with that incoming window.
pub(crate) fn begin(incoming_window: u32) -> Begin<'static> {
    let outgoing_window = 1000;
    Begin { next_outgoing_id: 7, incoming_window, outgoing_window, ..Begin::default() }
}

/// The attach frame of a link on which the peer sends.
pub(crate) fn sender(handle: u32, address: &str) -> Attach<'_> {
    let target = Target { address: Some(address), ..Target::default() };
    Attach {
        name: "s",
        handle,
        role: Role::Sender,
        source: Some(Source::default()),
        target: Some(AnyTarget::Target(target)),
        initial_delivery_count: Some(0),
        ..Attach::default()
    }
}

/// The attach frame of a link on which the peer receives.
pub(crate) fn receiver(handle: u32, address: &str) -> Attach<'_> {
    Attach {
        name: "r",
        handle,
        role: Role::Receiver,
        source: Some(Source { address: Some(address), ..Source::default() }),
        target: Some(AnyTarget::Target(Target::default())),
        ..Attach::default()
    }
}

/// A flow frame with credit.
pub(crate) fn credit(handle: u32, delivery_count: u32, link_credit: u32) -> Flow<'static> {
    Flow {
        next_incoming_id: Some(0),
        incoming_window: 1000,
        next_outgoing_id: 7,
        outgoing_window: 1000,
        handle: Some(handle),
        delivery_count: Some(delivery_count),
        link_credit: Some(link_credit),
        ..Flow::default()
    }
}

/// A transfer frame of a whole delivery.
pub(crate) fn transfer(handle: u32, delivery_id: u32) -> Transfer<'static> {
    use crate::amqp10::codec::DeliveryTag;
    let delivery_tag = Some(DeliveryTag(b"tag"));
    let delivery_id = Some(delivery_id);
    let message_format = Some(0);
    Transfer { handle, delivery_id, delivery_tag, message_format, ..Transfer::default() }
}

/// A disposition frame of a receiver.
pub(super) fn settled(first: u32, last: u32, state: DeliveryState<'_>) -> Disposition<'_> {
    let (role, last, state) = (Role::Receiver, Some(last), Some(state));
    Disposition { role, first, last, settled: true, state, batchable: false }
}

/// A detach frame that closes.
pub(super) fn closing(handle: u32) -> Detach<'static> {
    Detach { handle, closed: true, error: None }
}

impl Client {
    /// A connection that has sent nothing.
    pub(super) fn accepted(settings: Settings) -> Client {
        let mut host = TestHost::new(crate::amqp091::Settings::default());
        let number = Client::accept(&mut host, settings);
        Client { host, number }
    }
    fn accept(host: &mut TestHost, settings: Settings) -> usize {
        let peer = Peer { local: true, address: "127.0.0.1:9".to_owned(), ..Peer::default() };
        host.accept_amqp10(peer, settings)
    }
    /// A connection that is open, with session 0.
    pub(super) fn open() -> Client {
        Client::open_with(Settings::default(), 1000)
    }
    /// The same, where the peer's incoming window is this.
    pub(super) fn open_with(settings: Settings, incoming_window: u32) -> Client {
        let mut client = Client::accepted(settings);
        client.raw(&login("guest"));
        client.send(0, &open());
        client.send(0, &begin(incoming_window));
        client.lines();
        client
    }
    /// Another connection to the same host, which becomes the one at hand; returns the number of the one
    /// before.
    pub(super) fn another(&mut self, user: &str) -> usize {
        let number = Client::accept(&mut self.host, Settings::default());
        let before = std::mem::replace(&mut self.number, number);
        self.raw(&login(user));
        self.send(0, &open());
        self.send(0, &begin(1000));
        self.lines();
        before
    }
    /// Another connection to the same host becomes the one at hand, and sends this open frame.
    pub(super) fn again(&mut self, open: &Open<'_>) {
        self.again_as("guest", open);
    }
    /// The same of another user.
    pub(super) fn again_as(&mut self, user: &str, open: &Open<'_>) {
        self.number = Client::accept(&mut self.host, Settings::default());
        self.raw(&login(user));
        self.lines();
        self.send(0, open);
    }
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.host.receive(self.number, bytes);
        self.host.turn_ends();
    }
    pub(super) fn send<'a>(&mut self, channel: u16, performative: &impl Field<'a>) {
        self.raw(&frame(channel, performative, &[]));
    }
    pub(super) fn send_with<'a>(
        &mut self,
        channel: u16,
        performative: &impl Field<'a>,
        payload: &[u8],
    ) {
        self.raw(&frame(channel, performative, payload));
    }
    /// The frames that it got since the last call.
    pub(super) fn lines(&mut self) -> Vec<String> {
        show::lines(&self.host.output(self.number))
    }
    /// Compares them.
    #[track_caller]
    pub(super) fn expect(&mut self, expected: &[&str]) {
        let lines = self.lines();
        assert_eq!(lines, expected, "got {lines:#?}");
    }
}
