// Draws the report: curves over time, free memory by order, errors, maps of pageblocks.
// Everything comes from the JSON in #data; nothing is fetched.
const { report, zones } = DATA;
// A colour for each order of the host; those beyond the palette repeat its last.
const orderColors = Array.from({ length: SIZES?.orders ?? ORDER_COLORS.length }, (_, o) => ORDER_COLORS[Math.min(o, ORDER_COLORS.length - 1)]);

const TYPE_COLORS = {
  light: { Movable: "#005f99", Unmovable: "#c44e00", Reclaimable: "#12a574", HighAtomic: "#a3478a", CMA: "#a87800", Isolate: "#444444" },
  dark: { Movable: "#56b4e9", Unmovable: "#ff8a3d", Reclaimable: "#2bc79a", HighAtomic: "#e69ac6", CMA: "#f0c04a", Isolate: "#cccccc" },
};
const DASHES = ["solid", [9, 4], [3, 3]];
const BAND = "band";

const state = { zone: 0, hidden: new Set() };
const kernelColor = (i) => PALETTE[theme()][i % 6];
const kernelDash = (i) => DASHES[Math.floor(i / 6) % DASHES.length];

function typeColor(name, index) {
  const known = TYPE_COLORS[theme()];
  return known[name] || Object.values(known)[index % 6];
}

// Every source of samples: the recording, then the kernels.
const sources = [];
if (report.recorded.length) sources.push({ name: "recorded", samples: report.recorded, kernel: -1 });
// A kernel without an answer has no curve.
report.kernels.forEach((k, i) => k.samples.length && sources.push({ name: k.kernel, samples: k.samples, kernel: i }));
// The end of the longest.
showTime(Math.max(1e-9, ...sources.flatMap((s) => s.samples.map((x) => x.seconds))));

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

function recordedSeries(data) {
  // So many dots would hide the lines below them.
  const many = data.length > 150;
  return {
    name: "recorded", type: "line", data, z: 5, emphasis: { disabled: true }, showAllSymbol: true, symbolSize: 5,
    symbol: many ? "none" : "circle",
    lineStyle: { type: many ? [3, 4] : "dashed", width: many ? 2 : 1, color: css("--fg") }, itemStyle: { color: css("--fg") },
  };
}

// What all replays of an ensemble span, as an area behind the curve.
function band(samples, ends, color) {
  const least = [], most = [];
  for (const sample of samples) {
    const spread = (zoneOf(sample) || {}).spread;
    if (!spread) continue;
    const [from, to] = ends(spread);
    least.push([timeAxis(sample.seconds), from]);
    most.push([timeAxis(sample.seconds), to]);
  }
  if (!least.length) return [];
  const edge = [...most, ...least.reverse()];
  const renderItem = (params, api) => ({ type: "polygon", silent: true, shape: { points: edge.map((p) => api.coord(p)) }, style: { fill: color, opacity: 0.2 } });
  return [{ type: "custom", name: BAND, clip: true, silent: true, z: 1, data: [edge[0]], renderItem }];
}

// One picture of every kernel's curve and the recorded dots.
function drawCurves(id, value, ends, format, yLabel, yMax) {
  const series = [];
  for (const source of sources) {
    if (state.hidden.has(source.name)) continue;
    const data = points(source.samples, value);
    if (source.kernel < 0) series.push(recordedSeries(data));
    else {
      const color = kernelColor(source.kernel);
      series.push(...band(source.samples, ends, color));
      series.push({ name: source.name, type: "line", data, z: 4 - source.kernel / 100, emphasis: { disabled: true }, showSymbol: data.length < 2, symbol: "circle", lineStyle: { color, width: 2.2, type: kernelDash(source.kernel) }, itemStyle: { color } });
    }
  }
  chartIn(id).setOption({ ...axes(yMax, yLabel, yMax === 1 ? 0.25 : undefined), tooltip: tooltip((v) => format(v[1]), BAND), series }, { notMerge: true });
}

function drawOverTime() {
  const index = (v) => v.toFixed(3);
  const large = SIZES ? (SIZES.huge_order ?? SIZES.orders - 1) : 9;
  drawCurves("unusable-9", (z) => z.unusable_index[large], (s) => s.unusable_index[large], index, (v) => v.toFixed(2), 1);
  drawCurves("unusable-3", (z) => z.unusable_index["3"], (s) => s.unusable_index["3"], index, (v) => v.toFixed(2), 1);
  drawCurves("free-memory", (z) => mib(z.free_pages), (s) => s.free_pages.map(mib), (v) => `${thousands(v)} MiB`, thousands);
  drawCurves("huge-blocks", (z) => z.free_huge_blocks, (s) => s.free_huge_blocks, thousands, thousands);
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
    const names = orderColors.map((_, order) => `order ${order}, ${sizeText(PAGE << order)}`);
    const moments = source.samples.filter(zoneOf).map((sample) => ({
      seconds: sample.seconds, name: sample.name, values: zoneOf(sample).free_blocks.map((n, o) => mib(n * 2 ** o)),
    }));
    const series = areas(names, orderColors, moments);
    const tip = { ...tooltip((v) => `${v[3].toFixed(1)} MiB`), order: "seriesDesc" };
    chartIn(`order-chart-${side}`).setOption({ ...axes(niceCeiling(most), thousands), tooltip: tip, series }, { notMerge: true });
  }
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
    .filter((e) => e[key] && e.zone === wanted.zone && (e.node === undefined || e.node === wanted.node))
    .sort((a, b) => a.seconds - b.seconds);
  const text = (v) => (isShare ? `${(v * 100).toFixed(2)} %` : v.toFixed(4));
  const axis = (v) => (isShare ? `${Math.round(v * 1e4) / 100} %` : String(Math.round(v * 1e5) / 1e5));
  const curve = (title, i, color, type) => ({
    name: title, type: "line", data: rows.map((e) => [timeAxis(e.seconds), e[key][i], e.name]),
    symbol: i ? "emptyCircle" : "circle", symbolSize: 5, showAllSymbol: true, lineStyle: { color, width: 2, type }, itemStyle: { color },
  });
  el("error-caption").innerHTML = rows.length
    ? `Error in ${escapeHtml(name)} <small>${escapeHtml(unit)} · <span style="color:${kernelColor(judged)}">●</span> ${escapeHtml(report.kernels[judged].kernel)} · <span>○</span> a forecaster who only counts</small>`
    : `<small>Not measured: the zone is too small, or the snapshots do not show it.</small>`;
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
  el("order-legend").innerHTML = legend(orderColors.map((c, o) => [c, `${o}: ${sizeText(PAGE << o)}`]));
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
