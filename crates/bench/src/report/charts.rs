//! Plots as SVG text: lines over a linear or logarithmic axis, and bars. Knows nothing of brokers.

use std::fmt::Write;

const WIDTH: f64 = 430.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 42.0;
/// A factor between the least and the most from which on a linear axis hides the least.
const LOG_FROM: f64 = 30.0;

/// One line of a plot.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) name: String,
    /// Which colour, from a list that begins again after its end.
    pub(super) color: usize,
    /// Figures of a text rather than of a run.
    pub(super) dashed: bool,
    pub(super) points: Vec<(f64, f64)>,
}

/// Lines over one axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lines {
    pub(super) title: String,
    pub(super) x_label: String,
    pub(super) y_label: String,
    pub(super) x_log: bool,
    pub(super) lines: Vec<Line>,
}

/// A scale from values to places.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scale {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Scale {
    fn place(&self, value: f64) -> f64 {
        let part = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + part * (self.to - self.from)
    }

    /// Round values between the ends.
    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let (mut ticks, mut decade) = (Vec::new(), 10f64.powf(self.low.log10().floor()));
            let decades = (self.high / self.low).log10();
            let steps: &[f64] = if decades > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            while decade <= self.high {
                let within =
                    |value: &f64| *value >= self.low * 0.999 && *value <= self.high * 1.001;
                ticks.extend(steps.iter().map(|step| step * decade).filter(within));
                decade *= 10.0;
            }
            return ticks;
        }
        let rough = (self.high - self.low) / 5.0;
        let decade = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|step| step * decade).into_iter().find(|it| *it >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|count| count as f64 * step).collect()
    }
}

impl Lines {
    /// The whole plot; empty if there is nothing to draw.
    pub(super) fn svg(&self) -> String {
        let drawn = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite();
        let points: Vec<(f64, f64)> =
            self.lines.iter().flat_map(|line| line.points.iter().filter(drawn)).copied().collect();
        if points.is_empty() {
            return String::new();
        }
        let (x, y) = (self.x_scale(&points), y_scale(&points));
        let mut svg = String::new();
        open(&mut svg, &self.title, HEIGHT);
        self.axes(&mut svg, &x, &y);
        for line in &self.lines {
            draw(&mut svg, line, &x, &y);
        }
        svg.push_str("</svg>");
        format!("<figure>{svg}{}</figure>", self.legend())
    }

    fn x_scale(&self, points: &[(f64, f64)]) -> Scale {
        let (low, high) = extent(points.iter().map(|point| point.0));
        let log = self.x_log && low > 0.0 && high > low;
        let (low, high) = match (log, high > low) {
            (true, _) => (low / 1.05, high * 1.05),
            (false, true) => (low.min(if low <= high * 0.3 { 0.0 } else { low }), high),
            (false, false) => (low - 1.0, high + 1.0),
        };
        Scale { low, high, log, from: LEFT, to: WIDTH - RIGHT }
    }

