/** Draws rows that it makes itself: what tests/browser/test_drawing.py asks for through `window`. */

import { makeAxis } from "/page/plot/axis.js";
import { chooseRenderer, hasGpu } from "/page/plot/renderer.js";
import { RowRing } from "/page/rows/rows.js";
import { Trace } from "/page/plot/trace.js";
import { Waterfall2D } from "/page/plot/waterfall2d.js";
import { WaterfallGL } from "/page/plot/waterfallgl.js";

const KINDS = { "2d": Waterfall2D, webgl: WaterfallGL };
const T0 = 1.75e12;

function describe({ values = 4096, rowS = 0.02, fs = 48000 } = {}) {
  const slices = [{ first: 0, per_value: 1, values }];
  return {
    ...{ id: 1, kind: "spec", fs, row_s: rowS, first_hz: 0, bin_hz: fs / 2 / values, n_bins: values },
    ...{ edges_hz: null, bits: 8, lo: -120, step: 0.5, slices },
  };
}

/** Return row n: noise, a steady tone at 1 kHz and one that sweeps; from one table, as noise is slow. */
function makeRows(description) {
  const [{ values }] = description.slices;
  let state = 1;
  const noise = Uint8Array.from({ length: 2 * values }, () => {
    state = (state * 48271) % 2147483647;
    return 40 + (state % 41);
  });
  const row = new Uint8Array(values);
  const put = (hz, value) => {
    const bin = Math.round(hz / description.bin_hz);
    if (bin >= 0 && bin < values) row[bin] = value;
  };
  return (n, changes = {}) => {
    const begin = (n * 977) % values;
    row.set(noise.subarray(begin, begin + values));
    put(1000, 200);
    put(2000 + ((n * 10) % 18000), 160);
    const fields = { seq: n, missed: 0, merged: 1, flags: 0, gapSamples: 0 };
    return { ...fields, tMs: T0 + (n + 0.5) * description.row_s * 1000, values: row, ...changes };
  };
}

function addCanvas(style = {}) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas.style, style);
  document.body.append(canvas);
  return canvas;
}

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

/** Draw rows on a new canvas by one kind. */
window.drawOne = async ({ kind, ...given }) => {
  window.waterfall = new KINDS[kind](addCanvas());
  await window.fill(given);
};

/** Draw `rows` rows, with gaps and dropped rows; return when all is on the canvas. */
window.fill = async ({ width, height, rows = 320, axis, msPerPx = 20, palette = "viridis", direction = "down" }) => {
  const description = describe({ values: 2049 });
  const make = makeRows(description);
  const ring = new RowRing({ rows: 2000, valuesMax: 4096 });
  ring.setDescription(description);
  const { waterfall } = window;
  waterfall.resize(width, height, direction);
  waterfall.setAxis(makeAxis({ ...axis, width: direction === "right" ? height : width }));
  waterfall.setPalette(palette);
  waterfall.setLevels(-100, -20);
  for (let n = 0; n < rows; n += 1) {
    if (n % 100 >= 30 && n % 100 < 40) continue;
    if (n % 100 >= 60 && n % 100 < 65) continue;
    const flags = n % 100 === 40 ? 1 : n % 100 === 65 ? 8 : 0;
    const row = make(n, { flags });
    ring.push(row);
    waterfall.append(row, description);
  }
  waterfall.setScroll({ newestMs: T0 + rows * 20, msPerPx });
  waterfall.rebuild(ring);
  await window.settle();
};

/** Call draw() in frames until it has nothing left to do. */
window.settle = async () => {
  do await frame();
  while (window.waterfall.draw());
};

/** Return the canvas' pixels in base64, row by row, four bytes each. */
window.pixels = () => {
  const { canvas } = window.waterfall;
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d");
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  const parts = Array.from({ length: canvas.height }, (_, y) =>
    String.fromCharCode(...data.subarray(4 * y * canvas.width, 4 * (y + 1) * canvas.width)),
  );
  return btoa(parts.join(""));
};

window.setScroll = (ms, msPerPx) => window.waterfall.setScroll({ newestMs: T0 + ms, msPerPx });
window.setAxis = (axis) => window.waterfall.setAxis(makeAxis(axis));

/** Lose the context and get it back, as a GPU's driver may; return how often that was possible. */
window.loseContext = async () => {
  const { canvas } = window.waterfall;
  const lost = canvas.getContext("webgl2")?.getExtension("WEBGL_lose_context");
  if (!lost) return false;
  const event = (name) => new Promise((resolve) => canvas.addEventListener(name, resolve, { once: true }));
  const isLost = event("webglcontextlost");
  lost.loseContext();
  await isLost;
  if (window.waterfall.hasFailed) return true;
  await new Promise((resolve) => setTimeout(resolve)); // a context cannot be restored in its own event
  const isRestored = event("webglcontextrestored");
  lost.restoreContext();
  await isRestored;
  return true;
};

/** Draw spectra of the given values into a new canvas of 400 x 200, 0 dB at the top, -100 below. */
window.drawTrace = ({ layers, axis, edges = null, bits = 8, isDifference = false }) => {
  const values = layers[0].values.length;
  const sent = bits === 8 ? { bits, lo: -127, step: 0.5 } : { bits, lo: -327.67, step: 0.01 };
  const description = { ...describe({ values }), edges_hz: edges, isDifference, ...sent };
  const Values = bits === 8 ? Uint8Array : Uint16Array;
  const trace = new Trace(addCanvas());
  trace.resize(400, 200);
  trace.setAxis(makeAxis({ ...axis, width: 400 }));
  trace.setLevels(-100, 0);
  trace.setLayers(layers.map((layer) => ({ ...layer, values: Values.from(layer.values), description })));
  window.waterfall = trace;
  return [trace.draw(), trace.draw()];
};

