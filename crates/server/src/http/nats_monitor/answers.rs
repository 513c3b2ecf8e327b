//! What the answers of NATS's monitoring have in common: who gets them, and what they begin with.

use super::super::api::Failure;
use super::super::auth::{self, Caller};
use super::super::mailboxes::State;
use super::super::metrics::may_see_names;
use angarium_engine::Time;
use angarium_protocol::nats::{self, monitoring};
use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Ticks of processor time per second, as the kernel counts for programs on every architecture of Linux.
const TICKS_PER_SECOND: u64 = 100;

/// What the port itself remembers.
#[derive(Debug)]
pub(in super::super) struct Monitor {
    pub(super) started: SystemTime,
    /// Requests by address.
    pub(super) requests: Mutex<BTreeMap<String, u64>>,
    /// Processor time of the process when it was last looked at, and its use of processors then.
    pub(super) processor: Mutex<(Instant, Duration, f64)>,
}

/// What every answer begins with.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) settings: Arc<nats::Settings>,
    pub(super) now: Time,
}

pub(super) type Answer = Result<Json<Value>, Failure>;
pub(super) type Shared = axum::extract::State<State>;

impl Monitor {
    pub(in super::super) fn new() -> Monitor {
        Monitor {
            started: SystemTime::now(),
            requests: Mutex::default(),
            processor: Mutex::new((Instant::now(), processor_time(), 0.0)),
        }
    }

    pub(super) fn count(&self, path: &str) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry(path.to_owned()).or_default() += 1;
    }
}

/// Whether a caller may see names of clients; the error: it may not see this at all.
pub(super) async fn sees_names(
    state: &State,
    caller: Caller,
    headers: &HeaderMap,
) -> Result<bool, Failure> {
    may_see_names(state, caller, headers).await
}

/// Lets those through who may see names of clients.
pub(super) async fn check_names(
    state: &State,
    caller: Caller,
    headers: &HeaderMap,
) -> Result<(), Failure> {
    if sees_names(state, caller, headers).await? {
        return Ok(());
    }
    let text = "names of clients are shown to administrators and to the users of the setting \
                metrics-users, with their password, or to all if metrics-access is open";
    Err(Failure::new(StatusCode::UNAUTHORIZED, text))
}

pub(super) async fn server(state: &State) -> Result<Server, Failure> {
    let home = state.mailboxes.home();
    Ok(home
        .ask(|shard| Server { settings: shard.node.options().nats.clone(), now: shard.now })
        .await?)
}

impl Server {
    pub(super) fn id(&self) -> &str {
        &self.settings.server_id
    }

    pub(super) fn date(&self) -> String {
        monitoring::date(self.now)
    }
}

/// An answer, or why there is none, as nats-server writes it.
pub(super) fn answered(answer: Answer) -> Response {
    answer.map_or_else(auth::challenge, IntoResponse::into_response)
}

/// When that was, in the shards' time.
pub(super) fn time(at: SystemTime) -> Time {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// Processor time of the process, from the kernel.
pub(super) fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name before may have blanks in it.
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    let ticks: u64 =
        behind.split(' ').skip(12).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}