    fn axes(&self, svg: &mut String, x: &Scale, y: &Scale) {
        for tick in y.ticks() {
            let at = y.place(tick);
            put(
                svg,
                &format!(
                    "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"tick\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                    WIDTH - RIGHT,
                    LEFT - 6.0,
                    at + 3.5,
                    short(tick)
                ),
            );
        }
        let xs = self.x_ticks(x);
        let base = HEIGHT - BOTTOM;
        for tick in xs {
            let at = x.place(tick);
            put(
                svg,
                &format!(
                    "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{base}\" y2=\"{:.1}\"/>\
                 <text class=\"tick\" text-anchor=\"middle\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>",
                    base + 4.0,
                    base + 16.0,
                    short(tick)
                ),
            );
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        put(
            svg,
            &format!(
                "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{base}\" y2=\"{base}\"/>\
             <text class=\"label\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>\
             <text class=\"label\" x=\"4\" y=\"{:.1}\">{}</text>",
                WIDTH - RIGHT,
                HEIGHT - 8.0,
                escape(&self.x_label),
                TOP - 9.0,
                escape(&self.y_label)
            ),
        );
    }

    /// The places that were measured if they are few, round ones otherwise.
    fn x_ticks(&self, x: &Scale) -> Vec<f64> {
        let solid = self.lines.iter().filter(|line| !line.dashed);
        let mut places: Vec<f64> =
            solid.flat_map(|line| line.points.iter().map(|point| point.0)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let ticks = if places.len() <= 12 { places } else { x.ticks() };
        let mut shown: Vec<f64> = Vec::new();
        for tick in ticks {
            if shown.last().is_none_or(|last| x.place(tick) - x.place(*last) > 28.0) {
                shown.push(tick);
            }
        }
        shown
    }

    fn legend(&self) -> String {
        let mut text = String::from("<figcaption>");
        for line in self.lines.iter().filter(|line| !line.points.is_empty()) {
            let class = if line.dashed { "key dash" } else { "key" };
            let (color, name) = (line.color % COLORS, escape(&line.name));
            put(&mut text, &format!("<span class=\"{class} c{color}\">{name}</span> "));
        }
        text + "</figcaption>"
    }
}

/// How many colours there are.
pub(super) const COLORS: usize = 8;

fn open(svg: &mut String, title: &str, height: f64) {
    put(
        svg,
        &format!(
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{0}\">\
         <text class=\"title\" x=\"{WIDTH}\" text-anchor=\"end\" y=\"14\">{0}</text>",
            escape(title)
        ),
    );
}

fn y_scale(points: &[(f64, f64)]) -> Scale {
    let (low, high) = extent(points.iter().map(|point| point.1));
    let log = low > 0.0 && high / low > LOG_FROM;
    let (low, high) = match log {
        true => (low / 1.3, high * 1.3),
        false => (low.min(0.0), if high > 0.0 { high * 1.08 } else { 1.0 }),
    };
    Scale { low, high, log, from: HEIGHT - BOTTOM, to: TOP }
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)))
}

fn draw(svg: &mut String, line: &Line, x: &Scale, y: &Scale) {
    let color = line.color % COLORS;
    let dash = if line.dashed { " dash" } else { "" };
    let path: Vec<String> = line
        .points
        .iter()
        .filter(|(_, value)| value.is_finite())
        .map(|(at, value)| format!("{:.1},{:.1}", x.place(*at), y.place(*value)))
        .collect();
    put(svg, &format!("<polyline class=\"line c{color}{dash}\" points=\"{}\"/>", path.join(" ")));
    // Points that are many would hide the line, and those of a text are its constants; one alone has no
    // line.
    if line.points.len() > 40 || line.dashed && line.points.len() > 1 {
        return;
    }
    for ((at, value), place) in line.points.iter().zip(&path) {
        let Some((cx, cy)) = place.split_once(',') else { continue };
        let (name, at, value) = (escape(&line.name), short(*at), full(*value));
        put(
            svg,
            &format!(
                "<circle class=\"dot c{color}\" cx=\"{cx}\" cy=\"{cy}\" r=\"3\"><title>{name}, {at}: {value}\
             </title></circle>"
            ),
        );
    }
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) color: usize,
    pub(super) dashed: bool,
    pub(super) value: f64,
}

/// Bars one below the other; on a logarithmic scale where a linear one would hide the least.
pub(super) fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    let bars: Vec<&Bar> = bars.iter().filter(|bar| bar.value.is_finite()).collect();
    let (low, high) = extent(bars.iter().map(|bar| bar.value).filter(|value| *value > 0.0));
    if bars.is_empty() {
        return String::new();
    }
    let (name_width, row) = (126.0, 24.0);
    let height = TOP + row * bars.len() as f64 + 8.0;
    let log = high / low > LOG_FROM;
    let (low, high) = match (log, high.is_finite()) {
        (true, _) => (low / 3.0, high),
        (false, true) => (0.0, high),
        (false, false) => (0.0, 1.0),
    };
    let scale = Scale { low, high, log, from: name_width, to: WIDTH - 84.0 };
    let mut svg = String::new();
    let scale_name = if log { ", logarithmic" } else { "" };
    open(&mut svg, &format!("{title}, {unit}{scale_name}"), height);
    for (index, bar) in bars.iter().enumerate() {
        let y = TOP + row * index as f64;
        let end = scale.place(bar.value).max(name_width + 1.0);
        let dash = if bar.dashed { " text" } else { "" };
        put(
            &mut svg,
            &format!(
                "<text class=\"tick\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
             <rect class=\"bar c{}{dash}\" x=\"{name_width}\" y=\"{:.1}\" width=\"{:.1}\" \
             height=\"15\" rx=\"2\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                name_width - 8.0,
                y + 13.0,
                escape(&bar.name),
                bar.color % COLORS,
                y + 1.0,
                end - name_width,
                end + 6.0,
                y + 13.0,
                full(bar.value)
            ),
        );
    }
    svg.push_str("</svg>");
    format!("<figure>{svg}</figure>")
}

