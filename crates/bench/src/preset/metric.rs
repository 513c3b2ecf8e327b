//! The metrics: name, unit, decimals, and which direction is better.

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    /// More.
    Higher,
    /// Less.
    Lower,
}

/// A metric.
#[derive(Debug)]
pub(crate) struct Metric {
    /// Its name in results.
    pub(crate) key: &'static str,
    /// Its name in texts.
    pub(crate) label: &'static str,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// Digits after the point.
    pub(crate) decimals: usize,
    /// Which direction is better.
    pub(crate) better: Better,
}

const fn more(
    key: &'static str,
    label: &'static str,
    unit: &'static str,
    decimals: usize,
) -> Metric {
    Metric { key, label, unit, decimals, better: Better::Higher }
}

const fn less(
    key: &'static str,
    label: &'static str,
    unit: &'static str,
    decimals: usize,
) -> Metric {
    Metric { key, label, unit, decimals, better: Better::Lower }
}

static METRICS: &[Metric] = &[
    more("publish_rate", "publish rate", "msg/s", 0),
    more("receive_rate", "receive rate, all subscribers", "msg/s", 0),
    more("transfer_rate", "publish transfer rate", "msg/s", 0),
    more("out_rate", "message rate out", "msg/s", 0),
    more("of_fastest", "of the fastest protocol", "%", 0),
    more("confirm_rate", "confirmed", "msg/s", 0),
    more("bandwidth", "bandwidth", "MB/s", 1),
    less("duration", "total duration", "s", 3),
    less("mean_us", "mean travel time", "us", 1),
    less("p50_us", "latency p50", "us", 1),
    less("p99_us", "latency p99", "us", 1),
    less("p999_us", "latency p99.9", "us", 1),
    less("max_us", "latency max", "us", 1),
    less("confirm_p50_us", "confirm p50", "us", 1),
    less("confirm_p99_us", "confirm p99", "us", 1),
    less("first_third_us", "travel time, first third", "us", 1),
    less("last_third_us", "travel time, last third", "us", 1),
    less("growth", "growth of travel time", "x", 2),
    less("broker_us", "broker CPU per message", "us", 2),
    less("tool_us", "tool CPU per message", "us", 2),
    less("broker_cores", "broker CPU", "cores", 2),
    less("publisher_cores", "publishers' CPU", "cores", 2),
    less("consumer_cores", "consumers' CPU", "cores", 2),
    less("broker_mib", "broker memory", "MiB", 1),
    less("broker_mib_peak", "broker memory, most", "MiB", 1),
    less("switches", "context switches per message", "", 3),
    less("disk_bytes", "octets to disk per message", "B", 0),
    less("flushes", "disk flushes per 1,000 messages", "", 2),
    less("connect_ms", "connect to first message", "ms", 3),
    less("kib_each", "broker memory per client", "KiB", 2),
    less("bytes_each", "broker memory per message", "B", 0),
    more("opened_rate", "clients connected", "/s", 0),
    less("wave_ms", "one message to all", "ms", 2),
    more("wave_rate", "one message to all", "msg/s", 0),
    less("idle_cores", "broker CPU, all idle", "cores", 3),
    less("storm_ms", "all reconnected after", "ms", 0),
    more("spool_rate", "spool", "msg/s", 0),
    more("unspool_rate", "unspool", "msg/s", 0),
    more("orders_in", "orders in", "order/s", 0),
    more("orders_out", "orders completed", "order/s", 0),
    more("quotes_out", "confirmations and quotes", "msg/s", 0),
    less("gateway_cores", "gateway CPU", "cores", 2),
    less("engine_cores", "matching engine CPU", "cores", 2),
    less("segments", "TCP segments", "", 0),
    less("segment_bytes", "mean segment on loopback", "B", 0),
    less("segment_gap_us", "mean gap", "us", 1),
    more("rate_left", "rate left to the healthy", "%", 1),
    less("p99_times", "p99 of the healthy, beside alone", "x", 2),
    less("p99_times_control", "the same, beside a null broker", "x", 2),
    less("p99_control_us", "latency p99 beside that null broker", "us", 1),
    less("cut_off", "misbehaving clients cut off", "", 0),
    more("confirmed", "confirmed before the kill", "msg", 0),
    less("confirmed_lost", "confirmed and lost", "msg", 0),
    less("restart_ms", "restart to first message", "ms", 0),
    more("flushes_per_confirm", "flushes per confirm, window 1", "", 2),
    more("slowest_second", "slowest second", "msg/s", 0),
];

/// The metric of that key.
pub(crate) fn metric(key: &str) -> &'static Metric {
    static UNKNOWN: Metric = more("unknown", "unknown", "", 2);
    METRICS.iter().find(|metric| metric.key == key).unwrap_or(&UNKNOWN)
}
