//! A broker that is one program in the foreground, as Angarium is: started by a command line,
//! stopped by SIGTERM.

use crate::client::{Error, Link, Target};
use crate::load::start;
use std::io;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A running broker; stopped when dropped.
#[derive(Debug)]
pub struct CommandBroker {
    child: Child,
}

impl CommandBroker {
    /// Starts `command` and waits until it answers at `uri`.
    pub fn start(command: &[String], uri: &Target, patience: Duration) -> Result<Self, Error> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| io::Error::other("there is no command to start"))?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let mut broker = CommandBroker { child };
        wait_until_open(uri, patience, || {
            Ok(broker.child.try_wait()?.map(|status| format!("{program} ended: {status}")))
        })?;
        Ok(broker)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for CommandBroker {
    fn drop(&mut self) {
        if let Err(error) = start::stop(&mut self.child) {
            eprintln!("process {} could not be stopped: {error}", self.child.id());
        }
    }
}

/// Tries a connection until one opens, patience ends, or `ended` gives the reason why none ever
/// will.
pub(super) fn wait_until_open(
    uri: &Target,
    patience: Duration,
    mut ended: impl FnMut() -> io::Result<Option<String>>,
) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        match Link::open(uri) {
            Ok(link) => return link.close(),
            Err(Error::Io(_)) if start.elapsed() < patience => {}
            Err(error) => return Err(error),
        }
        if let Some(reason) = ended()? {
            return Err(io::Error::other(reason).into());
        }
        thread::sleep(Duration::from_millis(20));
    }
}
