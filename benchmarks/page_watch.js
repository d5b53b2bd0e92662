/** Notes what comes to a page and how it draws, before any script of it; see bench_page.py. */

const round = (value, digits = 3) => Number(value.toFixed(digits));
const longest = (values) => values.reduce((most, value) => Math.max(most, value), 0);
const fetched = (isPast) => performance.getEntriesByType("resource").filter(({ name }) => name.includes("/api/") === isPast);
const bytesOf = (entries) => entries.reduce((sum, { transferSize }) => sum + transferSize, 0);

class Seen {
  first = null;

  constructor() {
    performance.setResourceTimingBufferSize(20000);
    this.begin();
    new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => this.tasks.push(duration)))
      .observe({ type: "longtask" });
    this.#frame();
  }

  /** Count from now on. */
  begin() {
    Object.assign(this, { waterfalls: new Map(), bytes: 0, sizes: [], frames: 0, tasks: [], since: performance.now() });
    performance.clearResourceTimings();
  }

  /** Note a message, as docs/web-protocol.md describes it. */
  message(data) {
    this.bytes += data.length ?? data.byteLength;
    if (typeof data === "string") return;
    this.sizes.push(data.byteLength);
    const now = performance.now();
    const view = new DataView(data);
    let at = 8;
    for (let left = view.getUint16(2, true); left > 0; left -= 1) {
      const [stream, rows, bits] = [0, 4, 6].map((n) => view.getUint16(at + n, true));
      at += 16 + 32 * rows + Math.ceil((rows * view.getUint32(at + 8, true) * bits) / 32) * 4;
      if (stream % 8 === 0) this.#rows(stream, rows, now);
    }
  }

  #rows(stream, count, now) {
    const { last, gap, rows } = this.waterfalls.get(stream) ?? { last: now, gap: 0, rows: 0 };
    this.waterfalls.set(stream, { last: now, gap: Math.max(gap, now - last), rows: rows + count });
  }

  #frame() {
    this.frames += 1;
    if (this.first === null && isDrawn()) this.first = performance.now();
    requestAnimationFrame(() => this.#frame());
  }

  /** Return what was loaded, and when all waterfalls first had rows. */
  start() {
    const files = [...performance.getEntriesByType("navigation"), ...fetched(false)];
    return {
      files: files.length,
      files_bytes: bytesOf(files),
      files_s: round(longest(files.map(({ responseEnd }) => responseEnd)) / 1000),
      first_rows_s: round(this.first / 1000),
      start_longest_task_ms: Math.round(longest(this.tasks)),
    };
  }

  /** Return what was seen since `begin`. */
  figures() {
    const now = performance.now();
    const seconds = (now - this.since) / 1000;
    const past = fetched(true);
    const waterfalls = [...this.waterfalls.values()];
    return {
      live_bytes_s: Math.round(this.bytes / seconds),
      past_bytes_s: Math.round(bytesOf(past) / seconds),
      past_requests: past.length,
      largest_message_bytes: longest(this.sizes),
      waterfalls: waterfalls.length,
      rows_s: round(Math.min(...waterfalls.map(({ rows }) => rows)) / seconds, 1),
      longest_without_rows_s: round(longest(waterfalls.map(({ last, gap }) => Math.max(gap, now - last))) / 1000),
      frames_s: round(this.frames / seconds, 1),
      long_tasks: this.tasks.length,
      longest_task_ms: Math.round(longest(this.tasks)),
    };
  }
}

/** Whether each waterfall has a picture of rows, of many colours, and no banner over it. */
function isDrawn() {
  const canvases = [...document.querySelectorAll(".waterfall canvas")];
  const isShown = [...document.querySelectorAll(".banner")].every(({ hidden }) => hidden);
  return canvases.length > 0 && isShown && canvases.every(hasRows);
}

function hasRows(canvas) {
  const copy = new OffscreenCanvas(canvas.width || 1, 4);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  return new Set(new Uint32Array(context.getImageData(0, 0, copy.width, 4).data.buffer)).size > 8;
}

globalThis.seen = new Seen();

const Plain = WebSocket;
globalThis.WebSocket = class extends Plain {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => globalThis.seen.message(data));
  }
};
