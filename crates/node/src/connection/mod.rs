//! One connection: its protocol handler, and the input that it has not used yet.

mod calls;
pub(crate) mod credentials;
mod framed_input;
pub(crate) mod framing;
pub(crate) mod handler;
pub(crate) mod in_process;
pub(crate) mod in_process_events;
pub(crate) mod input;
pub(crate) mod key;
pub(crate) mod limits;
pub(crate) mod proof;
pub(crate) mod query;
pub(crate) mod read_pause;
pub(crate) mod replies;
pub(crate) mod sweep;
pub(crate) mod table;

use crate::connection::framing::Framing;
use crate::connection::handler::AnyHandler;
use crate::connection::proof::Proof;
use crate::connection::read_pause::WaitsFor;
use crate::flow::rate::Metered;
use crate::flow::throttle::HomeSaid;
use angarium_engine::Time;
use angarium_protocol::{Peer, Traffic};

/// A connection as the node holds it; its output lies in the effects, where the engine reaches it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) handler: AnyHandler,
    pub(crate) peer: Peer,
    /// What lies below the handler, where something does.
    pub(crate) framing: Option<Box<Framing>>,
    /// By what it has logged in, or tries to.
    pub(crate) proof: Proof,
    pub(crate) connected_at: Time,
    /// Tells it from earlier connections in the same slot.
    pub(crate) serial: u64,
    /// How many channels had been opened before, which tells its channels from those of earlier connections
    /// ([`crate::shard::message::ChannelName`]).
    pub(crate) openings_before: u32,
    /// Input that is not used yet: the start of a frame, or what came while the handler waited.
    pub(crate) carry: Vec<u8>,
    /// Why it has ended, if it has; the host sends what is in the output and closes the transport.
    pub(crate) ended: Option<String>,
    /// It has stored messages: it is not read from while the journal is congested, and is notified when
    /// nothing can be stored.
    pub(crate) stores: bool,
    /// On another shard than home: it has asked home for something, and waits when home is behind.
    pub(crate) uses_home: bool,
    /// What home last said of it, where that found it to send too much.
    pub(crate) home_said: HomeSaid,
    /// It put more into a queue than its consumers get, or floods others, and is not read from for a
    /// moment.
    pub(crate) is_slowed: bool,
    /// Why it was last, and since when.
    pub(crate) last_slowed: Option<(WaitsFor, Time)>,
    /// It asked for much at once; the rest of its input has to wait for the next turn.
    pub(crate) is_resting: bool,
    /// There was input from it while it was not read from because of its unsent output.
    pub(crate) waits_for_room: bool,
    /// What is measured of it, where its rate is bounded.
    pub(crate) metered: Option<Box<Metered>>,
    /// What it has sent and received, except messages sent to it, which its output counts.
    pub(crate) traffic: Traffic,
    /// Something was received or sent since the last sweep; buffers of idle connections are freed.
    pub(crate) is_active: bool,
    /// Some of its output was sent since the last sweep.
    pub(crate) has_taken: bool,
    /// When some was last sent, or there was none.
    pub(crate) taken_at: Time,
    /// It ended because it did not do in time what was expected of it.
    pub(crate) was_late: bool,
}
