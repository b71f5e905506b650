// Draws the report: curves over time, free memory by order, errors, maps of pageblocks.
// Everything comes from the JSON in #data; nothing is fetched.
"use strict";
const { report, zones } = JSON.parse(document.getElementById("data").textContent);
const PAGE = 4096;
const MIB = 1048576;
const el = (id) => document.getElementById(id);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

// Okabe and Ito's palette, which colour-blind readers can tell apart; lighter on dark ground.
const KERNEL_COLORS = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b3568c", "#b07d00", "#2f8fc4"],
  dark: ["#56b4e9", "#ff8a3d", "#2bc79a", "#e69ac6", "#f0c04a", "#a6d8ff"],
};
const TYPE_COLORS = {
  light: { Movable: "#005f99", Unmovable: "#c44e00", Reclaimable: "#12a574", HighAtomic: "#a3478a", CMA: "#a87800", Isolate: "#444444" },
  dark: { Movable: "#56b4e9", Unmovable: "#ff8a3d", Reclaimable: "#2bc79a", HighAtomic: "#e69ac6", CMA: "#f0c04a", Isolate: "#cccccc" },
};
// Dark to light, even in lightness, for orders 0 to 10.
const ORDER_COLORS = ["#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725"];
const DASHES = ["solid", [9, 4], [3, 3]];

const state = { zone: 0, hidden: new Set() };
const theme = () => (dark.matches ? "dark" : "light");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const kernelColor = (i) => KERNEL_COLORS[theme()][i % 6];
const kernelDash = (i) => DASHES[Math.floor(i / 6) % DASHES.length];
const thousands = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
const escapeHtml = (s) => String(s).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const mib = (pages) => (pages * PAGE) / MIB;

function typeColor(name, index) {
  const known = TYPE_COLORS[theme()];
  return known[name] || Object.values(known)[index % 6];
}

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

// Every source of samples: the recording, then the kernels.
const sources = [];
if (report.recorded.length) sources.push({ name: "recorded", samples: report.recorded, kernel: -1 });
report.kernels.forEach((k, i) => sources.push({ name: k.kernel, samples: k.samples, kernel: i }));
const lastSecond = Math.max(1e-9, ...sources.flatMap((s) => s.samples.map((x) => x.seconds)));

// The unit of the time axis, so that its steps are round.
const TIME = lastSecond < 600 ? { unit: "s", seconds: 1 } : lastSecond < 6 * 3600 ? { unit: "min", seconds: 60 } : { unit: "h", seconds: 3600 };
const timeAxis = (seconds) => seconds / TIME.seconds;
// A tick; none where zooming makes an axis begin at an odd moment.
const axisTime = (v) => (Math.abs(v * 20 - Math.round(v * 20)) < 1e-6 ? `${Math.round(v * 20) / 20} ${TIME.unit}` : "");

function zoneOf(sample) {
  const wanted = zones[state.zone];
  return wanted && sample.zones.find((z) => z.node === wanted.node && z.zone === wanted.zone);
}

function points(samples, value) {
  const found = [];
  for (const sample of samples) {
    const zone = zoneOf(sample);
    const y = zone ? value(zone) : null;
    if (y !== null && y !== undefined) found.push([timeAxis(sample.seconds), y, sample.name]);
  }
  return found;
}

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

function tooltip(format) {
  return {
    trigger: "axis", confine: true, transitionDuration: 0,
    backgroundColor: css("--panel"), borderColor: css("--line"),
    textStyle: { color: css("--fg"), fontSize: 13 },
    axisPointer: { type: "line", lineStyle: { color: css("--muted") } },
    formatter: (items) => {
      if (!items.length) return "";
      const [time, , name] = items[0].value;
      const rows = items.map((i) => `<tr><td style="text-align:left;padding:0 12px 0 0;border:0">${i.marker}${escapeHtml(i.seriesName)}</td><td style="padding:0;border:0">${format(i.value)}</td></tr>`);
      return `${timeText(time * TIME.seconds)}${name ? ` · ${escapeHtml(name)}` : ""}<table style="margin:2px 0">${rows.join("")}</table>`;
    },
  };
}

