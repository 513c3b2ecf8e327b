//! Charts and bars of the page. uPlot draws charts in the browser from JSON beside the figure; bars are HTML
//! and need no script. Independent of brokers.

use super::Extent;
use maud::{Markup, PreEscaped, html};
use serde::Serialize;

/// How many colours `page.css` has.
pub(super) const COLORS: usize = 8;
/// Ratio of the greatest to the least value above which a linear axis would hide the least.
const LOG_FROM: f64 = 30.0;
/// More points than this are drawn as a line without dots.
const DOTS_MAX: usize = 40;
/// At most this many measured places are the marks of the x axis; of more it has round ones.
const MARKS_MAX: usize = 12;

/// A series as the legend names it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    pub(super) name: String,
    /// Index of the colour, modulo [`COLORS`].
    pub(super) color: usize,
    /// A printed figure or the bare machine rather than a run.
    pub(super) dashed: bool,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// One line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) key: Key,
    pub(super) points: Vec<Point>,
}

/// Lines over one x axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x_label: String,
    pub(super) y_label: String,
    /// Whether the x axis is logarithmic where its values allow it. The y axis decides by its values.
    pub(super) x_log: bool,
    pub(super) lines: Vec<Line>,
    /// The values of all charts that share the scale of the y axis; of this one without it.
    pub(super) shared: Option<Extent>,
}

/// A chart as `page.js` reads it.
#[derive(Debug, Serialize)]
struct ChartData<'a> {
    x: XAxis<'a>,
    y: YAxis<'a>,
    series: Vec<Series<'a>>,
    /// The places of all lines in order, then the values of each line there.
    data: Vec<Vec<Option<f64>>>,
}

#[derive(Debug, Serialize)]
struct XAxis<'a> {
    label: &'a str,
    log: bool,
    min: f64,
    max: f64,
    marks: Option<Vec<f64>>,
}

#[derive(Debug, Serialize)]
struct YAxis<'a> {
    label: &'a str,
    log: bool,
    /// The least and the greatest value of all charts with this scale.
    low: f64,
    high: f64,
}

#[derive(Debug, Serialize)]
struct Series<'a> {
    name: &'a str,
    color: usize,
    dashed: bool,
    dots: bool,
}

impl Chart {
    /// Leaves out what cannot be drawn; `None` if nothing remains.
    pub(super) fn drawable(mut self) -> Option<Chart> {
        for line in &mut self.lines {
            line.points.retain(|point| point.x.is_finite() && point.y.is_finite());
        }
        self.lines.retain(|line| !line.points.is_empty());
        (!self.lines.is_empty()).then_some(self)
    }

    /// Its values.
    fn extent(&self) -> Extent {
        Extent::of(self.lines.iter().flat_map(|line| &line.points).map(|point| point.y))
    }

    /// Gives charts of the same kind the scale of all their values.
    pub(super) fn share_scale(charts: &mut [Chart]) {
        let ends = charts.iter().map(Chart::extent).flat_map(|it| [it.low, it.high]);
        let shared = Extent::of(ends.collect::<Vec<f64>>());
        charts.iter_mut().for_each(|chart| chart.shared = Some(shared));
    }

    /// The same as bars, if there is one place only: points alone show nothing.
    pub(super) fn as_bars(&self) -> Option<Bars> {
        let places = distinct(self.lines.iter().flat_map(|line| &line.points));
        if places.len() > 1 {
            return None;
        }
        let bar = |line: &Line| Some(Bar { key: line.key.clone(), value: line.points.last()?.y });
        let place = places.first().map(|x| format!(", {} {}", full(*x), self.x_label));
        Some(Bars {
            title: self.title.clone() + &place.unwrap_or_default(),
            unit: self.y_label.clone(),
            bars: self.lines.iter().filter_map(bar).collect(),
            shared: None,
        })
    }

    /// The figure; of a chart that is [`Self::drawable`].
    pub(super) fn figure(&self) -> Markup {
        html! {
            figure.chart {
                h3 { (self.title) button type="button" hidden { "show all" } }
                div.canvas role="img" aria-label=(self.title) {}
                figcaption {}
                script type="application/json" { (inline_json(&self.data())) }
            }
        }
    }

