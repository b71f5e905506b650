// What pictures over time share, whatever is in them: the time axis, charts that zoom together, areas over
// each other, tooltips, words. Everything comes from the JSON in #data; nothing is fetched.
"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
// A report of a host with other sizes than the usual ones tells them.
const SIZES = DATA.report?.recording?.sizes;
const PAGE = SIZES?.page_bytes ?? 4096;
const MIB = 1048576;
const el = (id) => document.getElementById(id);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

// Okabe and Ito's palette, which colour-blind readers can tell apart; lighter on dark ground.
const PALETTE = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b3568c", "#b07d00", "#2f8fc4"],
  dark: ["#56b4e9", "#ff8a3d", "#2bc79a", "#e69ac6", "#f0c04a", "#a6d8ff"],
};
// Dark to light, even in lightness, for orders 0 to 10.
const ORDER_COLORS = ["#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725"];

const theme = () => (dark.matches ? "dark" : "light");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const thousands = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
const escapeHtml = (s) => String(s).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const mib = (pages) => (pages * PAGE) / MIB;

function sizeText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    unit += 1;
  }
  return `${Math.round(bytes * 10) / 10} ${units[unit]}`;
}

function timeText(seconds) {
  if (lastSecond < 600) return `${Math.round(seconds * 10) / 10} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")} min`;
}

// The time that all pictures show, and the unit of its axis, so that its steps are round.
let lastSecond = 1e-9;
let TIME = { unit: "s", seconds: 1 };
function showTime(seconds) {
  lastSecond = seconds;
  TIME = lastSecond < 600 ? { unit: "s", seconds: 1 } : lastSecond < 6 * 3600 ? { unit: "min", seconds: 60 } : { unit: "h", seconds: 3600 };
}
const timeAxis = (seconds) => seconds / TIME.seconds;
// A tick; none where zooming makes an axis begin at an odd moment.
const axisTime = (v) => (Math.abs(v * 20 - Math.round(v * 20)) < 1e-6 ? `${Math.round(v * 20) / 20} ${TIME.unit}` : "");

// Charts by element, made once, drawn again whenever something changes.
const charts = new Map();
function chartIn(id) {
  if (!charts.has(id)) {
    const chart = echarts.init(el(id), null, { renderer: "canvas" });
    chart.group = "time";
    charts.set(id, chart);
    new ResizeObserver(() => chart.resize()).observe(el(id));
    // ECharts swallows every turn of the wheel, also those that should scroll the page.
    el(id).addEventListener("wheel", (event) => { if (!event.ctrlKey) event.stopPropagation(); }, { capture: true, passive: true });
    chart.getZr().on("dblclick", () => chart.dispatchAction({ type: "dataZoom", start: 0, end: 100 }));
  }
  return charts.get(id);
}

function axes(yMax, yLabel, yInterval) {
  const label = { color: css("--muted"), fontSize: 12, hideOverlap: true };
  const line = { lineStyle: { color: css("--grid") } };
  return {
    animation: false,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
    grid: { left: 58, right: 22, top: 12, bottom: 30, outerBoundsMode: "none" },
    xAxis: {
      type: "value", min: 0, max: timeAxis(lastSecond), splitNumber: 5,
      axisLabel: { ...label, formatter: axisTime, showMaxLabel: false },
      axisLine: { lineStyle: { color: css("--line") } },
      splitLine: { show: false },
    },
    yAxis: { type: "value", min: 0, max: yMax, interval: yInterval, splitNumber: 4, axisLabel: { ...label, formatter: yLabel }, splitLine: line },
    dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", moveOnMouseMove: "ctrl", moveOnMouseWheel: false, preventDefaultMouseMove: false, filterMode: "none" }],
  };
}

// What stands beside the pointer; `without` names a series that has nothing to say there.
function tooltip(format, without) {
  return {
    trigger: "axis", confine: true, transitionDuration: 0,
    backgroundColor: css("--panel"), borderColor: css("--line"),
    textStyle: { color: css("--fg"), fontSize: 13 },
    axisPointer: { type: "line", lineStyle: { color: css("--muted") } },
    formatter: (all) => {
      const items = all.filter((i) => i.seriesName !== without);
      if (!items.length) return "";
      const [time, , name] = items[0].value;
      const rows = items.map((i) => `<tr><td style="text-align:left;padding:0 12px 0 0;border:0">${i.marker}${escapeHtml(i.seriesName)}</td><td style="padding:0;border:0">${format(i.value)}</td></tr>`);
      return `${timeText(time * TIME.seconds)}${name ? ` · ${escapeHtml(name)}` : ""}<table style="margin:2px 0">${rows.join("")}</table>`;
    },
  };
}

// Areas over each other, the first at the bottom: sums from the first up, the highest sum drawn first and the next
// over it. A moment has `seconds`, `values` (one an area) and perhaps a `name`; the value itself is the last of a point.
function areas(names, colors, moments, more = {}) {
  return names.map((name, i) => ({
    name, type: "line", symbol: "none", z: 20 - i, emphasis: { disabled: true },
    lineStyle: { width: 0 }, itemStyle: { color: colors[i] }, areaStyle: { color: colors[i], opacity: 1 }, ...more,
    data: moments.map(({ seconds, values, name: what }) => {
      const sum = values.slice(0, i + 1).reduce((a, b) => a + b, 0);
      return [timeAxis(seconds), sum, what, values[i] || 0];
    }),
  }));
}

// Signs of a legend, from pairs of colour and words.
const legend = (signs) => signs.map(([color, words]) => `<span><i style="background:${color}"></i>${escapeHtml(words)}</span>`).join("");

function niceCeiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((s) => s * power >= value * 0.999999) * power;
}