/** Make this machine's WebGL look like that of a GPU whose frames take a while. */
window.pretendGpu = () => {
  WebGL2RenderingContext.prototype.getParameter = () => "A GPU";
};

/** Draw a new row in each of `frames` frames that take `busyMs` of the page's time. */
window.drawSlowly = async ({ frames, busyMs }) => {
  const description = describe({ values: 256 });
  const make = makeRows(description);
  const { waterfall } = window;
  waterfall.resize(200, 100);
  waterfall.setAxis(makeAxis({ kind: "linear", f0: 0, f1: 24000, width: 200 }));
  for (let n = 0; n < frames; n += 1) {
    await frame();
    const until = performance.now() + busyMs;
    waterfall.append(make(n), description);
    waterfall.setScroll({ newestMs: T0 + n * 20, msPerPx: 20 });
    waterfall.draw();
    while (performance.now() < until);
  }
  return waterfall.kind;
};

/** Draw one frame of a new 2D waterfall that has no time to paint a line, before and after a resize. */
window.drawInNoTime = () => {
  const { now } = performance;
  let ms = 0;
  performance.now = () => (ms += 1000);
  const waterfall = chooseRenderer(addCanvas({ width: "100px" }), "2d");
  window.waterfall = waterfall;
  for (const height of [50, 80]) {
    waterfall.resize(100, height);
    waterfall.setAxis(makeAxis({ kind: "linear", f0: 0, f1: 24000, width: 100 }));
    waterfall.setScroll({ newestMs: T0, msPerPx: 20 });
    waterfall.draw();
  }
  performance.now = now;
};

window.startChosen = (forced) => {
  window.waterfall = chooseRenderer(addCanvas({ width: "100px" }), forced);
  return { kind: window.waterfall.kind, gpu: hasGpu() };
};

/** Of the newest row, of the maximum and the minimum, of the average. */
const LINE_STYLES = [
  { colour: "#7fd4ff", width: 1.5, dash: null },
  { colour: "#ff9a8f", width: 1, dash: null },
  { colour: "#6fd8c4", width: 1, dash: null },
  { colour: "#f0c060", width: 1, dash: [6, 3] },
];

/**
 * Draw charts of `values` values and `rowsPerS` rows a second, with a spectrum each, for some seconds.
 *
 * @returns {Promise<{fps: number, medianMs: number, p95Ms: number, scriptMs: number, kinds: string[]}>}
 */
window.measure = async ({ charts, values, rowsPerS, seconds, forced, isTraced, lines = 1 }) => {
  const width = Math.floor(innerWidth / 2);
  const height = Math.floor(innerHeight / Math.ceil(charts / 2));
  const traceHeight = isTraced ? Math.floor(height / 3) : 0;
  document.body.style.display = "grid";
  document.body.style.gridTemplateColumns = "1fr 1fr";
  const description = describe({ values, rowS: 1 / rowsPerS });
  const axis = makeAxis({ kind: "log", f0: 20, f1: 24000, width });
  const all = Array.from({ length: charts }, () => {
    const box = document.createElement("div");
    document.body.append(box);
    const canvases = [document.createElement("canvas"), document.createElement("canvas")];
    box.append(...canvases);
    const trace = new Trace(canvases[0]);
    trace.resize(width, traceHeight);
    trace.setAxis(axis);
    trace.setLevels(-120, 0);
    const waterfall = chooseRenderer(canvases[1], forced);
    waterfall.resize(width, height - traceHeight);
    waterfall.setAxis(axis);
    waterfall.setLevels(-100, -20);
    const ring = new RowRing({ rows: 2000, valuesMax: values });
    ring.setDescription(description);
    return { trace, waterfall, ring, make: makeRows(description) };
  });
  const times = [];
  let scriptMs = 0;
  let n = 0;
  let tracedMs = -Infinity;
  let before = await frame();
  const start = before;
  while (before - start < seconds * 1000) {
    const begin = performance.now();
    for (; n < ((before - start) / 1000) * rowsPerS; n += 1) {
      for (const { ring, waterfall, make } of all) {
        const row = make(n);
        ring.push(row);
        waterfall.append(row, description);
      }
    }
    // The page asks for 20 rows a second of a line spectrum, and fills bands only.
    const isTraceDue = isTraced && n > 0 && begin - tracedMs >= 50;
    if (isTraceDue) tracedMs = begin;
    for (const { waterfall, trace, ring } of all) {
      waterfall.setScroll({ newestMs: T0 + (before - start), msPerPx: 20 });
      waterfall.draw();
      if (isTraceDue) {
        // Holds are lines of other rows: what they cost depends on their shape alone.
        const layers = Array.from({ length: Math.min(lines, ring.length) }, (_, k) => ({
          values: ring.at(lines - 1 - k < ring.length ? lines - 1 - k : 0).values,
          description,
          style: { ...LINE_STYLES[(lines - 1 - k) % LINE_STYLES.length], isFilled: false },
        }));
        trace.setLayers(layers);
        trace.draw();
      }
    }
    scriptMs += performance.now() - begin;
    const now = await frame();
    times.push(now - before);
    before = now;
  }
  times.sort((a, b) => a - b);
  return {
    fps: (1000 * times.length) / (before - start),
    medianMs: times[times.length >> 1],
    p95Ms: times[Math.floor(times.length * 0.95)],
    scriptMs: scriptMs / times.length,
    kinds: all.map(({ waterfall }) => waterfall.kind),
  };
};

window.isReady = true;