    fn data(&self) -> ChartData<'_> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let places = distinct(points());
        let value = |line: &Line, x: f64| line.points.iter().find(|it| it.x == x).map(|it| it.y);
        let mut data = vec![places.iter().copied().map(Some).collect()];
        for line in &self.lines {
            data.push(places.iter().map(|x| value(line, *x)).collect());
        }
        let y = self.shared.unwrap_or_else(|| self.extent());
        let series = self.lines.iter().map(|line| Series {
            name: &line.key.name,
            color: line.key.color % COLORS,
            dashed: line.key.dashed,
            // A constant needs no dots, but one point alone has no line.
            dots: line.points.len() == 1 || !line.key.dashed && line.points.len() <= DOTS_MAX,
        });
        ChartData {
            x: self.x_axis(&places),
            y: YAxis {
                label: &self.y_label,
                log: y.low > 0.0 && y.high / y.low > LOG_FROM,
                low: y.low,
                high: y.high,
            },
            series: series.collect(),
            data,
        }
    }

    fn x_axis(&self, places: &[f64]) -> XAxis<'_> {
        let Extent { low, high } = Extent::of(places.iter().copied());
        let log = self.x_log && low > 0.0 && high > low;
        let (min, max) = match (log, high > low) {
            (true, _) => (low / 1.05, high * 1.05),
            (false, true) => (if low <= high * 0.3 { low.min(0.0) } else { low }, high),
            (false, false) => (low - 1.0, high + 1.0),
        };
        let solid = self.lines.iter().filter(|line| !line.key.dashed);
        let marks = distinct(solid.flat_map(|line| &line.points));
        let few = (1..=MARKS_MAX).contains(&marks.len());
        XAxis { label: &self.x_label, log, min, max, marks: few.then_some(marks) }
    }
}

/// The places of points, in order.
fn distinct<'a>(points: impl Iterator<Item = &'a Point>) -> Vec<f64> {
    let mut places: Vec<f64> = points.map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

/// JSON for a `script` element: no text within can end the element.
fn inline_json(data: &impl Serialize) -> Markup {
    let json = serde_json::to_string(data).expect("plain data");
    PreEscaped(json.replace('<', "\\u003c"))
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub(super) key: Key,
    pub(super) value: f64,
}

/// Bars one below the other, on a logarithmic scale where a linear one would hide the least.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bars {
    pub(super) title: String,
    pub(super) unit: String,
    pub(super) bars: Vec<Bar>,
    /// The values of all figures that share the scale; of this one without it.
    pub(super) shared: Option<Extent>,
}

impl Bars {
    /// Leaves out what cannot be drawn; `None` if nothing remains.
    pub(super) fn drawable(mut self) -> Option<Bars> {
        self.bars.retain(|bar| bar.value.is_finite());
        (!self.bars.is_empty()).then_some(self)
    }

    /// Its values that a logarithmic scale can show.
    fn extent(&self) -> Extent {
        Extent::of(self.bars.iter().map(|bar| bar.value).filter(|value| *value > 0.0))
    }

    /// Gives figures of the same kind the scale of all their values.
    pub(super) fn share_scale(figures: &mut [Bars]) {
        let ends = figures.iter().map(Bars::extent).flat_map(|it| [it.low, it.high]);
        let shared = Extent::of(ends.filter(|end| end.is_finite()).collect::<Vec<f64>>());
        figures.iter_mut().for_each(|bars| bars.shared = Some(shared));
    }

    /// The figure; of bars that are [`Self::drawable`].
    pub(super) fn figure(&self) -> Markup {
        let Extent { low, high } = self.shared.unwrap_or_else(|| self.extent());
        let log = high / low > LOG_FROM;
        let percent = |value: f64| match value {
            value if value <= 0.0 => 0.0,
            value if log => 100.0 * (3.0 * value / low).ln() / (3.0 * high / low).ln(),
            value => 100.0 * value / high,
        };
        let scale = if log { "log scale" } else { "linear scale" };
        html! {
            figure.bars {
                h3 { (self.title) }
                @for bar in &self.bars {
                    div.bar-row data-name=(bar.key.name) {
                        span { (bar.key.name) }
                        span.track {
                            span.bar.pale[bar.key.dashed].{ "c" (bar.key.color % COLORS) }
                                style={ "width:" (format!("{:.1}", percent(bar.value))) "%" } {}
                        }
                        span.n { (full(bar.value)) }
                    }
                }
                figcaption { @if !self.unit.is_empty() { (self.unit) " · " } (scale) }
            }
        }
    }
}

/// The legend of several figures: each series once.
pub(super) fn legend<'a>(keys: impl Iterator<Item = &'a Key>) -> Markup {
    let mut distinct: Vec<&Key> = Vec::new();
    for key in keys {
        if !distinct.iter().any(|it| it.name == key.name) {
            distinct.push(key);
        }
    }
    html! {
        p.legend {
            @for key in distinct {
                button.key.dash[key.dashed].{ "c" (key.color % COLORS) } type="button"
                    aria-pressed="true" { (key.name) }
            }
        }
    }
}

