// Maps of pageblocks over time: one pixel column a moment, one row a pageblock.
const mapped = report.kernels.map((k, i) => i).filter((i) => report.kernels[i].block_map);

function startMaps() {
  el("block-map").hidden = mapped.length === 0;
  if (!mapped.length) return;
  const names = mapped.map((i) => [i, report.kernels[i].kernel]);
  fillSelect("map-left", names, mapped[0]);
  fillSelect("map-right", names, mapped[Math.min(1, mapped.length - 1)]);
  if (mapped.length < 2) {
    el("map-right").closest("figure").hidden = true;
    el("map-right").closest(".pair").classList.add("single");
  }
  for (const side of ["left", "right"]) watchPointer(side);
}

function rgb(hex) {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

// A type's colour at each of ten fullnesses: an empty block keeps a tint.
function shades(color) {
  const ground = rgb(css("--bg"));
  const full = rgb(color);
  return Array.from({ length: 10 }, (_, f) => {
    const share = 0.16 + (0.84 * f) / 9;
    return ground.map((g, c) => Math.round(g + (full[c] - g) * share));
  });
}

// The map as an image, a column for each moment, the highest address on top.
function imageOf(map) {
  const blocks = map.types[0].length;
  const palette = map.type_names.map((name, i) => shades(typeColor(name, i)));
  const canvas = document.createElement("canvas");
  canvas.width = map.types.length;
  canvas.height = blocks;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, blocks);
  for (let t = 0; t < map.types.length; t += 1) {
    for (let b = 0; b < blocks; b += 1) {
      const type = map.types[t].charCodeAt(b) - 48;
      const fullness = map.fullness[t].charCodeAt(b) - 48;
      if (!(type >= 0 && type < palette.length && fullness >= 0 && fullness < 10)) continue;
      const at = ((blocks - 1 - b) * canvas.width + t) * 4;
      image.data.set(palette[type][fullness], at);
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

// A moment reaches half way to its neighbours.
function edges(seconds) {
  const inner = seconds.slice(1).map((s, i) => (s + seconds[i]) / 2);
  const last = seconds[seconds.length - 1];
  return [Math.max(0, 2 * seconds[0] - (inner[0] ?? seconds[0])), ...inner, Math.max(lastSecond, last)];
}

function drawMap(side) {
  const map = report.kernels[el(`map-${side}`).value]?.block_map;
  if (!map || !map.types.length) return;
  const source = imageOf(map);
  const bounds = edges(map.seconds);
  const first = map.first_pfn * PAGE;
  const last = first + source.height * map.block_pages * PAGE;
  const absent = css("--line");
  const base = axes(last, (v) => sizeText(v));
  base.yAxis.min = first;
  base.yAxis.interval = addressStep(last - first);
  base.yAxis.axisLabel.showMaxLabel = false;
  base.yAxis.splitLine = { show: false };
  base.grid.left = 66;
  const renderItem = (params, api) => {
    const area = params.coordSys;
    const scale = window.devicePixelRatio || 1;
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(area.width * scale));
    canvas.height = Math.max(1, Math.round(area.height * scale));
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = canvas.height < source.height;
    const x = (seconds) => Math.round((api.coord([timeAxis(seconds), first])[0] - area.x) * scale);
    context.fillStyle = stripes(context, absent, scale);
    context.fillRect(x(bounds[0]), 0, x(bounds[source.width]) - x(bounds[0]), canvas.height);
    for (let t = 0; t < source.width; t += 1) {
      const from = x(bounds[t]);
      const width = Math.max(1, x(bounds[t + 1]) - from);
      context.drawImage(source, t, 0, 1, source.height, from, 0, width, canvas.height);
    }
    return { type: "image", silent: true, style: { image: canvas, x: area.x, y: area.y, width: area.width, height: area.height } };
  };
  chartIn(`map-chart-${side}`).setOption({ ...base, series: [{ type: "custom", clip: true, data: [[0, first]], renderItem }] }, { notMerge: true });
}

// Diagonal stripes, for where no memory is.
function stripes(context, color, scale) {
  const tile = document.createElement("canvas");
  const size = Math.round(6 * scale);
  tile.width = size;
  tile.height = size;
  const pen = tile.getContext("2d");
  pen.strokeStyle = color;
  pen.lineWidth = 1.2 * scale;
  pen.beginPath();
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift, size);
    pen.lineTo(shift + size, 0);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

// Steps of the address axis that are round in MiB or GiB.
function addressStep(span) {
  let step = MIB;
  while (span / step > 6) step *= 2;
  return step;
}

function drawMaps() {
  if (!mapped.length) return;
  for (const side of ["left", "right"]) drawMap(side);
  const names = [...new Set(mapped.flatMap((i) => {
    const { types, type_names: all } = report.kernels[i].block_map;
    const used = new Set(types.flatMap((row) => [...new Set(row)]));
    return all.filter((_, n) => used.has(String(n)));
  }))];
  const swatch = (name, i) => {
    const steps = shades(typeColor(name, i)).map((c, f) => `rgb(${c}) ${f * 10}% ${f * 10 + 10}%`);
    return `<span><b style="background:linear-gradient(90deg,${steps})"></b>${escapeHtml(name)}</span>`;
  };
  el("map-legend").innerHTML = `<span>empty to full:</span>${names.map(swatch).join("")}<span><i class="absent"></i>no memory</span>`;
}

// Says what lies under the pointer.
function watchPointer(side) {
  const figure = el(`map-chart-${side}`).closest("figure");
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  figure.append(tip);
  const area = chartIn(`map-chart-${side}`).getZr();
  area.on("globalout", () => { tip.hidden = true; });
  area.on("mousemove", (event) => {
    const map = report.kernels[el(`map-${side}`).value].block_map;
    const at = [event.offsetX, event.offsetY];
    const chart = chartIn(`map-chart-${side}`);
    tip.hidden = !chart.containPixel({ gridIndex: 0 }, at);
    if (tip.hidden) return;
    const [time, address] = chart.convertFromPixel({ gridIndex: 0 }, at);
    const seconds = time * TIME.seconds;
    const bounds = edges(map.seconds);
    const row = Math.max(0, bounds.findIndex((edge, i) => i > 0 && seconds <= edge) - 1);
    const block = Math.floor((address / PAGE - map.first_pfn) / map.block_pages);
    const type = map.types[row]?.[block];
    if (type === undefined) { tip.hidden = true; return; }
    const pfn = map.first_pfn + block * map.block_pages;
    const fullness = Number(map.fullness[row][block]);
    const what = type === "." ? "no memory" : `${escapeHtml(map.type_names[type])}, ${fullnessText(fullness)}`;
    tip.innerHTML = `${timeText(map.seconds[row])} · <b>${what}</b><br>pfn ${pfn} to ${pfn + map.block_pages - 1}<br>${sizeText(pfn * PAGE)} to ${sizeText((pfn + map.block_pages) * PAGE)}`;
    const box = el(`map-chart-${side}`);
    const left = Math.min(event.offsetX + 14, box.clientWidth - tip.offsetWidth - 4);
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${box.offsetTop + Math.max(0, event.offsetY - tip.offsetHeight - 10)}px`;
  });
}

function fullnessText(f) {
  if (Number.isNaN(f)) return "fullness not known";
  if (f === 0) return "empty";
  return f === 9 ? "full" : `about ${Math.round((f / 9) * 100)} % full`;
}

start();
