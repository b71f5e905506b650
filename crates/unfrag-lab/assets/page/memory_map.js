"use strict";
// Draws each zone's pageblocks into its canvas, as large as the window lets them be, and says what is
// under the pointer.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);

  // Cells of whole device pixels: many blocks get small cells, few get large ones.
  function layout(canvas, count) {
    const width = canvas.clientWidth;
    let size = 12;
    while (size > 3 && Math.ceil(count / Math.floor(width / size)) * size > 700) size -= 1;
    const columns = Math.max(1, Math.floor(width / size));
    return { size, columns, rows: Math.ceil(count / columns) };
  }

  function draw(canvas, zone) {
    const ratio = window.devicePixelRatio || 1;
    const at = layout(canvas, zone.blocks.length);
    canvas.style.height = at.rows * at.size + "px";
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(at.rows * at.size * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const gap = at.size > 4 ? 1 : 0;
    for (let i = 0; i < zone.blocks.length; i++) {
      const cell = data.cells[zone.blocks.charCodeAt(i) - 48];
      // What can be moved is the paler the less of it there is; what spoils a block is not.
      context.globalAlpha = cell.moves ? 1 - 0.75 * zone.free[i] / 512 : 1;
      context.fillStyle = cell.color;
      const x = (i % at.columns) * at.size;
      const y = Math.floor(i / at.columns) * at.size;
      context.fillRect(x, y, at.size - gap, at.size - gap);
    }
    return at;
  }

  for (const canvas of document.querySelectorAll("canvas[data-zone]")) {
    const zone = data.zones[Number(canvas.dataset.zone)];
    const under = document.querySelector(`[data-under="${canvas.dataset.zone}"]`);
    let at = draw(canvas, zone);
    window.addEventListener("resize", () => { at = draw(canvas, zone); });
    canvas.addEventListener("mousemove", (event) => {
      const box = canvas.getBoundingClientRect();
      const column = Math.floor((event.clientX - box.left) / at.size);
      const i = Math.floor((event.clientY - box.top) / at.size) * at.columns + column;
      if (column >= at.columns || i >= zone.blocks.length) return;
      const pfn = zone.first_pfn + i * 512;
      const cell = data.cells[zone.blocks.charCodeAt(i) - 48];
      under.textContent = `address 0x${(pfn * 4096).toString(16)}, frame 0x${pfn.toString(16)}: `
        + `${cell.name}; ${zone.free[i]} of 512 pages free`;
    });
  }
})();
