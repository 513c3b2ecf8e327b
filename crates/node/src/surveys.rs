//! What clients ask about the connections of their virtual host: every shard is asked, each looks at its own,
//! and the one that was asked first puts together what they find.

use crate::administration::ConnectionInfo;
use crate::node::Node;
use angarium_engine::{ConnectionId, Engine, Time, subjects_overlap};
use angarium_protocol::{
    Figures, Findings, SUBJECT_BYTES_MAX, Session, Survey, SurveyRow, Traffic,
};
use std::collections::BTreeMap;

/// The connection that asks, and what tells it from others in its slot. It has one survey at a time.
type Asker = (ConnectionId, u64);

/// Surveys that wait for other shards.
pub(crate) type Surveys = BTreeMap<Asker, UnderWay>;

/// One of them.
#[derive(Debug)]
pub(crate) struct UnderWay {
    survey: Survey,
    /// How many shards have not told yet.
    left: usize,
    found: Findings,
}

impl Node {
    /// Begins what sessions have asked for; says whether some of it is answered already.
    #[cold]
    pub(crate) fn take_surveys(&mut self, now: Time) -> bool {
        let mut has_answered = false;
        for (id, survey) in std::mem::take(&mut self.world.surveys) {
            let Some(connection) = self.connections[id.0 as usize].as_ref() else { continue };
            let serial = connection.serial;
            let found = self.look_around(now, &survey);
            let left = self.options.shards - 1;
            if left == 0 {
                self.tell_findings(now, (id, serial), &found);
                has_answered = true;
                continue;
            }
            self.world.mesh.survey(id, serial, &survey);
            self.surveys.insert((id, serial), UnderWay { survey, left, found });
        }
        has_answered
    }

    /// A shard has told what it found.
    pub(crate) fn take_findings(&mut self, now: Time, asker: Asker, found: Findings) {
        let Some(under_way) = self.surveys.get_mut(&asker) else { return };
        under_way.found.merge(found, &under_way.survey);
        under_way.left -= 1;
        if under_way.left == 0
            && let Some(whole) = self.surveys.remove(&asker)
        {
            self.tell_findings(now, asker, &whole.found);
        }
    }

    fn tell_findings(&mut self, now: Time, (id, serial): Asker, found: &Findings) {
        if self.is_serial(id, serial)
            && self.at_session(now, id, |session, turn| session.surveyed(turn, found)).is_some()
        {
            self.resumable.push(id);
        }
    }

    /// What a survey finds here.
    pub(crate) fn look_around(&self, now: Time, survey: &Survey) -> Findings {
        let mut found = Findings::default();
        let mut places = Vec::new();
        for connection in self.connections(now) {
            if is_meant(survey, &connection, &self.engine) {
                let figures = figures(&connection);
                found.connections += 1;
                found.laggards += u64::from(connection.lag.is_some());
                found.traffic.add(&figures.traffic);
                places.push((survey.order.key(&figures), connection.id));
            }
        }
        places.sort_unstable_by_key(|(key, _)| *key);
        places.truncate(survey.rows_max());
        let mut subject_bytes = if survey.with_subjects { SUBJECT_BYTES_MAX } else { 0 };
        let ids = places.iter().map(|(_, id)| *id);
        found.rows = ids.filter_map(|id| self.row(now, id, &mut subject_bytes)).collect();
        found
    }

    /// What is told of one connection; of what it listens to as much as is left of `subject_bytes`.
    fn row(&self, now: Time, id: ConnectionId, subject_bytes: &mut usize) -> Option<SurveyRow> {
        let connection = self.connection(now, id)?;
        let subjects = self.engine.listened_subjects(id).map_while(|subject| {
            *subject_bytes = subject_bytes.checked_sub(subject.len())?;
            Some(subject.to_owned())
        });
        let mut subjects: Vec<_> = subjects.collect();
        subjects.sort_unstable();
        let session = &connection.session;
        Some(SurveyRow {
            figures: figures(&connection),
            protocol: session.protocol,
            address: session.peer.address.clone(),
            user: session.user.to_owned(),
            client: session.client.clone(),
            subjects,
        })
    }
}

fn is_meant(survey: &Survey, connection: &ConnectionInfo<'_>, engine: &Engine) -> bool {
    connection.session.vhost == survey.vhost
        && survey.user.as_ref().is_none_or(|user| user == connection.session.user)
        && survey.number.is_none_or(|number| number == connection.number)
        && survey.subject.as_ref().is_none_or(|wanted| {
            engine.listened_subjects(connection.id).any(|subject| subjects_overlap(wanted, subject))
        })
}

fn figures(connection: &ConnectionInfo<'_>) -> Figures {
    Figures {
        number: connection.number,
        connected_at: connection.connected_at,
        unsent_bytes: connection.unsent_bytes,
        traffic: Traffic {
            subjects: connection.subjects as u64,
            messages_received: connection.received_messages,
            messages_sent: connection.sent_messages,
            bytes_received: connection.received_bytes,
            bytes_sent: connection.sent_bytes,
        },
    }
}
