//! A broker that is one program in the foreground, such as Angarium: started by a command line, stopped
//! by SIGTERM.

use crate::client::{Error, Link, Target};
use crate::process_reaper;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between connection attempts.
pub(super) const RETRY: Duration = Duration::from_millis(5);

/// How to start a broker that stays in the foreground.
#[derive(Debug)]
pub(super) struct Foreground {
    /// Its command line.
    pub(super) command: Vec<String>,
    /// Its addresses, the one that loads use first.
    pub(super) targets: Vec<Target>,
    /// Its configuration files and how they were created, if it has any.
    pub(super) files: Option<String>,
}

/// A running broker; stopped when dropped.
#[derive(Debug)]
pub struct CommandBroker {
    child: Child,
    command: Vec<String>,
    uri: Target,
    patience: Duration,
}

impl CommandBroker {
    /// Starts `command` with its stderr in `log`, and waits until it answers at `uri`.
    pub fn start(
        command: &[String],
        uri: &Target,
        patience: Duration,
        log: Stdio,
    ) -> Result<Self, Error> {
        let (broker, link) = CommandBroker::start_open(command, uri, patience, RETRY, log)?;
        link.close()?;
        Ok(broker)
    }

    /// Starts it, tries to connect every `retry`, and returns also the connection.
    pub(crate) fn start_open(
        command: &[String],
        uri: &Target,
        patience: Duration,
        retry: Duration,
        log: Stdio,
    ) -> Result<(Self, Link), Error> {
        let child = spawn(command, log)?;
        let (command, uri) = (command.to_vec(), uri.clone());
        let mut broker = CommandBroker { child, command, uri, patience };
        let link = broker.wait(retry)?;
        Ok((broker, link))
    }

    fn wait(&mut self, retry: Duration) -> Result<Link, Error> {
        let (child, program) = (&mut self.child, &self.command[0]);
        wait_until_open(&self.uri, self.patience, retry, || {
            Ok(child.try_wait()?.map(|status| format!("{program} ended: {status}")))
        })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills its process by SIGKILL.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        process_reaper::ended(self.child.id());
        Ok(())
    }

    /// Starts it again and waits until it answers.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.child = spawn(&self.command, Stdio::null())?;
        self.wait(RETRY)?.close()
    }
}

fn spawn(command: &[String], log: Stdio) -> io::Result<Child> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| io::Error::other("there is no command to start"))?;
    start(Command::new(program).args(arguments).stdout(Stdio::null()).stderr(log))
}

/// Starts a process that does not outlive this tool.
pub(super) fn start(command: &mut Command) -> io::Result<Child> {
    // A keyboard interrupt goes to this tool only, which stops the broker when it ends.
    let child = command.stdin(Stdio::null()).process_group(0).spawn().map_err(|error| {
        let program = command.get_program().to_string_lossy();
        io::Error::new(error.kind(), format!("{program}: {error}"))
    })?;
    process_reaper::started(child.id());
    Ok(child)
}

impl Drop for CommandBroker {
    fn drop(&mut self) {
        match stop(&mut self.child) {
            Ok(()) => process_reaper::ended(self.child.id()),
            Err(error) => eprintln!("process {} could not be stopped: {error}", self.child.id()),
        }
    }
}

/// Stops a child process: by SIGTERM, and by SIGKILL after ten seconds.
fn stop(child: &mut Child) -> io::Result<()> {
    if child.try_wait()?.is_none() {
        kill_process(Pid::from_child(child), Signal::TERM)?;
    }
    let asked = Instant::now();
    while child.try_wait()?.is_none() {
        if asked.elapsed() > Duration::from_secs(10) {
            child.kill()?;
            child.wait()?;
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Tries to connect until it succeeds, `patience` ends, or `ended` returns the reason why it never will.
pub(super) fn wait_until_open(
    uri: &Target,
    patience: Duration,
    retry: Duration,
    mut ended: impl FnMut() -> io::Result<Option<String>>,
) -> Result<Link, Error> {
    let start = Instant::now();
    loop {
        match Link::open(uri) {
            Ok(link) => return Ok(link),
            // A broker may listen before it answers.
            Err(Error::Io(_)) if start.elapsed() < patience => {}
            Err(error) => return Err(error),
        }
        if let Some(reason) = ended()? {
            return Err(io::Error::other(reason).into());
        }
        thread::sleep(retry);
    }
}
