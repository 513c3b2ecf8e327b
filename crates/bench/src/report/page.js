// Draws the charts of the page with uPlot. The data of each lies in its figure as JSON; nothing is fetched.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  for (const tables of document.querySelectorAll("details.figures")) tables.open = false;

  const HEIGHT = 250;
  const FONT = "12px system-ui, sans-serif";
  const color = (name) => () => getComputedStyle(root).getPropertyValue(name).trim();

  // 1.5M, 20k, 0.05
  function short(value) {
    const steps = [[1e9, "G"], [1e6, "M"], [1e4, "k"]];
    const [unit, suffix] = steps.find(([least]) => Math.abs(value) >= least) || [1, ""];
    const scaled = value / (suffix === "k" ? 1e3 : unit);
    return Number(scaled.toPrecision(suffix ? 3 : 4)) + suffix;
  }

  function axis(spec, more) {
    const scale = spec.log ? "log scale" : "linear scale";
    return {
      label: [spec.label, scale].filter(Boolean).join(" · "),
      stroke: color("--soft"), font: FONT, labelFont: FONT, labelSize: 20, gap: 4,
      grid: { stroke: color("--rule"), width: 1 },
      ticks: { stroke: color("--rule"), width: 1, size: 4 },
      values: (u, splits) => splits.map((split) => (split == null ? "" : short(split))),
      ...more,
    };
  }

  // The measured places, as far as they leave room for each other; between them, as of any axis.
  function places(spec) {
    return (u, index, min, max) => {
      let last = -Infinity;
      const shown = spec.marks.filter((mark) => {
        const at = u.valToPos(mark, "x");
        const fits = mark >= min && mark <= max && at - last > 36;
        if (fits) last = at;
        return fits;
      });
      return spec.log && shown.length < 2 && spec.marks.length > 1 ? decades(u, index, min, max) : shown;
    };
  }

  // Round values of each decade: the fewer decades, the more of them.
  function decades(u, index, min, max) {
    const steps = max / min > 1e3 ? [1] : max / min > 10 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 7, 8, 9];
    const marks = [];
    for (let decade = 10 ** Math.floor(Math.log10(min)); decade <= max; decade *= 10) {
      marks.push(...steps.map((step) => step * decade).filter((mark) => mark >= min && mark <= max));
    }
    return marks;
  }

  // Where an axis has its marks, if not where uPlot sets them.
  function marked(spec) {
    const splits = spec.marks ? places(spec) : spec.log ? decades : null;
    return splits ? { splits, filter: (u, found) => found } : {};
  }

  function options(chart, width, hooks) {
    const { x, y } = chart;
    const aboveAll = (low, high) => [Math.min(low, 0), high > 0 ? high * 1.08 : 1];
    const around = (low, high) => [low / 1.3, high * 1.3];
    const [first, last] = [chart.data[0][0], chart.data[0].at(-1)];
    const isWhole = (low, high) => low == null || (low <= first && high >= last);
    const values = chart.data.slice(1).flat().filter((value) => value != null);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    // All charts of a kind have one scale, until one of them is zoomed or a series hidden.
    const common = (low, high) => (low <= least && high >= most ? [y.low, y.high] : [low, high]);
    return {
      width, height: HEIGHT, hooks,
      legend: { show: false },
      padding: [10, 24, 0, 0],
      cursor: { drag: { x: true, y: true, uni: 30 }, points: { size: 7 } },
      scales: {
        x: {
          time: false, distr: x.log ? 3 : 1,
          range: (u, low, high) => (isWhole(low, high) ? [x.min, x.max] : [low, high]),
        },
        y: {
          distr: y.log ? 3 : 1,
          range: (u, low, high) =>
            low == null ? [1, 10] : (y.log ? around : aboveAll)(...common(low, high)),
        },
      },
      axes: [axis(x, { size: 26, ...marked(x) }), axis(y, { size: 52, ...marked(y) })],
      series: [{}].concat(chart.series.map((line) => ({
        label: line.name, stroke: color("--c" + line.color), spanGaps: true,
        width: line.dashed ? 1.5 : 2, dash: line.dashed ? [5, 4] : [],
        points: { show: line.dots, size: 6, fill: color("--c" + line.color) },
      }))),
    };
  }

  // What stands under the cursor, in words.
  function readout(u, chart) {
    const at = u.cursor.idx;
    if (at == null) return "";
    const read = chart.series.map((line, index) => {
      const value = u.series[index + 1].show ? u.data[index + 1][at] : null;
      return value == null ? null : line.name + " " + short(value);
    });
    return short(u.data[0][at]) + " " + chart.x.label + ": " + read.filter(Boolean).join(" · ");
  }

  // uPlot zooms by the mouse: a finger that moves sideways does the same.
  function zoomByTouch(over) {
    for (const [touch, mouse] of [["down", "down"], ["move", "move"], ["up", "up"], ["cancel", "up"]]) {
      over.addEventListener("pointer" + touch, (event) => {
        if (event.pointerType !== "touch") return;
        const { clientX, clientY } = event;
        const init = { clientX, clientY, movementX: 1, bubbles: true, button: 0, view: window };
        over.dispatchEvent(new MouseEvent("mouse" + mouse, init));
      });
    }
  }

  function draw(figure) {
    const chart = JSON.parse(figure.querySelector("script").textContent);
    const canvas = figure.querySelector(".canvas");
    const caption = figure.querySelector("figcaption");
    const whole = figure.querySelector("button");
    const all = (u) => u.setData(u.data);
    const hooks = {
      setCursor: [(u) => { caption.textContent = readout(u, chart); }],
      setScale: [(u, key) => {
        if (key === "x") whole.hidden = u.scales.x.min <= chart.x.min && u.scales.x.max >= chart.x.max;
      }],
    };
    const plot = new uPlot(options(chart, canvas.clientWidth, hooks), chart.data, canvas);
    whole.addEventListener("click", () => all(plot));
    zoomByTouch(plot.over);
    new ResizeObserver(() => {
      if (canvas.clientWidth > 0 && canvas.clientWidth !== plot.width) {
        plot.setSize({ width: canvas.clientWidth, height: HEIGHT });
      }
    }).observe(canvas);
    return plot;
  }

  // The legend of a section shows and hides a series in all its charts and bars.
  function follow(section, plots) {
    for (const key of section.querySelectorAll(".legend button")) {
      key.addEventListener("click", () => {
        const show = key.getAttribute("aria-pressed") === "false";
        key.setAttribute("aria-pressed", String(show));
        const name = key.textContent;
        for (const plot of plots) {
          const index = plot.series.findIndex((series) => series.label === name);
          if (index > 0) plot.setSeries(index, { show });
        }
        for (const bar of section.querySelectorAll(".bar-row")) {
          if (bar.dataset.name === name) bar.hidden = !show;
        }
      });
    }
  }

  const drawn = [];
  for (const section of document.querySelectorAll("section")) {
    const plots = Array.from(section.querySelectorAll("figure.chart"), draw);
    follow(section, plots);
    drawn.push(...plots);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const plot of drawn) plot.redraw(false, true);
  });
})();
