//! The engine's time: the wall clock at the start, advanced by a monotonic clock. A wall clock that was set
//! while no broker ran is noticed by what the last one left in a file.

use crate::threads;
use angarium_engine::Time;
use angarium_journal::checksum;
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The file in the data folder.
const FILE: &str = "clock";
/// How often it is written: so much later than a broker's end its time may go on after a crash.
const INTERVAL: Duration = Duration::from_secs(10);
/// The kernel's name of the machine's boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Reads the time once a turn.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    wall: Time,
}

impl Clock {
    /// A clock that begins with the wall clock's time.
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now(), wall: wall() }
    }

    pub(crate) fn now(&self) -> Time {
        self.wall.plus(self.start.elapsed())
    }
}

fn wall() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Time::default().plus(since)
}

/// The kernel's name of the machine's boot; empty where there is none.
pub(super) fn boot_id() -> String {
    fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned()
}

/// The broker's time at one moment of a boot of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    time: Time,
    /// Microseconds since the machine started, sleep included.
    since_boot: u64,
    boot: String,
}

impl Mark {
    /// That time, at this moment.
    fn of(time: Time) -> Mark {
        let since = clock_gettime(ClockId::Boottime);
        let since_boot = Duration::new(since.tv_sec as u64, since.tv_nsec as u32);
        Mark { time, since_boot: since_boot.as_micros() as u64, boot: boot_id() }
    }

    fn text(&self) -> String {
        let line = format!("{} {} {}", self.time.0, self.since_boot, self.boot);
        format!("{line} {:08x}\n", checksum(line.as_bytes()))
    }

    /// What [`Mark::text`] made; nothing of a damaged file.
    fn parse(text: &str) -> Option<Mark> {
        let (line, sum) = text.trim_end().rsplit_once(' ')?;
        if sum != format!("{:08x}", checksum(line.as_bytes())) {
            return None;
        }
        let mut words = line.split(' ');
        let mut number = || words.next()?.parse().ok();
        let (time, since_boot) = (Time(number()?), number()?);
        Some(Mark { time, since_boot, boot: words.next()?.to_owned() })
    }

    /// The broker's time now, where the wall clock would have it be as in `now`. Within one boot the time
    /// that passed is known whatever was done to the wall clock. After another, it goes on from here at
    /// least, so that nothing is held longer than it had left.
    fn goes_on(&self, now: &Mark) -> Time {
        if self.boot == now.boot && !now.boot.is_empty() && self.since_boot <= now.since_boot {
            return Time(self.time.0.saturating_add(now.since_boot - self.since_boot));
        }
        self.time.max(now.time)
    }
}

/// Writes down the time until it is dropped.
#[derive(Debug)]
pub(crate) struct TimeKeeper {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Clock {
    /// The clock of a broker with that data folder, which goes on where the last one ended, and what keeps
    /// its time for the next one.
    pub(crate) fn of(data: &Path) -> Result<(Clock, TimeKeeper), String> {
        let path = data.join(FILE);
        let last = fs::read_to_string(&path).ok().and_then(|text| Mark::parse(&text));
        let now = Mark::of(wall());
        let begins = last.map_or(now.time, |last| last.goes_on(&now));
        let clock = Clock { start: Instant::now(), wall: begins };
        let off = begins.0.abs_diff(now.time.0) / 1_000_000;
        if off > 0 {
            let is_ahead = begins > now.time;
            let direction = if is_ahead { "ahead of" } else { "behind" };
            tracing::warn!(
                "the wall clock was set while no broker ran: times to live and delays go on by a time that \
                 is {off} s {direction} it"
            );
        }
        Ok((clock, TimeKeeper::start(clock, path)?))
    }
}

impl TimeKeeper {
    fn start(clock: Clock, path: PathBuf) -> Result<TimeKeeper, String> {
        let (end, ended) = channel();
        let run = move || loop {
            // A time that cannot be written costs only what it is there for.
            let _ = write(&path, &Mark::of(clock.now()).text());
            if ended.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                let _ = write(&path, &Mark::of(clock.now()).text());
                return;
            }
        };
        let thread = threads::spawn("clock", run)?;
        Ok(TimeKeeper { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for TimeKeeper {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Replaces the file as a whole, without waiting for the disk.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("preparing");
    fs::write(&new, text)?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(boot: &str, time: u64, since_boot: u64) -> Mark {
        Mark { time: Time(time), since_boot, boot: boot.to_owned() }
    }

    #[test]
    fn time_goes_on_whatever_the_wall_clock_was_set_to() {
        // The last broker's mark, the wall clock's time, since which boot, and the time to begin with.
        let last = mark("a", 1_000, 500);
        for (boot, wall, since_boot, expected) in [
            // The same boot: 70 passed, whether the wall clock was left alone, set back or set forward.
            ("a", 1_070, 570, 1_070),
            ("a", 200, 570, 1_070),
            ("a", 9_000, 570, 1_070),
            // Another boot: what passed is not known; it goes on, and never back.
            ("b", 1_070, 10, 1_070),
            ("b", 200, 10, 1_000),
            ("b", 9_000, 10, 9_000),
            // Without a name of the boot, as after another one.
            ("", 200, 570, 1_000),
        ] {
            let begins = last.goes_on(&mark(boot, wall, since_boot));
            assert_eq!(begins, Time(expected), "{boot} {wall} {since_boot}");
        }
        assert_eq!(mark("", 1_000, 500).goes_on(&mark("", 200, 570)), Time(1_000));
    }

    #[test]
    fn a_damaged_file_says_nothing() {
        let whole = mark("2f1c-77", 1_000, 500);
        assert_eq!(Mark::parse(&whole.text()), Some(whole.clone()));
        for text in ["", "1000", "1000 500 2f1c-77 00000000\n", &whole.text().replace('5', "6")] {
            assert_eq!(Mark::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_broker_leaves_its_time_to_the_next() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join(FILE);
        // A wall clock that was an hour ahead, in an earlier boot, was set right.
        let ahead = wall().plus(Duration::from_secs(3_600));
        fs::write(&path, mark("earlier", ahead.0, 1).text()).unwrap();
        let (clock, keeper) = Clock::of(data.path()).unwrap();
        assert!(clock.now() >= ahead && clock.now() < ahead.plus(Duration::from_secs(60)));
        drop(keeper);
        let left = Mark::parse(&fs::read_to_string(&path).unwrap()).unwrap();
        assert!(left.time >= ahead && left.boot != "earlier");
        let (next, _keeper) = Clock::of(data.path()).unwrap();
        assert!(next.now() >= left.time && next.now() < left.time.plus(Duration::from_secs(60)));
    }
}