function recordedSeries(data) {
  // So many dots would hide the lines below them.
  const many = data.length > 150;
  return {
    name: "recorded", type: "line", data, z: 5, emphasis: { disabled: true }, showAllSymbol: true, symbolSize: 5,
    symbol: many ? "none" : "circle",
    lineStyle: { type: many ? [3, 4] : "dashed", width: many ? 2 : 1, color: css("--fg") }, itemStyle: { color: css("--fg") },
  };
}

// One picture of every kernel's curve and the recorded dots.
function drawCurves(id, value, format, yLabel, yMax) {
  const series = [];
  for (const source of sources) {
    if (state.hidden.has(source.name)) continue;
    const data = points(source.samples, value);
    if (source.kernel < 0) series.push(recordedSeries(data));
    else {
      const color = kernelColor(source.kernel);
      series.push({ name: source.name, type: "line", data, z: 4 - source.kernel / 100, emphasis: { disabled: true }, showSymbol: data.length < 2, symbol: "circle", lineStyle: { color, width: 2.2, type: kernelDash(source.kernel) }, itemStyle: { color } });
    }
  }
  chartIn(id).setOption({ ...axes(yMax, yLabel, yMax === 1 ? 0.25 : undefined), tooltip: tooltip((v) => format(v[1])), series }, { notMerge: true });
}

function drawOverTime() {
  const index = (v) => v.toFixed(3);
  drawCurves("unusable-9", (z) => z.unusable_index["9"], index, (v) => v.toFixed(2), 1);
  drawCurves("unusable-3", (z) => z.unusable_index["3"], index, (v) => v.toFixed(2), 1);
  drawCurves("free-memory", (z) => mib(z.free_pages), (v) => `${thousands(v)} MiB`, thousands);
  drawCurves("huge-blocks", (z) => z.free_huge_blocks, thousands, thousands);
}

// Free memory stacked by order, both pictures to one scale.
function drawByOrder() {
  let most = 0;
  for (const side of ["left", "right"]) {
    const source = sources[el(`order-${side}`).value];
    for (const p of points(source ? source.samples : [], (z) => mib(z.free_pages))) most = Math.max(most, p[1]);
  }
  for (const side of ["left", "right"]) {
    const source = sources[el(`order-${side}`).value];
    if (!source) continue;
    // Sums from order 0 up, the highest sum drawn first and the next over it.
    const series = ORDER_COLORS.map((color, order) => ({
      name: `order ${order}, ${sizeText(PAGE << order)}`, type: "line", symbol: "none", z: 20 - order, emphasis: { disabled: true },
      lineStyle: { width: 0 }, itemStyle: { color }, areaStyle: { color, opacity: 1 },
      data: source.samples.filter(zoneOf).map((sample) => {
        const each = zoneOf(sample).free_blocks.map((n, o) => mib(n * 2 ** o));
        const sum = each.slice(0, order + 1).reduce((a, b) => a + b, 0);
        return [timeAxis(sample.seconds), sum, sample.name, each[order] || 0];
      }),
    }));
    const tip = tooltip((v) => `${v[3].toFixed(1)} MiB`);
    tip.order = "seriesDesc";
    chartIn(`order-chart-${side}`).setOption({ ...axes(niceCeiling(most), thousands), tooltip: tip, series }, { notMerge: true });
  }
}

function niceCeiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((s) => s * power >= value * 0.999999) * power;
}

const MEASURES = [
  ["order_distribution", "order distribution", "share of free pages in blocks of another size", true],
  ["unusable_9", "unusable index, order 9", "absolute, index 0 to 1", false],
  ["unusable_3", "unusable index, order 3", "absolute, index 0 to 1", false],
  ["free_pages", "free pages", "share of the recorded count", true],
  ["pageblock_type", "pageblock type", "share of pageblocks of another type", true],
];
const judged = report.kernels.findIndex((k) => k.accuracy && k.accuracy.by_snapshot.length);