fn full(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 => super::grouped(value),
        it if it >= 1_000.0 => super::grouped(value),
        it if it >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, points: &[(f64, f64)]) -> Line {
        Line {
            key: Key { name: name.to_owned(), color: 9, dashed: false },
            points: points.iter().map(|(x, y)| Point { x: *x, y: *y }).collect(),
        }
    }

    fn chart(lines: Vec<Line>) -> Chart {
        let (title, x_label, y_label) = ("a < b".to_owned(), "x".to_owned(), "y".to_owned());
        Chart { title, x_label, y_label, x_log: true, lines, shared: None }
    }

    #[test]
    fn lines_share_the_places_of_all() {
        let chart = chart(vec![line("a", &[(1.0, 2.0), (10.0, 90.0)]), line("b", &[(5.0, 1.0)])]);
        let data = chart.data();
        let expected = [
            vec![Some(1.0), Some(5.0), Some(10.0)],
            vec![Some(2.0), None, Some(90.0)],
            vec![None, Some(1.0), None],
        ];
        assert_eq!(data.data, expected);
        assert_eq!(data.x.marks, Some(vec![1.0, 5.0, 10.0]));
        assert!(data.x.log && data.y.log && data.series[0].color == 1);
    }

    #[test]
    fn axes_are_logarithmic_only_where_values_are_positive_and_differ() {
        let axes = |points: &[(f64, f64)]| {
            let chart = chart(vec![line("a", points)]);
            let data = chart.data();
            (data.x.log, data.y.log, data.x.min, data.x.max)
        };
        assert_eq!(axes(&[(5.0, 0.0)]), (false, false, 4.0, 6.0));
        assert_eq!(axes(&[(0.0, 1.0), (10.0, 31.0)]), (false, true, 0.0, 10.0));
        assert_eq!(axes(&[(0.0, 0.0), (10.0, 31.0)]), (false, false, 0.0, 10.0));
    }

    #[test]
    fn charts_of_one_kind_have_one_scale() {
        let mut charts = [
            chart(vec![line("a", &[(1.0, 2.0), (2.0, 3.0)])]),
            chart(vec![line("a", &[(1.0, 200.0), (2.0, 300.0)])]),
        ];
        Chart::share_scale(&mut charts);
        for chart in &charts {
            let data = chart.data();
            assert_eq!((data.y.log, data.y.low, data.y.high), (true, 2.0, 300.0));
        }
        let bar = |value| Bar { key: line("b", &[]).key, value };
        let figure = |value| {
            let (title, unit) = ("t".to_owned(), String::new());
            Bars { title, unit, bars: vec![bar(value)], shared: None }
        };
        let mut figures = [figure(2.0), figure(4.0)];
        Bars::share_scale(&mut figures);
        assert!(figures[0].figure().into_string().contains("width:50.0%"));
    }

    #[test]
    fn one_place_alone_is_drawn_as_bars() {
        let alone = chart(vec![line("a", &[(1.0, 2.0)]), line("b", &[(1.0, 4.0)])]);
        let values: Vec<f64> =
            alone.as_bars().expect("bars").bars.iter().map(|bar| bar.value).collect();
        assert_eq!(values, [2.0, 4.0]);
        assert!(chart(vec![line("a", &[(1.0, 2.0), (2.0, 2.0)])]).as_bars().is_none());
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let bad = line("bad", &[(f64::NAN, 1.0), (1.0, f64::INFINITY)]);
        assert_eq!(chart(vec![bad.clone(), line("none", &[])]).drawable(), None);
        let both = chart(vec![bad, line("good", &[(1.0, 1.0)])]).drawable();
        assert_eq!(both.map(|chart| chart.lines.len()), Some(1));
    }

    #[test]
    fn no_text_leaves_its_element() {
        let evil = "</script><script>alert(1)";
        let text = chart(vec![line(evil, &[(1.0, 2.0)])]).figure().into_string();
        assert_eq!((text.matches("<script").count(), text.matches("</script").count()), (1, 1));
        assert!(text.contains("a &lt; b"), "{text}");
    }

    #[test]
    fn bars_name_their_scale_and_have_a_figure_each() {
        let bar = |value| Bar { key: line("b", &[]).key, value };
        let bars = |values: &[f64]| Bars {
            title: "t".to_owned(),
            unit: "us".to_owned(),
            shared: None,
            bars: values.iter().copied().map(bar).collect(),
        };
        let text = bars(&[1.0, 1_000.0, 0.0]).figure().into_string();
        assert_eq!(text.matches("bar-row").count(), 3);
        assert!(text.contains("us · log scale") && text.contains("1,000"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(bars(&[2.0, 4.0]).figure().into_string().contains("width:50.0%"));
        assert!(!bars(&[0.0]).figure().into_string().contains("NaN"));
        assert_eq!(bars(&[f64::NAN]).drawable(), None);
    }
}
