//! A bare socket in place of a driver: the same bytes in the same pieces, neither encoded nor parsed.

use crate::client::ReceiveBuffer;
use crate::interrupt;
use crate::measure::process::thread_cpu_ns;
use std::convert::Infallible;
use std::io::{self, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Measures the kernel's CPU time of a thread that only moves bytes. Between two calls it spins as long as
/// the driver works on those bytes: earlier calls would move other pieces and wait more.
pub(super) struct BareSocket {
    driver_ns_per_byte: f64,
    begun_ns: u64,
    /// CPU time of the calls, and the bytes they moved.
    pub(super) spent_ns: u64,
    pub(super) bytes: u64,
}

impl BareSocket {
    /// Starts measuring the calling thread.
    pub(super) fn begin(driver_ns_per_byte: f64) -> BareSocket {
        BareSocket { driver_ns_per_byte, begun_ns: thread_cpu_ns(), spent_ns: 0, bytes: 0 }
    }

    /// Writes the same bytes again and again for `span`, or until interrupted.
    pub(super) fn write(
        mut self,
        mut stream: TcpStream,
        batch: &[u8],
        span: Duration,
    ) -> io::Result<BareSocket> {
        let start = Instant::now();
        while start.elapsed() < span && !interrupt::requested() {
            self.call(|| stream.write_all(batch).map(|()| batch.len()))?;
        }
        Ok(self)
    }

    pub(super) fn read(mut self, mut stream: TcpStream) -> io::Result<BareSocket> {
        let mut incoming = ReceiveBuffer::default();
        while self.call(|| incoming.fill(&mut stream))? > 0 {
            let all = |bytes: &[u8]| Ok::<_, Infallible>(Some(((), bytes.len())));
            let Ok(_) = incoming.take(all);
        }
        Ok(self)
    }

    fn call(&mut self, call: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
        let before_ns = thread_cpu_ns();
        let count = call()?;
        let mut now_ns = thread_cpu_ns();
        self.spent_ns += now_ns - before_ns;
        self.bytes += count as u64;
        let due_ns = self.begun_ns + (self.bytes as f64 * self.driver_ns_per_byte) as u64;
        while now_ns < due_ns {
            now_ns = thread_cpu_ns();
        }
        Ok(count)
    }
}
