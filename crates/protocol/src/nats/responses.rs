//! Reply subjects of messages that a client was sent and may answer, although its user may not publish there
//! otherwise (nats-server: `allow_responses`).

use angarium_engine::{Responses, Time};
use std::collections::BTreeMap;

/// Messages that may be answered at the same time; beyond that the oldest half is forgotten.
const REQUESTS_MAX: usize = 1_024;

/// The reply subjects.
#[derive(Debug, Default)]
pub(super) struct Requests {
    open: BTreeMap<Box<str>, Request>,
    /// Counts requests up.
    count: u64,
    /// Requests up to this one have their times.
    dated: u64,
}

#[derive(Debug)]
struct Request {
    number: u64,
    answers: u32,
    /// When the connection was first looked at behind it: the writer has no clock.
    since: Option<Time>,
}

impl Requests {
    /// A message with this reply subject is written to the client.
    pub(super) fn sent(&mut self, reply: &[u8]) {
        let Ok(reply) = str::from_utf8(reply) else { return };
        if self.open.len() >= REQUESTS_MAX {
            let newest = self.count.saturating_sub(REQUESTS_MAX as u64 / 2);
            self.open.retain(|_, request| request.number > newest);
        }
        self.count += 1;
        self.open.insert(reply.into(), Request { number: self.count, answers: 0, since: None });
    }

    /// Whether the client may publish an answer to `subject` now; counts it if so.
    pub(super) fn answer(&mut self, now: Time, subject: &str, allowed: Responses) -> bool {
        self.date(now);
        let Some(request) = self.open.get_mut(subject) else { return false };
        let is_late = request.since.is_some_and(|since| now.since(since) > allowed.within);
        if is_late && !allowed.within.is_zero() {
            self.open.remove(subject);
            return false;
        }
        request.answers += 1;
        if request.answers == allowed.messages {
            self.open.remove(subject);
        }
        true
    }

    /// Gives all requests that have come since the last call their time.
    pub(super) fn date(&mut self, now: Time) {
        if self.dated == self.count {
            return;
        }
        for request in self.open.values_mut().filter(|request| request.since.is_none()) {
            request.since = Some(now);
        }
        self.dated = self.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const AT: Time = Time(1_000_000_000);

    fn responses(messages: u32, seconds: u64) -> Responses {
        Responses { messages, within: Duration::from_secs(seconds) }
    }

    #[test]
    fn each_request_is_answered_as_often_as_allowed_and_in_time() {
        for (allowed, expected) in [(1, 1), (3, 3), (0, 5)] {
            let mut requests = Requests::default();
            requests.sent(b"r");
            let answered = (0..5).filter(|_| requests.answer(AT, "r", responses(allowed, 9)));
            assert_eq!(answered.count(), expected);
            assert!(!requests.answer(AT, "other", responses(allowed, 9)));
        }
        let mut requests = Requests::default();
        requests.sent(b"r");
        requests.date(AT);
        assert!(requests.answer(AT.plus(Duration::from_secs(9)), "r", responses(0, 9)));
        assert!(!requests.answer(AT.plus(Duration::from_secs(10)), "r", responses(0, 9)));
        requests.sent(b"s");
        requests.date(AT);
        assert!(requests.answer(AT.plus(Duration::from_secs(99)), "s", responses(1, 0)));
    }

    #[test]
    fn the_oldest_requests_are_forgotten_where_there_are_too_many() {
        let mut requests = Requests::default();
        for number in 0..10 * REQUESTS_MAX {
            requests.sent(number.to_string().as_bytes());
            assert!(requests.open.len() <= REQUESTS_MAX);
        }
        let last = (10 * REQUESTS_MAX - 1).to_string();
        assert!(!requests.answer(AT, "0", responses(1, 9)));
        assert!(requests.answer(AT, &last, responses(1, 9)));
    }
}
