//! What a client may ask about the connections of its virtual host, whichever shards they are on: each shard
//! looks at its own, and what they find is put together.
//!
//! Knows what is asked and found, not how a protocol writes it.

use crate::ClientProperties;
use angarium_engine::Time;
use std::cmp::Reverse;

/// Bytes of subjects in the rows of one shard beyond which no more are listed.
pub const SUBJECT_BYTES_MAX: usize = 1 << 20;

/// What a client asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Connections to that virtual host are looked at, of any protocol.
    pub vhost: String,
    /// Only those of that user.
    pub user: Option<String>,
    /// Only the one that people know by that number.
    pub number: Option<u64>,
    /// Only those that listen to a subject that this pattern matches.
    pub subject: Option<String>,
    /// In which order the rows come.
    pub order: Order,
    /// How many of them are left out at the beginning.
    pub offset: usize,
    /// How many there are at most.
    pub limit: usize,
    /// Each says what its connection listens to.
    pub with_subjects: bool,
}

/// What comes first; among equals, what has the smaller number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The smallest number.
    #[default]
    Number,
    /// What has been connected for the longest time.
    Oldest,
    /// The most subjects listened to.
    Subjects,
    /// The most bytes unsent.
    Unsent,
    /// The most messages from the client.
    MessagesReceived,
    /// The most messages to the client.
    MessagesSent,
    /// The most bytes from the client.
    BytesReceived,
    /// The most bytes to the client.
    BytesSent,
}

/// What is counted of a connection, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Subjects listened to without a queue.
    pub subjects: u64,
    /// Messages that came from clients.
    pub messages_received: u64,
    /// Messages that went to them.
    pub messages_sent: u64,
    /// Bytes that came from clients.
    pub bytes_received: u64,
    /// Bytes that went to them.
    pub bytes_sent: u64,
}

/// What is counted of one connection, and what it is ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The number by which people know it.
    pub number: u64,
    /// Since when it is there.
    pub connected_at: Time,
    /// Bytes that are still to be sent to it.
    pub unsent_bytes: u64,
    /// What it has sent and got.
    pub traffic: Traffic,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyRow {
    /// What is counted of it.
    pub figures: Figures,
    /// What it speaks.
    pub protocol: &'static str,
    /// The other end.
    pub address: String,
    /// Who it is.
    pub user: String,
    /// What the client said about itself.
    pub client: ClientProperties,
    /// What it listens to, where that was asked.
    pub subjects: Vec<String>,
}

/// What one shard has found, or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// How many connections were meant.
    pub connections: u64,
    /// Those of them that are too slow for direct messages.
    pub laggards: u64,
    /// All of them together.
    pub traffic: Traffic,
    /// Those that come first, in their order; nothing is left out at the beginning before all are together.
    pub rows: Vec<SurveyRow>,
}

impl Traffic {
    /// Adds that of others.
    pub fn add(&mut self, other: &Traffic) {
        self.subjects += other.subjects;
        self.messages_received += other.messages_received;
        self.messages_sent += other.messages_sent;
        self.bytes_received += other.bytes_received;
        self.bytes_sent += other.bytes_sent;
    }
}

/// What orders a connection among others: the least comes first.
pub type PlaceInOrder = (Reverse<u64>, Time, u64);

impl Order {
    /// Where a connection comes.
    #[must_use]
    pub fn key(self, figures: &Figures) -> PlaceInOrder {
        let Figures { number, connected_at, unsent_bytes, traffic } = *figures;
        let most = match self {
            Order::Number | Order::Oldest => 0,
            Order::Subjects => traffic.subjects,
            Order::Unsent => unsent_bytes,
            Order::MessagesReceived => traffic.messages_received,
            Order::MessagesSent => traffic.messages_sent,
            Order::BytesReceived => traffic.bytes_received,
            Order::BytesSent => traffic.bytes_sent,
        };
        let since = if self == Order::Oldest { connected_at } else { Time(0) };
        (Reverse(most), since, number)
    }
}

impl Survey {
    /// How many rows each shard has to tell.
    #[must_use]
    pub fn rows_max(&self) -> usize {
        self.offset.saturating_add(self.limit)
    }
}

impl Findings {
    /// Adds what another shard has found.
    pub fn merge(&mut self, other: Findings, survey: &Survey) {
        self.connections += other.connections;
        self.laggards += other.laggards;
        self.traffic.add(&other.traffic);
        self.rows.extend(other.rows);
        self.rows.sort_by_key(|row| survey.order.key(&row.figures));
        self.rows.truncate(survey.rows_max());
    }

    /// The rows that were asked for, when all are together.
    #[must_use]
    pub fn page(&self, survey: &Survey) -> &[SurveyRow] {
        &self.rows[survey.offset.min(self.rows.len())..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64) -> SurveyRow {
        let traffic = Traffic { messages_sent: number, ..Traffic::default() };
        let (connected_at, unsent_bytes) = (Time(1_000 - number), number % 3);
        SurveyRow {
            figures: Figures { number, connected_at, unsent_bytes, traffic },
            protocol: "NATS",
            address: String::new(),
            user: String::new(),
            client: ClientProperties::default(),
            subjects: Vec::new(),
        }
    }

    /// The numbers that are told of connections 0 to 9 on shards of odd and of even ones.
    #[track_caller]
    fn check(order: Order, (offset, limit): (usize, usize), expected: &[u64]) {
        let survey = Survey { order, offset, limit, ..Survey::default() };
        let mut all = Findings::default();
        for first in 0..2 {
            let rows: Vec<_> = (first..10).step_by(2).map(row).collect();
            let connections = rows.len() as u64;
            all.merge(Findings { connections, rows, ..Findings::default() }, &survey);
        }
        assert_eq!(all.connections, 10);
        let numbers: Vec<_> = all.page(&survey).iter().map(|row| row.figures.number).collect();
        assert_eq!(numbers, expected, "{order:?} from {offset}, {limit}");
    }

    #[test]
    fn rows_of_several_shards_come_in_one_order_and_a_page_at_a_time() {
        check(Order::Number, (0, 3), &[0, 1, 2]);
        check(Order::Number, (3, 3), &[3, 4, 5]);
        check(Order::Number, (8, 9), &[8, 9]);
        check(Order::Number, (usize::MAX, 3), &[]);
        check(Order::Oldest, (0, 2), &[9, 8]);
        check(Order::MessagesSent, (1, 2), &[8, 7]);
        check(Order::Unsent, (0, 5), &[2, 5, 8, 1, 4]);
    }
}
