// Draws a run of a scenario: memory by use, free blocks by order, stalls, CPU time.
const COLORS = {
  light: {
    uses: { free: "#dfe3e8", file: "#009e73", anon: "#2f8fc4", slab: "#d55e00", "page tables": "#b3568c", stacks: "#6a3d9a", network: "#e0b400", pinned: "#1b1f24", other: "#8a929b" },
    cpu: { user: "#0072b2", system: "#d55e00", interrupts: "#b3568c", switching: "#e0b400", iowait: "#8a929b", idle: "#eceff2" },
  },
  dark: {
    uses: { free: "#2a3038", file: "#2bc79a", anon: "#56b4e9", slab: "#ff8a3d", "page tables": "#e69ac6", stacks: "#b79cf0", network: "#f0c04a", pinned: "#ffffff", other: "#78828d" },
    cpu: { user: "#56b4e9", system: "#ff8a3d", interrupts: "#e69ac6", switching: "#f0c04a", iowait: "#78828d", idle: "#20262d" },
  },
};
showTime(Math.max(1e-9, ...DATA.seconds));

function colorsOf(chart) {
  if (chart.colors === "orders") return ORDER_COLORS;
  if (chart.colors === "lines") return PALETTE[theme()];
  return chart.series.map((s) => COLORS[theme()][chart.colors][s.name]);
}

// Small values keep their digits, large ones their commas.
const number = (v) => (Math.abs(v) >= 100 ? thousands(v) : String(Math.round(v * 100) / 100));

// The distance of ticks: round, three to five up to `most`.
function ticks(most) {
  const round = (v) => [1, 2, 5].some((m) => Math.abs(v / 10 ** Math.floor(Math.log10(v) + 1e-9) - m) < 1e-6);
  const parts = [5, 4, 3].find((n) => round(most / n));
  return parts && most / parts;
}

function seriesOf(chart, colors) {
  // A rate holds since the moment before.
  const more = chart.rate ? { step: "start" } : {};
  if (chart.stacked) {
    const moments = DATA.seconds.map((seconds, i) => ({ seconds, values: chart.series.map((s) => s.values[i]) }));
    return areas(chart.series.map((s) => s.name), colors, moments, more);
  }
  return chart.series.map((s, k) => ({
    name: s.name, type: "line", symbol: "none", emphasis: { disabled: true }, lineStyle: { color: colors[k], width: 1.8 }, itemStyle: { color: colors[k] }, ...more,
    data: DATA.seconds.map((seconds, i) => [timeAxis(seconds), s.values[i], undefined, s.values[i]]),
  }));
}

function draw(chart) {
  const colors = colorsOf(chart);
  const sums = DATA.seconds.map((_, i) => chart.series.reduce((sum, s) => (chart.stacked ? sum + s.values[i] : Math.max(sum, s.values[i])), 0));
  const most = chart.most ?? niceCeiling(Math.max(0, ...sums));
  const tip = { ...tooltip((v) => `${number(v[3])} ${chart.unit}`), order: chart.stacked ? "seriesDesc" : "seriesAsc" };
  chartIn(chart.id).setOption({ ...axes(most, number, ticks(most)), tooltip: tip, series: seriesOf(chart, colors) }, { notMerge: true });
  const size = (i) => (chart.colors === "orders" ? `: ${sizeText(PAGE << i)}` : "");
  el(`${chart.id}-legend`).innerHTML = legend(chart.series.map((s, i) => [colors[i], s.name + size(i)]));
}

const drawAll = () => DATA.charts.forEach(draw);
dark.addEventListener("change", drawAll);
drawAll();
echarts.connect("time");
