//! What cases of fe2o3-amqp may use.

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use std::error::Error;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::timeout;

/// The longest wait for anything that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How long nothing must come before it counts as "does not come".
const SILENCE: Duration = Duration::from_millis(200);

pub(crate) type Failure = Box<dyn Error>;
/// Whether a case passed.
pub(crate) type Outcome = Result<(), Failure>;

/// The broker's host and port.
fn address() -> String {
    let url = std::env::var("AMQP_URL")
        .unwrap_or_else(|_| "amqp://guest:guest@127.0.0.1:5672/%2f".into());
    let rest = url.rsplit('@').next().unwrap_or_default();
    rest.split('/').next().unwrap_or_default().to_string()
}

/// A name that nobody else uses.
pub(crate) fn name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    format!("rust-{now}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A connection with a session.
pub(crate) struct Client {
    pub(crate) session: SessionHandle<()>,
    pub(crate) connection: ConnectionHandle<()>,
}

pub(crate) async fn connect() -> Result<Client, Failure> {
    let profile = SaslProfile::Plain { username: "guest".into(), password: "guest".into() };
    let url = format!("amqp://{}", address());
    let builder = Connection::builder().container_id(name()).sasl_profile(profile);
    let mut connection = builder.open(url.as_str()).await?;
    let session = Session::begin(&mut connection).await?;
    Ok(Client { session, connection })
}

impl Client {
    pub(crate) async fn another_session(&mut self) -> Result<SessionHandle<()>, Failure> {
        Ok(Session::begin(&mut self.connection).await?)
    }

    pub(crate) async fn sender(&mut self, queue: &str) -> Result<Sender, Failure> {
        Ok(Sender::attach(&mut self.session, name(), queue).await?)
    }

    pub(crate) async fn receiver(&mut self, queue: &str) -> Result<Receiver, Failure> {
        Ok(Receiver::attach(&mut self.session, name(), queue).await?)
    }
}

/// Sends texts, each when the one before is accepted.
pub(crate) async fn send(sender: &mut Sender, texts: &[&str]) -> Outcome {
    for text in texts {
        sender.send(text.to_string()).await?.accepted_or(format!("{text} was not accepted"))?;
    }
    Ok(())
}

/// Receives texts and accepts them.
pub(crate) async fn take(receiver: &mut Receiver, count: usize) -> Result<Vec<String>, Failure> {
    let mut texts = Vec::new();
    for _ in 0..count {
        let waited = timeout(PATIENCE, receiver.recv::<String>()).await;
        let delivery = waited.map_err(|_| format!("only {texts:?} came"))??;
        receiver.accept(&delivery).await?;
        texts.push(delivery.body().clone());
    }
    Ok(texts)
}

pub(crate) async fn quiet(receiver: &mut Receiver) -> Outcome {
    match timeout(SILENCE, receiver.recv::<String>()).await {
        Ok(came) => Err(format!("came, and should not: {:?}", came?.body()).into()),
        Err(_) => Ok(()),
    }
}

pub(crate) fn same<T: PartialEq<U> + Debug, U: Debug>(found: T, expected: U) -> Outcome {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{found:?} instead of {expected:?}").into())
    }
}
