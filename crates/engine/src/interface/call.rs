//! Requests of remote shards to home.

use crate::{ChannelId, ConnectionId, Publish, Request, Settle};

/// A request to home on behalf of a channel of another shard. The host carries it out there, in
/// order, as if the channel were home's, and carries the effects back.
#[derive(Debug)]
pub enum Call<'a> {
    /// A connection begins.
    Connect {
        /// The connection, on its own shard.
        connection: ConnectionId,
        /// Its user.
        user: &'a str,
        /// Its virtual host.
        vhost: &'a str,
    },
    /// A channel of it begins.
    Open {
        /// The channel.
        channel: ChannelId,
        /// Tells it from earlier ones of its number.
        opening: u32,
    },
    /// [`crate::Engine::publish`].
    Publish(ChannelId, &'a Publish<'a>),
    /// [`crate::Engine::settle`].
    Settle(ChannelId, Settle),
    /// [`crate::Engine::request`].
    Request(ChannelId, Request),
    /// The channel ends.
    Close(ChannelId),
    /// The connection ends.
    Disconnect(ConnectionId),
}
