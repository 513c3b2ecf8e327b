//! `angarium top`: what a running broker does now, on one screen or as text.
//!
//! | file | concern |
//! |---|---|
//! | `sample` | what the broker says, and what its counters have grown by since the time before |
//! | `table` | queues and connections as rows, sorted and chosen |
//! | `view` | what is shown, and what keys change of it |
//! | `screen` | draws a view |

mod sample;
mod screen;
mod table;
#[cfg(test)]
mod tests;
mod view;

use super::administer;
use super::http_client::Broker;
use super::output;
use clap::{Arg, ArgAction, ArgMatches, Command};
use ratatui::crossterm::event::{self, Event};
use sample::Sample;
use std::io::IsTerminal;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use view::{Next, View};

/// How long keys wait to be looked at.
const TICK: Duration = Duration::from_millis(50);
/// Seconds from one look at the broker to the next.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.2..=3600.0;

const KEYS: &str = "Keys:
  Tab          queues, connections
  < >          the column that sorts
  r            the other way round
  /            only rows with a text; Enter keeps it, Esc drops it
  arrows, Page Up, Page Down, Home, End
  space        stand still
  q            leave";

/// The command.
pub(super) fn command() -> Command {
    let interval = Arg::new("interval")
        .long("interval")
        .short('i')
        .value_name("SECONDS")
        .default_value("2")
        .value_parser(clap::value_parser!(f64))
        .help("From one look to the next, 0.2 to 3600");
    let once = Arg::new("once")
        .long("once")
        .action(ArgAction::SetTrue)
        .help("Print one screen as text, whole, and end");
    Command::new("top")
        .about("What a running broker does now: rates, depths, slow consumers")
        .after_help(KEYS)
        .args([interval, once])
}

/// Carries it out.
pub(super) fn run(matches: &ArgMatches) -> Result<(), String> {
    let seconds = *matches.get_one::<f64>("interval").unwrap_or(&2.0);
    if !INTERVALS.contains(&seconds) {
        return Err("--interval: expected 0.2 to 3600 seconds".into());
    }
    let interval = Duration::from_secs_f64(seconds);
    let broker = administer::broker(matches)?;
    // A wrong address shows before the screen is taken.
    let first = Sample::take(&broker)?;
    if matches.get_flag("once") || matches.get_flag("json") {
        return print(&broker, first, interval, matches.get_flag("json"));
    }
    if !std::io::stdout().is_terminal() {
        return Err("standard output is no terminal: --once prints one screen as text".into());
    }
    let samples = ask_regularly(broker, interval);
    let mut terminal = ratatui::try_init().map_err(|error| format!("the terminal: {error}"))?;
    let done = show(&mut terminal, View::new(first), &samples);
    ratatui::restore();
    done
}

/// Prints what changes within an interval.
fn print(broker: &Broker, first: Sample, interval: Duration, as_json: bool) -> Result<(), String> {
    std::thread::sleep(interval);
    let mut view = View::new(first);
    view.take(Ok(Sample::take(broker)?));
    let text = if as_json { format!("{:#}\n", view.as_json()) } else { view.as_text() };
    output::put(text).map(drop)
}

type Answer = Result<Sample, String>;

/// Asks the broker again and again, on a thread of its own, which ends when nobody listens.
fn ask_regularly(broker: Broker, interval: Duration) -> Receiver<Answer> {
    let (sender, samples) = mpsc::channel();
    std::thread::spawn(move || {
        let ask = |sender: &Sender<Answer>| {
            let started = Instant::now();
            let is_heard = sender.send(Sample::take(&broker)).is_ok();
            (is_heard, interval.saturating_sub(started.elapsed()))
        };
        std::thread::sleep(interval);
        while let (true, rest) = ask(&sender) {
            std::thread::sleep(rest);
        }
    });
    samples
}

/// Draws, and does what keys say, until one says to leave.
fn show(
    terminal: &mut ratatui::DefaultTerminal,
    mut view: View,
    samples: &Receiver<Answer>,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("the terminal: {error}");
    loop {
        terminal.draw(|frame| screen::draw(&mut view, frame)).map_err(failed)?;
        loop {
            if event::poll(TICK).map_err(failed)? {
                match event::read().map_err(failed)? {
                    Event::Key(key) if view.press(key) == Next::Leave => return Ok(()),
                    _ => break,
                }
            }
            match samples.recv_timeout(Duration::ZERO) {
                Ok(answer) => {
                    view.take(answer);
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }
}
