//! Queries for the connections of a virtual host on all shards: each shard searches its own, and their
//! results are merged. Independent of how a protocol writes them.

use crate::peer::ClientProperties;
use angarium_engine::Time;
use std::cmp::Reverse;

/// Bytes of subjects in the rows of one shard beyond which no more are listed.
pub const SUBJECT_BYTES_MAX: usize = 1 << 20;

/// Which connections are asked for, and how they are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionQuery {
    /// Connections of any protocol to this virtual host.
    pub vhost: String,
    /// Only those of this user.
    pub user: Option<String>,
    /// Only the one with this number in listings.
    pub number: Option<u64>,
    /// Only those with a subscription that matches this subject or pattern.
    pub subject: Option<String>,
    /// The order of the rows.
    pub order: Order,
    /// Rows to skip.
    pub offset: usize,
    /// Most rows to list.
    pub limit: usize,
    /// Rows list the subscribed subjects.
    pub with_subjects: bool,
}

/// What comes first; among equals, the smaller number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The smallest number.
    #[default]
    Number,
    /// The longest connected.
    Oldest,
    /// The most subscriptions to subjects.
    Subjects,
    /// The most bytes unsent.
    Unsent,
    /// The latest sign of life.
    LastInput,
    /// The longest without any.
    Idle,
    /// The most messages from the client.
    MessagesReceived,
    /// The most messages to the client.
    MessagesSent,
    /// The most bytes from the client.
    BytesReceived,
    /// The most bytes to the client.
    BytesSent,
}

/// Counters of a connection, or sums of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Subscriptions to subjects.
    pub subjects: u64,
    /// Messages from clients.
    pub messages_received: u64,
    /// Messages to clients.
    pub messages_sent: u64,
    /// Bytes from clients.
    pub bytes_received: u64,
    /// Bytes to clients.
    pub bytes_sent: u64,
}

/// The figures of one connection, by which rows are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Its number in listings.
    pub number: u64,
    /// When it connected.
    pub connected_at: Time,
    /// When it last sent anything.
    pub last_input: Time,
    /// Unsent bytes.
    pub unsent_bytes: u64,
    /// What it has sent and received.
    pub traffic: Traffic,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionRow {
    /// Its figures.
    pub figures: Figures,
    /// Its protocol.
    pub protocol: &'static str,
    /// The other end.
    pub address: String,
    /// Its user.
    pub user: String,
    /// What the client said about itself.
    pub client: ClientProperties,
    /// Its subscriptions, where they were asked for.
    pub subjects: Vec<String>,
}

/// The result of one shard, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryResult {
    /// Connections that match.
    pub connections: u64,
    /// Slow consumers among them.
    pub slow_consumers: u64,
    /// Sums of all of them.
    pub traffic: Traffic,
    /// The first rows, in order; rows are skipped only once all results are merged.
    pub rows: Vec<ConnectionRow>,
}

impl Traffic {
    /// Adds the counters of others.
    pub fn add(&mut self, other: &Traffic) {
        self.subjects += other.subjects;
        self.messages_received += other.messages_received;
        self.messages_sent += other.messages_sent;
        self.bytes_received += other.bytes_received;
        self.bytes_sent += other.bytes_sent;
    }
}

/// The sort key of a connection: the least comes first.
pub type SortKey = (Reverse<u64>, Time, u64);

impl Order {
    /// The sort key of a connection.
    #[must_use]
    pub fn key(self, figures: &Figures) -> SortKey {
        let Figures { number, connected_at, last_input, unsent_bytes, traffic } = *figures;
        let most = match self {
            Order::Number | Order::Oldest | Order::Idle => 0,
            Order::LastInput => last_input.0,
            Order::Subjects => traffic.subjects,
            Order::Unsent => unsent_bytes,
            Order::MessagesReceived => traffic.messages_received,
            Order::MessagesSent => traffic.messages_sent,
            Order::BytesReceived => traffic.bytes_received,
            Order::BytesSent => traffic.bytes_sent,
        };
        let since = match self {
            Order::Oldest => connected_at,
            Order::Idle => last_input,
            _ => Time(0),
        };
        (Reverse(most), since, number)
    }
}

impl ConnectionQuery {
    /// Rows that each shard has to return.
    #[must_use]
    pub fn rows_max(&self) -> usize {
        self.offset.saturating_add(self.limit)
    }
}

impl QueryResult {
    /// Adds the result of another shard.
    pub fn merge(&mut self, other: QueryResult, query: &ConnectionQuery) {
        self.connections += other.connections;
        self.slow_consumers += other.slow_consumers;
        self.traffic.add(&other.traffic);
        self.rows.extend(other.rows);
        self.rows.sort_by_key(|row| query.order.key(&row.figures));
        self.rows.truncate(query.rows_max());
    }

    /// The rows that were asked for, once all results are merged.
    #[must_use]
    pub fn page(&self, query: &ConnectionQuery) -> &[ConnectionRow] {
        &self.rows[query.offset.min(self.rows.len())..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64) -> ConnectionRow {
        let traffic = Traffic { messages_sent: number, ..Traffic::default() };
        let (connected_at, unsent_bytes) = (Time(1_000 - number), number % 3);
        ConnectionRow {
            figures: Figures {
                number,
                connected_at,
                last_input: Time(2_000 + number),
                unsent_bytes,
                traffic,
            },
            protocol: "NATS",
            address: String::new(),
            user: String::new(),
            client: ClientProperties::default(),
            subjects: Vec::new(),
        }
    }

    /// Connections 0 to 9 are on two shards, odd and even ones: checks the numbers in the answer.
    #[track_caller]
    fn check(order: Order, (offset, limit): (usize, usize), expected: &[u64]) {
        let query = ConnectionQuery { order, offset, limit, ..ConnectionQuery::default() };
        let mut all = QueryResult::default();
        for first in 0..2 {
            let rows: Vec<_> = (first..10).step_by(2).map(row).collect();
            let connections = rows.len() as u64;
            all.merge(QueryResult { connections, rows, ..QueryResult::default() }, &query);
        }
        assert_eq!(all.connections, 10);
        let numbers: Vec<_> = all.page(&query).iter().map(|row| row.figures.number).collect();
        assert_eq!(numbers, expected, "{order:?} from {offset}, {limit}");
    }

    #[test]
    fn rows_of_several_shards_come_in_one_order_and_a_page_at_a_time() {
        check(Order::Number, (0, 3), &[0, 1, 2]);
        check(Order::Number, (3, 3), &[3, 4, 5]);
        check(Order::Number, (8, 9), &[8, 9]);
        check(Order::Number, (usize::MAX, 3), &[]);
        check(Order::Oldest, (0, 2), &[9, 8]);
        check(Order::Idle, (0, 2), &[0, 1]);
        check(Order::LastInput, (0, 2), &[9, 8]);
        check(Order::MessagesSent, (1, 2), &[8, 7]);
        check(Order::Unsent, (0, 5), &[2, 5, 8, 1, 4]);
    }
}
