//! Results of single commands as text: name and value per line. Does not know how they were measured.

use crate::load::first_message::StartTime;
use crate::load::idle::IdleCost;
use crate::load::isolation::Isolation;
use crate::load::round_trip::RoundTrips;
use crate::load::{Outcome, Schedule, Verdict};
use crate::measure::bare_sockets::SocketSpeed;
use crate::measure::disk::DiskSpeed;
use crate::measure::latency::Summary;
use crate::output::grouped;
use std::fmt::Write;

/// How busy the whole machine was during the run; `None` where that is not known.
fn machine(outcome: &Outcome) -> Option<String> {
    let busy = Some(outcome.loads.machine).filter(|part| *part > 0.0);
    let busy = busy.map(|part| format!("{:.0}% of all processors busy", 100.0 * part));
    // A few tenths of a percent already reach a p99.
    let stolen = Some(100.0 * outcome.loads.stolen).filter(|percent| *percent >= 0.05);
    let stolen = stolen.map(|percent| format!("{percent:.1}% taken by its host"));
    let still = outcome.stalls.filter(|stalls| stalls.total_us > 0.0).map(|stalls| {
        let (total_ms, longest_ms) = (stalls.total_us / 1e3, stalls.longest_us / 1e3);
        format!("stood still for {total_ms:.1} ms, {longest_ms:.1} ms at once")
    });
    let parts: Vec<String> = busy.into_iter().chain(stolen).chain(still).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The result of `bench load`.
pub(crate) fn load(outcome: &Outcome) -> String {
    let mut text = format!("{}\n", outcome.plan);
    let rates = &outcome.rates;
    let mut line = |name: &str, value: String| {
        writeln!(text, "  {name:<12} {value}").expect("a String takes everything");
    };
    line("published", format!("{:>12} msgs/s", grouped(rates.published)));
    if outcome.confirmed > 0 {
        line("confirmed", format!("{:>12} msgs/s", grouped(rates.confirmed)));
    }
    if outcome.verdict.is_some() || rates.delivered > 0.0 {
        let megabytes = rates.delivered_bytes / 1e6;
        line("delivered", format!("{:>12} msgs/s  {megabytes:.1} MB/s", grouped(rates.delivered)));
    }
    if rates.second_max > 0.0 {
        let (min, max) = (grouped(rates.second_min), grouped(rates.second_max));
        line("seconds", format!("{min} to {max} msgs/s"));
    }
    if let Some(broker) = &outcome.broker {
        let per_message = broker.cpu_ns_per_message;
        let (share, rss_mib) = (broker.cpu_share * 100.0, broker.rss_kib as f64 / 1024.0);
        let peak_mib = broker.rss_peak_kib as f64 / 1024.0;
        let switches = grouped(broker.context_switches_per_s);
        line("broker CPU", format!("{per_message:>12.0} ns/msg  {share:.0}% of a core"));
        line(
            "broker",
            format!("{rss_mib:.1} MiB resident, {peak_mib:.1} at most, {switches} switches/s"),
        );
    }
    if let Some(instructions) = outcome.instructions_per_message {
        line("broker", format!("{instructions:>12.0} instructions/msg in user mode"));
    }
    let (tool_ns, tool_share) = (outcome.tool.cpu_ns_per_message, outcome.tool.cpu_share * 100.0);
    line("tool CPU", format!("{tool_ns:>12.0} ns/msg  {tool_share:.0}% of a core"));
    if let Some(schedule) = &outcome.schedule {
        line("schedule", kept(schedule));
    }
    if let Some(machine) = machine(outcome) {
        line("machine", machine);
    }
    if outcome.workers > 0 {
        let error_us = outcome.clock_error_us.unwrap_or(0.0);
        line("workers", format!("{}, clocks known to {error_us:.1} us", outcome.workers));
    }
    line("bottleneck", outcome.bottleneck.name().to_owned());
    if let Some(latency) = &outcome.latency {
        line("latency", quantiles(latency));
    }
    if let Some(latency) = &outcome.confirm_latency {
        line("to confirm", quantiles(latency));
    }
    if outcome.refused > 0 {
        line("refused", outcome.refused.to_string());
    }
    if !outcome.cut_off.is_empty() {
        let (count, why) = (outcome.cut_off.len(), &outcome.cut_off[0]);
        line("cut off", format!("{count} consumers, before the end: {why}"));
    }
    if let Some(verdict) = &outcome.verdict {
        line("verdict", judged(verdict));
    }
    if let Some(why) = &outcome.unjudged {
        line("verdict", format!("none: {why}"));
    }
    if outcome.interrupted {
        line("PARTIAL", format!("it was interrupted after {:.1} s", outcome.measured_s));
    }
    text
}

/// The verdict on the messages.
fn judged(verdict: &Verdict) -> String {
    let state = if verdict.is_clean() { "clean" } else { "NOT CLEAN" };
    format!("{state}: {}", verdict.describe())
}

/// The result of `bench idle`.
pub(crate) fn idle(cost: &IdleCost) -> String {
    let mut text = format!(
        "{} idle connections, each with a subscription\n  \
         broker memory {:.1} KiB each ({} KiB before, {} KiB after)\n  \
         opened {}/s, {:.1}% of a core while idle\n",
        cost.connections,
        cost.kib_per_connection,
        cost.rss_before_kib,
        cost.rss_after_kib,
        grouped(cost.opened_per_s),
        cost.idle_cpu_share * 100.0
    );
    if !cost.waves_ms.is_empty() {
        let waves: Vec<String> = cost.waves_ms.iter().map(|ms| format!("{ms:.1}")).collect();
        text += &format!("  one message to all of them {} ms\n", waves.join(", "));
    }
    text + &format!("  verdict      {}\n", judged(&cost.verdict))
}

/// The result of `bench ping`.
pub(crate) fn round_trips(trips: &RoundTrips) -> String {
    let mut text =
        format!("round trips of {} B between two connections, closed loop\n", trips.size_bytes);
    if let Some(latency) = &trips.latency {
        text +=
            &format!("  {} round trips, {}\n", grouped(latency.count as f64), quantiles(latency));
    }
    if let Some(broker) = &trips.broker {
        text += &format!("  broker CPU {:.1} us a round trip\n", broker.cpu_ns_per_message / 1e3);
    }
    text + &format!("  verdict      {}\n", judged(&trips.verdict))
}

/// The result of `bench neighbours`: healthy clients alone, beside misbehaving ones, alone again, and beside
/// the null broker.
pub(crate) fn isolation(found: &Isolation) -> String {
    let mut text = format!(
        "alone: {}beside misbehaving clients: {}alone again: {}beside a null broker: {}",
        load(&found.alone[0]),
        load(&found.beside),
        load(&found.alone[1]),
        load(&found.control)
    );
    let mut line = |name: &str, value: String| {
        writeln!(text, "  {name:<12} {value}").expect("a String takes everything");
    };
    line("rate left", format!("{:.1}%", found.rate_part * 100.0));
    line(
        "p99",
        match found.p99_times {
            Some(times) => {
                let [before, after] =
                    found.alone.each_ref().map(|run| p99_us(run.latency.as_ref()));
                format!("{times:.2} times that alone ({before} us before, {after} after)")
            }
            None => "no percentiles to go by: the tool fell behind its own schedule, or the machine stood \
                     still"
            .to_owned(),
        },
    );
    if found.repeated > 0 {
        line("repeated", format!("{} runs in which the machine stood still", found.repeated));
    }
    if let Some(times) = found.p99_times_control {
        line("", format!("{times:.2} times that beside a null broker, without the broker"));
    }
    let flood = found.flooded_bytes_per_s / 1e6;
    let on_null_broker = found.control_flooded_bytes_per_s / 1e6;
    line("flood", format!("{flood:.1} MB/s, {on_null_broker:.1} MB/s on the null broker"));
    if found.backlog > 0 {
        let (drained, backlog) = (grouped(found.drained as f64), grouped(found.backlog as f64));
        line("backlog", format!("{drained} of {backlog} messages drained"));
    }
    line("cut off", format!("{} misbehaving connections", found.cut_off));
    text
}

/// The result of `bench start`.
pub(crate) fn start(time: &StartTime) -> String {
    format!(
        "accepts connections after {:.1} ms, first message delivered after {:.1} ms\n",
        time.listening_ms, time.first_message_ms
    )
}

/// The result of `bench raw`.
pub(crate) fn sockets(speed: &SocketSpeed) -> String {
    let mut text = format!(
        "bare TCP through a relay, {} B: {} msgs/s, {:.0} MB/s, {:.0} ns of CPU a message in all\n",
        speed.size_bytes,
        grouped(speed.messages_per_s),
        speed.bytes_per_s / 1e6,
        speed.cpu_ns_per_message
    );
    if let Some(round_trip) = &speed.round_trip {
        text += &format!("  round trip   {}\n", quantiles(round_trip));
    }
    if let Some(echo) = &speed.echo {
        text += &format!("  no relay     {}\n", quantiles(echo));
    }
    text
}

/// The result of `bench disk`.
pub(crate) fn disk(speed: &DiskSpeed) -> String {
    let mut text = format!(
        "plain sequential writes of {} B with fdatasync: {}/s, {:.1} MB/s\n",
        speed.flush_bytes,
        grouped(speed.flushes_per_s),
        speed.bytes_per_s / 1e6
    );
    if let Some(latency) = &speed.latency {
        text += &format!("  each         {}\n", quantiles(latency));
    }
    text
}

/// How well a load kept its schedule.
fn kept(schedule: &Schedule) -> String {
    let (part, lag) = (schedule.achieved_part * 100.0, quantiles(&schedule.lag));
    let behind = match schedule.tool_kept {
        true => "",
        false => "\n               the tool fell behind its own schedule: no percentiles",
    };
    format!("{part:.1}% of what was due; the tool's own lag {lag}{behind}")
}

fn p99_us(summary: Option<&Summary>) -> String {
    summary.map_or("?".to_owned(), |summary| format!("{:.0}", summary.p99_us))
}

fn quantiles(summary: &Summary) -> String {
    format!(
        "p50 {:.1}  p90 {:.1}  p99 {:.1}  p99.9 {:.1}  max {:.1} us",
        summary.p50_us, summary.p90_us, summary.p99_us, summary.p999_us, summary.max_us
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Rates;

    #[test]
    fn thousands_are_grouped() {
        for (value, text) in [
            (0.0, "0"),
            (999.4, "999"),
            (1e3, "1,000"),
            (1_234_567.0, "1,234,567"),
            (-1e3, "-1,000"),
        ] {
            assert_eq!(grouped(value), text);
        }
    }

    #[test]
    fn a_load_says_what_is_wrong() {
        let mut outcome = Outcome {
            plan: "the plan".to_owned(),
            rates: Rates { published: 1234.0, delivered: 1200.0, ..Rates::default() },
            verdict: Some(Verdict { expected: 10, delivered: 10, ..Verdict::default() }),
            ..Outcome::default()
        };
        let text = load(&outcome);
        assert!(text.starts_with("the plan\n"));
        assert!(text.contains("1,234 msgs/s") && text.contains("clean: 10 of 10"), "{text}");
        assert!(!text.contains("confirmed") && !text.contains("broker"), "{text}");
        outcome.verdict =
            Some(Verdict { expected: 10, delivered: 9, lost: 1, ..Verdict::default() });
        assert!(load(&outcome).contains("NOT CLEAN: 9 of 10 delivered, 1 lost"));
        outcome = Outcome { interrupted: true, measured_s: 2.04, verdict: None, ..outcome };
        assert!(load(&outcome).contains("PARTIAL      it was interrupted after 2.0 s"));
    }

    #[test]
    fn json_comes_back_as_it_was() {
        let outcome =
            Outcome { messages: 3, broker: Some(Default::default()), ..Outcome::default() };
        let json = serde_json::to_string(&outcome).expect("plain data");
        assert_eq!(serde_json::from_str::<Outcome>(&json).expect("our own"), outcome);
    }
}
