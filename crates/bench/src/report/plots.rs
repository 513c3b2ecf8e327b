//! Which charts and bars the page shows of a preset's results.

use super::charts::{Bar, Bars, COLORS, Chart, Key, Line, Point, legend};
use super::result::{CaseResult, Measurement, PresetResult, Report};
use super::table;
use crate::load::Second;
use crate::preset::{Plot, Points, Preset, metric};
use maud::{Markup, html};

/// Columns of which bars are drawn where there is no axis to draw lines over.
const BAR_COLUMNS: usize = 4;

/// The legend, the charts and the bars of a preset. Figures of one kind have one scale.
pub(super) fn plots(report: &Report, result: &PresetResult, preset: &Preset) -> Markup {
    let plots = Plots { report, result, preset };
    let (mut charts, mut bars) = (Vec::new(), Vec::new());
    for kind in plots.charts() {
        let drawable: Vec<Chart> = kind.into_iter().filter_map(Chart::drawable).collect();
        let alone = drawable.iter().filter_map(Chart::as_bars).collect();
        let mut lines: Vec<Chart> =
            drawable.into_iter().filter(|chart| chart.as_bars().is_none()).collect();
        Chart::share_scale(&mut lines);
        charts.extend(lines);
        bars.push(alone);
    }
    bars.extend(plots.bars());
    let figures = bars.into_iter().flat_map(|kind: Vec<Bars>| {
        let mut drawable: Vec<Bars> = kind.into_iter().filter_map(Bars::drawable).collect();
        Bars::share_scale(&mut drawable);
        drawable
    });
    let bars: Vec<Bars> = figures.collect();
    let lines = charts.iter().flat_map(|chart| &chart.lines).map(|line| &line.key);
    let keys = lines.chain(bars.iter().flat_map(|bars| &bars.bars).map(|bar| &bar.key));
    html! {
        (legend(keys))
        div.plots {
            @for chart in &charts { (chart.figure()) }
            @for bars in &bars { (bars.figure()) }
        }
    }
}

struct Plots<'a> {
    report: &'a Report,
    result: &'a PresetResult,
    preset: &'a Preset,
}