fn put(text: &mut String, more: &str) {
    text.write_str(more).expect("a String takes everything");
}

/// A figure for an axis: `1.5M`, `20k`, `0.05`.
pub(super) fn short(value: f64) -> String {
    let (scaled, suffix) = match value.abs() {
        it if it >= 1e9 => (value / 1e9, "G"),
        it if it >= 1e6 => (value / 1e6, "M"),
        it if it >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        it if it >= 100.0 || it == 0.0 => 0,
        it if it >= 10.0 => 1,
        it if it >= 1.0 => 2,
        _ => 4,
    };
    let text = format!("{scaled:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    text + suffix
}

fn full(value: f64) -> String {
    match value.abs() {
        it if it >= 1_000.0 => super::grouped(value),
        it if it >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Text for HTML and SVG.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(low: f64, high: f64, log: bool) -> Scale {
        Scale { low, high, log, from: 0.0, to: 100.0 }
    }

    #[test]
    fn scales_place_values_between_their_ends() {
        assert_eq!(scale(0.0, 10.0, false).place(5.0), 50.0);
        assert!((scale(1.0, 100.0, true).place(10.0) - 50.0).abs() < 1e-9);
        assert_eq!(scale(0.0, 10.0, false).ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(scale(1.0, 100.0, true).ticks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(scale(1.0, 1e6, true).ticks().len(), 7);
    }

    #[test]
    fn figures_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.05, "0.05"),
            (1.0, "1"),
            (2_048.0, "2048"),
            (10_240.0, "10.2k"),
            (1.5e6, "1.5M"),
            (2e9, "2G"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn a_plot_has_a_line_for_each_and_none_without_points() {
        let line = |name: &str, points: &[(f64, f64)]| Line {
            name: name.to_owned(),
            color: 0,
            dashed: false,
            points: points.to_vec(),
        };
        let plot = |lines| Lines {
            title: "a < b".to_owned(),
            x_label: "x".to_owned(),
            y_label: "y".to_owned(),
            x_log: true,
            lines,
        };
        let svg =
            plot(vec![line("one", &[(1.0, 2.0), (10.0, 3.0)]), line("two", &[(1.0, 1.0)])]).svg();
        assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (2, 3));
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN") && !svg.contains("inf"));
        assert_eq!(plot(vec![line("none", &[])]).svg(), "");
        // A figure of a text at one place is seen, too.
        let svg = plot(vec![Line { dashed: true, ..line("text", &[(8.0, 9.0)]) }]).svg();
        assert_eq!(svg.matches("<circle").count(), 1);
        // One place only, and a figure of zero, are drawn all the same.
        let svg = plot(vec![line("zero", &[(5.0, 0.0)])]).svg();
        assert!(svg.contains("<circle") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn bars_have_a_figure_each() {
        let bar = |value| Bar { name: "b".to_owned(), color: 1, dashed: false, value };
        let svg = bars("t", "us", &[bar(1.0), bar(1_000.0), bar(0.0)]);
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(
            svg.contains("logarithmic") && !svg.contains("NaN") && !svg.contains("inf"),
            "{svg}"
        );
        assert_eq!(bars("t", "us", &[]), "");
        assert!(!bars("t", "us", &[bar(0.0)]).contains("NaN"));
    }
}
