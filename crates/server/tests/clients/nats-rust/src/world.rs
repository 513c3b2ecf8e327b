//! What cases use: clients, subjects, waits with an end.

use async_nats::{Client, ConnectOptions, Message, Subscriber};
use futures_util::StreamExt;
use std::fmt::Debug;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

/// The longest wait for anything that must come.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long nothing must come before it counts as "does not come".
pub const SILENCE: Duration = Duration::from_millis(200);

pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// Whether a case passed or was skipped, or why it failed.
pub type Outcome = Result<bool, Error>;

pub fn url() -> String {
    std::env::var("NATS_URL").unwrap_or_else(|_| "nats://127.0.0.1:4222".to_string())
}

pub fn options() -> ConnectOptions {
    ConnectOptions::new().connection_timeout(PATIENCE).request_timeout(Some(PATIENCE))
}

pub async fn connect() -> Result<Client, Error> {
    Ok(options().connect(url()).await?)
}

/// Waits until the broker has handled all that the client sent: its flush ends with the socket, so
/// this asks where nobody answers.
pub async fn settle(client: &Client) {
    // That nobody answers is the answer.
    let _ = client.request(subject(), "".into()).await;
}

/// A subject that nobody else uses.
pub fn subject() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("r.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The next message.
pub async fn next(subscriber: &mut Subscriber) -> Result<Message, Error> {
    let message = tokio::time::timeout(PATIENCE, subscriber.next()).await;
    Ok(message.map_err(|_| "waited in vain for a message")?.ok_or("the subscription ended")?)
}

/// The payloads of the next messages, as text.
pub async fn texts(subscriber: &mut Subscriber, count: usize) -> Result<Vec<String>, Error> {
    let mut got = Vec::new();
    while got.len() < count {
        got.push(String::from_utf8(next(subscriber).await?.payload.to_vec())?);
    }
    Ok(got)
}

/// Fails when another message comes.
pub async fn silent(subscriber: &mut Subscriber) -> Result<(), Error> {
    match tokio::time::timeout(SILENCE, subscriber.next()).await {
        Ok(Some(message)) => Err(format!("came, and should not: {message:?}").into()),
        _ => Ok(()),
    }
}

pub fn equal<T: PartialEq + Debug>(got: T, expected: T) -> Result<(), Error> {
    if got == expected {
        Ok(())
    } else {
        Err(format!("got {got:?} instead of {expected:?}").into())
    }
}

/// Passes bytes on to the broker until `cut` is called.
pub struct Relay {
    port: u16,
    cut: broadcast::Sender<()>,
    accepting: JoinHandle<()>,
}

impl Relay {
    pub async fn open() -> Result<Relay, Error> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (cut, _) = broadcast::channel(1);
        let cuts = cut.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((mut here, _)) = listener.accept().await {
                let mut cut = cuts.subscribe();
                tokio::spawn(async move {
                    let broker = url().replace("nats://", "");
                    let Ok(mut there) = TcpStream::connect(broker).await else { return };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut here, &mut there) => {}
                        _ = cut.recv() => {}
                    }
                });
            }
        });
        Ok(Relay { port, cut, accepting })
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends the connections that there are.
    pub fn cut(&self) {
        // Nobody hears it where none is open.
        let _ = self.cut.send(());
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Runs a command of the program against the running broker.
pub fn administer(arguments: &[&str]) -> Result<(), Error> {
    let program = std::env::var("BROKER_TEST_PROGRAM")?;
    let data = std::env::var("BROKER_TEST_DATA")?;
    let output = Command::new(program).args(arguments).args(["--data", &data]).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
}