impl Plots<'_> {
    /// The charts of each kind.
    fn charts(&self) -> Vec<Vec<Chart>> {
        let mut kinds = Vec::new();
        for plot in self.preset.plots() {
            match plot {
                Plot::Against(key) => {
                    let series = self.series().into_iter();
                    kinds.push(series.filter_map(|it| self.against(key, it)).collect());
                }
                Plot::Travels => {
                    kinds.push(self.result.cases.iter().map(|it| self.travels(it)).collect());
                }
                Plot::Seconds => {
                    let mut three = [Vec::new(), Vec::new(), Vec::new()];
                    for case in &self.result.cases {
                        let charts = self.seconds(case);
                        three.iter_mut().zip(charts).for_each(|(kind, chart)| kind.push(chart));
                    }
                    kinds.extend(three);
                }
            }
        }
        kinds
    }

    /// Bars of the first columns where there is no axis, else of the cases that have no place on it; those of
    /// each column are of one kind.
    fn bars(&self) -> Vec<Vec<Bars>> {
        let cases = &self.result.cases;
        if self.preset.plots().is_empty() || cases.len() == 1 {
            let columns = self.preset.columns.iter().take(BAR_COLUMNS);
            return columns
                .map(|key| cases.iter().map(|it| self.bars_of(it, key)).collect())
                .collect();
        }
        let keys = self.preset.plots().iter().filter_map(|plot| match plot {
            Plot::Against(key) => Some(key),
            Plot::Travels | Plot::Seconds => None,
        });
        let free = || cases.iter().filter(|case| self.is_free(case));
        keys.map(|key| free().map(|it| self.bars_of(it, key)).collect()).collect()
    }

    /// The series of the result, in order.
    fn series(&self) -> Vec<&str> {
        let mut series: Vec<&str> = Vec::new();
        for case in &self.result.cases {
            if !series.contains(&case.series.as_str()) {
                series.push(&case.series);
            }
        }
        series
    }

    fn place(&self, case: &CaseResult) -> String {
        self.preset.place(&case.series, case.x)
    }

    /// Whether this is the case without a pace, which has no place on the axis.
    fn is_free(&self, case: &CaseResult) -> bool {
        self.preset.zero_is_free && case.x == 0.0
    }

    fn side_key(&self, side: usize) -> Key {
        Key { name: self.report.sides[side].label.clone(), color: side, dashed: false }
    }

    /// The key of a system that the text printed figures of: the same colour in all figures.
    fn system_key(&self, system: &str) -> Key {
        let index = self.preset.systems(None).into_iter().position(|it| it == system).unwrap_or(0);
        let color = (self.report.sides.len() + index) % (COLORS - 1);
        Key { name: system.to_owned(), color, dashed: true }
    }

    /// A line for each side, of what `points` gives of its first complete run.
    fn side_lines(
        &self,
        case: &CaseResult,
        points: impl Fn(&Measurement) -> Vec<Point>,
    ) -> Vec<Line> {
        let sides = (0..self.report.sides.len()).filter_map(|side| {
            let measurement = case.done(side).next()?;
            Some(Line { key: self.side_key(side), points: points(measurement) })
        });
        sides.collect()
    }

    /// A metric against the axis: a line for each side, dashed ones for the text's systems and for the bare
    /// machine.
    fn against(&self, key: &str, series: &str) -> Option<Chart> {
        let (report, preset) = (self.report, self.preset);
        let on_axis = |case: &&CaseResult| case.series == series && !self.is_free(case);
        let cases = || self.result.cases.iter().filter(on_axis);
        if cases().count() < 2 {
            return None;
        }
        let of_side = |side: usize| {
            let point = |it: &CaseResult| Some(Point { x: it.x, y: it.median(side, key)? });
            Line { key: self.side_key(side), points: cases().filter_map(point).collect() }
        };
        let mut lines: Vec<Line> = (0..report.sides.len()).map(of_side).collect();
        let history = preset.history.iter().filter(|it| it.metric == key);
        for history in history.filter(|it| it.series.is_empty() || it.series == series) {
            let points = match &history.points {
                Points::All(y) => cases().map(|case| Point { x: case.x, y: *y }).collect(),
                Points::At(points) => points.iter().map(|(x, y)| Point { x: *x, y: *y }).collect(),
            };
            lines.push(Line { key: self.system_key(&history.system), points });
        }
        let limit =
            |it: &CaseResult| Some(Point { x: it.x, y: table::bare(report, preset, it, key)? });
        let name = table::bare_name(preset.baseline).to_owned();
        let points = cases().filter_map(limit).collect();
        lines.push(Line { key: Key { name, color: COLORS - 1, dashed: true }, points });
        let metric = metric(key);
        let title = match series {
            "" => metric.label.clone(),
            series => format!("{}, {series}", metric.label),
        };
        // What stands in brackets is about places that are not drawn here.
        let x_label = preset.axis.split(" (0:").next().unwrap_or_default().to_owned();
        let y_label = metric.unit.clone();
        Some(Chart { title, x_label, y_label, x_log: preset.axis_log, lines, shared: None })
    }

    fn travels(&self, case: &CaseResult) -> Chart {
        let lines = self.side_lines(case, |it| {
            let point =
                |(group, us): (usize, &f32)| Point { x: group as f64, y: f64::from(*us) / 1e3 };
            it.travels_us.iter().enumerate().map(point).collect()
        });
        let mut runs = (0..self.report.sides.len()).filter_map(|side| case.done(side).next());
        let group = runs.next_back().map_or(0, |it| it.travel_group);
        Chart {
            title: format!("travel time, {}", self.place(case)),
            x_label: format!("groups of {group} deliveries"),
            y_label: "ms".to_owned(),
            x_log: false,
            lines,
            shared: None,
        }
    }

    fn seconds(&self, case: &CaseResult) -> [Chart; 3] {
        let chart = |what: &str, unit: &str, value: fn(&Second) -> f64| Chart {
            title: format!("{what}, {}", self.place(case)),
            x_label: "seconds".to_owned(),
            y_label: unit.to_owned(),
            x_log: false,
            lines: self.side_lines(case, |it| {
                it.seconds.iter().map(|it| Point { x: it.at_s, y: value(it) }).collect()
            }),
            shared: None,
        };
        [
            chart("deliveries", "msg/s", |second| second.delivered),
            chart("broker CPU", "cores", |second| second.broker_cpu_share),
            chart("broker memory", "MiB", |second| second.broker_rss_kib as f64 / 1024.0),
        ]
    }

    /// A metric of a case: a bar for each side, pale ones for the text's systems.
    fn bars_of(&self, case: &CaseResult, key: &str) -> Bars {
        let of_side =
            |side: usize| Some(Bar { key: self.side_key(side), value: case.median(side, key)? });
        let mut bars: Vec<Bar> = (0..self.report.sides.len()).filter_map(of_side).collect();
        if !bars.is_empty() {
            let history = self.preset.history.iter().filter(|it| it.metric == key);
            bars.extend(history.filter_map(|it| {
                let value = it.at(&case.series, case.x)?;
                Some(Bar { key: self.system_key(&it.system), value })
            }));
        }
        let metric = metric(key);
        let at = match self.result.cases.len() {
            1 => String::new(),
            _ => format!(", {}", self.place(case)),
        };
        let title = format!("{}{at}", metric.label);
        Bars { title, unit: metric.unit.clone(), bars, shared: None }
    }
}
