//! Queries of clients about the connections of their virtual host: each shard looks at its own connections,
//! and the shard of the client that asks merges the findings.
//!
//! A shard looks at some of its connections in each turn, so that other clients do not notice a query.
//! Connections that come or go meanwhile may be missing.

use crate::administration::ConnectionInfo;
use crate::connection::key::ConnectionKey;
use crate::node::Node;
use crate::shard::message::{ShardMessage, Value};
use angarium_engine::{ConnectionId, Engine, ShardId, Time, subjects_overlap};
use angarium_protocol::{
    ConnectionQuery, ConnectionRow, ProtocolHandler, QueryResult, SUBJECT_BYTES_MAX, SortKey,
};
use std::collections::{BTreeMap, VecDeque};

/// Connections that are looked at in one turn, and subjects that are compared: some tenths of a millisecond.
const LOOKS_PER_TURN: u64 = 2_048;
/// Rows that are written in one turn.
const ROWS_PER_TURN: usize = 256;
/// Subjects of one connection that are compared with the one that is asked for: no turn does less.
const SUBJECTS_COMPARED_MAX: usize = 8_192;

/// What is asked at this shard.
#[derive(Debug, Default)]
pub(crate) struct ConnectionQueries {
    /// By clients of its own, and other shards have not told all yet.
    under_way: BTreeMap<ConnectionKey, UnderWay>,
    /// What it looks for itself, one after the other.
    pub(crate) looks: VecDeque<Look>,
}

/// A query that waits for shards.
#[derive(Debug)]
struct UnderWay {
    query: ConnectionQuery,
    /// How many shards have not told yet.
    left: usize,
    found: QueryResult,
}

/// A look around at this shard's connections.
#[derive(Debug)]
pub(crate) struct Look {
    /// The shard that gets the findings, and the connection that asks there.
    for_shard: ShardId,
    asker: ConnectionKey,
    query: ConnectionQuery,
    /// The slot from which on connections were not looked at.
    next: usize,
    /// Those that come first.
    places: BTreeMap<SortKey, ConnectionId>,
    /// What its rows may still list of subjects.
    subject_bytes: usize,
    found: QueryResult,
}

impl ConnectionQueries {
    /// Looks for what one of that shard's clients asks.
    pub(crate) fn look_for(
        &mut self,
        for_shard: ShardId,
        asker: ConnectionKey,
        query: ConnectionQuery,
    ) {
        self.looks.push_back(Look {
            for_shard,
            asker,
            next: 0,
            places: BTreeMap::new(),
            subject_bytes: if query.with_subjects { SUBJECT_BYTES_MAX } else { 0 },
            found: QueryResult::default(),
            query,
        });
    }
}

impl Node {
    /// Begins the queries that protocol handlers have passed on.
    #[cold]
    pub(crate) fn begin_queries(&mut self) {
        for (id, query) in std::mem::take(&mut self.effects.connection_queries) {
            let Some(connection) = self.connections.get(id) else { continue };
            let asker = ConnectionKey { id, serial: connection.serial };
            for shard in self.effects.links.others {
                let value = Value::ConnectionQuery(Box::new(query.clone()));
                let message = ShardMessage::ConnectionQuery { asker };
                self.effects.links.say_with(shard, message, value);
            }
            let (left, found) = (self.options.shards, QueryResult::default());
            let queries = &mut self.connections.connection_queries;
            queries.look_for(self.options.shard, asker, query.clone());
            queries.under_way.insert(asker, UnderWay { query, left, found });
        }
    }

    /// Looks at some more connections.
    #[cold]
    pub(crate) fn continue_look(&mut self, now: Time) {
        let Some(mut look) = self.connections.connection_queries.looks.pop_front() else { return };
        self.look_at_connections(now, &mut look);
        if look.next < self.connections.slots.len() || !self.write_rows(now, &mut look) {
            return self.connections.connection_queries.looks.push_front(look);
        }
        let asker = look.asker;
        if look.for_shard == self.options.shard {
            return self.take_query_result(now, asker, look.found);
        }
        let found = Value::QueryResult(Box::new(look.found));
        self.effects.links.say_with(look.for_shard, ShardMessage::QueryResult { asker }, found);
    }

    fn look_at_connections(&self, now: Time, look: &mut Look) {
        let mut left = LOOKS_PER_TURN;
        while left > 0 && look.next < self.connections.slots.len() {
            let id = ConnectionId(u32::try_from(look.next).expect("fewer than 2^32 slots"));
            look.next += 1;
            left -= 1;
            let Some(connection) = self.connection(now, id) else { continue };
            if look.query.subject.is_some() {
                left = left.saturating_sub(connection.figures.traffic.subjects);
            }
            if !is_meant(&look.query, &connection, &self.engine) {
                continue;
            }
            let figures = connection.figures;
            look.found.connections += 1;
            look.found.slow_consumers += u64::from(connection.lag.is_some());
            look.found.traffic.add(&figures.traffic);
            look.places.insert(look.query.order.key(&figures), id);
            if look.places.len() > look.query.rows_max() {
                look.places.pop_last();
            }
        }
    }

    /// Writes rows of those that come first; says whether all are written.
    fn write_rows(&self, now: Time, look: &mut Look) -> bool {
        for _ in 0..ROWS_PER_TURN {
            let Some(((_, _, number), id)) = look.places.pop_first() else { return true };
            // By now the slot may be another one's.
            let connection = self.connection(now, id).filter(|it| it.figures.number == number);
            if let Some(connection) = connection {
                look.found.rows.push(self.row(&connection, &mut look.subject_bytes));
            }
        }
        look.places.is_empty()
    }

    /// A shard has told what it found.
    pub(crate) fn take_query_result(
        &mut self,
        now: Time,
        asker: ConnectionKey,
        found: QueryResult,
    ) {
        let queries = &mut self.connections.connection_queries.under_way;
        let Some(under_way) = queries.get_mut(&asker) else { return };
        under_way.found.merge(found, &under_way.query);
        under_way.left -= 1;
        if under_way.left > 0 {
            return;
        }
        let whole = queries.remove(&asker);
        if let Some(UnderWay { found, .. }) = whole.filter(|_| self.is_there(asker)) {
            self.resume_with(now, asker.id, |handler, context| {
                handler.connections_found(context, &found);
                Ok(())
            });
        }
    }

    /// One connection's row, with as many of its subjects as `subject_bytes` leaves room for.
    fn row(&self, connection: &ConnectionInfo<'_>, subject_bytes: &mut usize) -> ConnectionRow {
        let subjects = self.engine.subscribed_subjects(connection.id).map_while(|subject| {
            *subject_bytes = subject_bytes.checked_sub(subject.len())?;
            Some(subject.to_owned())
        });
        let mut subjects: Vec<_> = subjects.collect();
        subjects.sort_unstable();
        let info = &connection.info;
        ConnectionRow {
            figures: connection.figures,
            protocol: info.protocol,
            address: info.peer.address.clone(),
            user: info.user.to_owned(),
            client: info.client.clone(),
            subjects,
        }
    }
}

fn is_meant(query: &ConnectionQuery, connection: &ConnectionInfo<'_>, engine: &Engine) -> bool {
    connection.info.vhost == query.vhost
        && query.user.as_ref().is_none_or(|user| user == connection.info.user)
        && query.number.is_none_or(|number| number == connection.figures.number)
        && query.subject.as_ref().is_none_or(|wanted| {
            let mut subjects =
                engine.subscribed_subjects(connection.id).take(SUBJECTS_COMPARED_MAX);
            subjects.any(|subject| subjects_overlap(wanted, subject))
        })
}