function drawErrors() {
  if (judged < 0) return;
  const [key, name, unit, isShare] = MEASURES[el("error-measure").value];
  const wanted = zones[state.zone] || {};
  const rows = report.kernels[judged].accuracy.by_snapshot
    .filter((e) => e.zone === wanted.zone && (e.node === undefined || e.node === wanted.node))
    .sort((a, b) => a.seconds - b.seconds);
  const text = (v) => (isShare ? `${(v * 100).toFixed(2)} %` : v.toFixed(4));
  const axis = (v) => (isShare ? `${Math.round(v * 1e4) / 100} %` : String(Math.round(v * 1e5) / 1e5));
  const curve = (title, i, color, type) => ({
    name: title, type: "line", data: rows.map((e) => [timeAxis(e.seconds), e[key][i], e.name]),
    symbol: i ? "emptyCircle" : "circle", symbolSize: 5, showAllSymbol: true, lineStyle: { color, width: 2, type }, itemStyle: { color },
  });
  el("error-caption").innerHTML = rows.length
    ? `Error in ${escapeHtml(name)} <small>${escapeHtml(unit)} · <span style="color:${kernelColor(judged)}">●</span> ${escapeHtml(report.kernels[judged].kernel)} · <span>○</span> a forecaster who only counts</small>`
    : `<small>Too small a zone to be measured.</small>`;
  el("error-chart").hidden = !rows.length;
  if (!rows.length) return;
  chartIn("error-chart").setOption({
    ...axes(null, axis), tooltip: tooltip((v) => text(v[1])),
    series: [curve(`${report.kernels[judged].kernel}`, 0, kernelColor(judged), "solid"), curve("forecaster", 1, css("--muted"), "dashed")],
  }, { notMerge: true });
}

function fillSelect(id, options, chosen) {
  el(id).innerHTML = options.map(([value, text]) => `<option value="${value}">${escapeHtml(text)}</option>`).join("");
  el(id).value = String(chosen);
}

function showEndTable() {
  document.querySelectorAll("[data-zone]").forEach((t) => { t.hidden = Number(t.dataset.zone) !== state.zone; });
}

// The legend of all curves, which also hides and shows them.
function drawKernelButtons() {
  el("kernels").innerHTML = sources.map((s, i) => {
    const color = s.kernel < 0 ? css("--fg") : kernelColor(s.kernel);
    const dash = s.kernel < 0 ? "4 3" : [].concat(kernelDash(s.kernel)).join(" ");
    const dots = s.kernel < 0 ? `<circle cx="6" cy="6" r="3"/><circle cx="20" cy="6" r="3"/>` : "";
    return `<button data-source="${i}" aria-pressed="${!state.hidden.has(s.name)}"><svg width="26" height="12" fill="${color}"><path d="M0 6H26" stroke="${color}" stroke-width="${s.kernel < 0 ? 1.2 : 2.6}" stroke-dasharray="${dash === "solid" ? "none" : dash}"/>${dots}</svg>${escapeHtml(s.name)}</button>`;
  }).join("");
}

function drawAll() {
  drawKernelButtons();
  showEndTable();
  drawOverTime();
  drawErrors();
  drawByOrder();
  drawMaps();
}

function start() {
  const named = sources.map((s, i) => [i, s.kernel < 0 ? "recorded" : `${s.name} predicted`]);
  const firstKernel = Math.max(0, sources.findIndex((s) => s.kernel >= 0));
  fillSelect("order-left", named, 0);
  fillSelect("order-right", named, firstKernel || Math.min(1, sources.length - 1));
  fillSelect("error-measure", MEASURES.map((m, i) => [i, m[1]]), 0);
  el("error-over-time").hidden = judged < 0;
  el("order-legend").innerHTML = ORDER_COLORS.map((c, o) => `<span><i style="background:${c}"></i>${o}: ${sizeText(PAGE << o)}</span>`).join("");
  if (sources.length < 2) {
    el("order-right").closest("figure").hidden = true;
    el("order-right").closest(".pair").classList.add("single");
  }
  startMaps();
  el("zone").addEventListener("change", () => { state.zone = Number(el("zone").value); drawAll(); });
  el("error-measure").addEventListener("change", drawErrors);
  for (const side of ["left", "right"]) {
    el(`order-${side}`).addEventListener("change", drawByOrder);
    el(`map-${side}`).addEventListener("change", drawMaps);
  }
  el("kernels").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { name } = sources[button.dataset.source];
    if (!state.hidden.delete(name)) state.hidden.add(name);
    drawKernelButtons();
    drawOverTime();
  });
  dark.addEventListener("change", drawAll);
  drawAll();
  echarts.connect("time");
}
