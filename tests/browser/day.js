// A server of the page in the page itself, whose clock runs as fast as the page draws: see test_day.py.
(() => {
  const T0_MS = Date.UTC(2026, 0, 1);
  const BINS = 1024;
  const FS = 48000;
  const ROWS_S = 10; // rows a second of a waterfall
  const TRACES_S = 2;
  const TOPICS = ["left", "right"].map((channel, k) => ({
    ...{ id: k + 1, topic: `spec/pair/${channel}/dbfs/`, kind: "spec", endpoint: "tcp://a:1", source: "pair", channel },
    ...{ product: "dbfs", unit: "dBFS", fs: FS, interval_s: null },
  }));
  const METER = { ...TOPICS[0], id: 9, topic: "levels/pair/left/meter/", kind: "levels", product: "meter", interval_s: 1 };
  const LIMITS = { streams: 8, values: 16384, rows_s: 50, clients: 32, message_bytes: 16384 };
  // Real times pass too slowly for a page that lives a day in a minute.
  const later = window.setTimeout.bind(window);
  const HEADER_BYTES = 32;

  let socket = null;
  let streams = [];
  let seconds = 0;
  let message = 0;
  let generation = 0;
  let epoch = 1;
  let seq = 0;

  class DaySocket {
    constructor() {
      later(() => {
        socket = this;
        streams = [];
        this.tell({ op: "hello", version: 1, program: "spectrod day", now_ms: T0_MS, limits: LIMITS, can_control: false, has_history: false });
        this.tell({ op: "topics", topics: [...TOPICS, METER] });
      }, 0);
    }

    tell(text) {
      this.onmessage?.({ data: JSON.stringify(text) });
    }

    send(text) {
      const asked = JSON.parse(text);
      if (asked.op === "view") later(() => this.show(asked), 0);
    }

    show({ streams: wanted, generation: view }) {
      if (socket !== this) return;
      streams = wanted.map((wish) => ({ ...wish, generation: (generation += 1), view }));
      streams.forEach((stream) => this.describe(stream));
    }

    describe({ id, topic_id, bits, of, stat, generation: number, view }) {
      const { topic, endpoint } = TOPICS[topic_id - 1];
      const scale = bits === 8 ? { lo: -117, step: 0.5 } : { lo: -327.67, step: 0.01 };
      this.tell({
        ...{ op: "stream", id, generation: number, view, topic_id, topic, kind: "spec", endpoint, epoch: String(epoch), fs: FS },
        ...{ nfft: 2 * BINS, win_length: 2 * BINS, hop: FS / ROWS_S, frame_hop: FS / ROWS_S, averaging: "none", averaging_frames: 1 },
        ...{ window: "hann", enbw_hz: 35, unit: "dBFS", ref: "", cal_id: null, engine: "numpy", weighting: "Z", row_s: 1 / ROWS_S },
        ...{ first_hz: 0, bin_hz: FS / 2 / BINS, edges_hz: null, n_bins: BINS, of, statistic: stat, bits, ...scale },
        slices: [{ first: 0, per_value: 1, values: BINS }],
      });
    }

    close() {
      if (socket === this) socket = null;
    }

    lose() {
      this.close();
      this.onclose?.({ code: 1012, reason: "" });
    }
  }
  window.WebSocket = DaySocket;

  /** Rows of a stream in a second: noise that moves, from one table. */
  const noise = Uint16Array.from({ length: 4 * BINS }, (_, k) => (k * 48271) % 97);

  function block({ id, generation: number, bits, of }, flags) {
    const rows = of !== "rows" ? 1 : bits === 8 ? ROWS_S : TRACES_S;
    const bytes = 16 + rows * (HEADER_BYTES + (BINS * bits) / 8);
    const data = new DataView(new ArrayBuffer(bytes));
    const head = [id, number & 0xffff, rows, bits];
    head.forEach((value, k) => data.setUint16(2 * k, value, true));
    data.setUint32(8, BINS, true);
    for (let n = 0; n < rows; n += 1) {
      const at = 16 + n * HEADER_BYTES;
      data.setUint32(at, (seq += 1), true);
      data.setUint16(at + 8, ROWS_S / rows, true);
      data.setUint16(at + 10, n === 0 ? flags : 0, true);
      data.setFloat64(at + 16, T0_MS + 1000 * (seconds + (n + 0.5) / rows), true);
      data.setFloat64(at + 24, n === 0 && flags & 1 ? 480 : 0, true);
      const Values = bits === 8 ? Uint8Array : Uint16Array;
      const values = new Values(data.buffer, 16 + rows * HEADER_BYTES + (n * BINS * bits) / 8, BINS);
      const [base, factor] = bits === 8 ? [60, 1] : [24000, 50];
      const begin = (seq * 977) % (3 * BINS);
      for (let k = 0; k < BINS; k += 1) values[k] = base + factor * noise[begin + k];
    }
    return new Uint8Array(data.buffer);
  }

  function second() {
    const flags = (seconds % 600 === 300 ? 1 : 0) | (seconds % 3600 === 1800 ? 8 : 0);
    const blocks = streams.map((stream) => block(stream, flags));
    const size = blocks.reduce((sum, { length }) => sum + length, 8);
    const whole = new Uint8Array(size);
    const view = new DataView(whole.buffer);
    view.setUint8(0, 1);
    view.setUint8(1, 1);
    view.setUint16(2, blocks.length, true);
    view.setUint32(4, (message += 1), true);
    let at = 8;
    for (const one of blocks) {
      whole.set(one, at);
      at += one.length;
    }
    if (blocks.length > 0) socket.onmessage?.({ data: whole.buffer });
    tellSecond();
    seconds += 1;
  }

  function tellSecond() {
    const t_ms = T0_MS + 1000 * seconds;
    const beat = { state: "running", waiting_for: "", frames: seq, checks: [], clipped_samples: 0, clock_offset_s: 0 };
    socket.tell({ op: "state", clients: 1, now_ms: t_ms, endpoints: [{ endpoint: "tcp://a:1", connected: true, silence_s: 0.1, missed: 0, why: "" }], sources: [{ endpoint: "tcp://a:1", source: "pair", ...beat }] });
    socket.tell({ op: "values", topic_id: 9, t_ms, interval_s: 1, names: ["LAeq"], units: ["dBFS"], values: [-40 + (seconds % 7)], flags: [] });
    for (const { id, measure } of streams) {
      if (measure === undefined) continue;
      const peaks = Array.from({ length: 10 }, (_, k) => ({ hz: 100 * (k + 1) + ((seconds / 60) | 0) % 90, level: -30 - k, hz_error: null }));
      const cursors = (measure.cursors ?? []).map((hz) => ({ hz, bin_hz: hz, level: -50 }));
      socket.tell({ op: "measured", id, seq, t_ms, peaks, cursors, bands: [] });
    }
    if (seconds % 60 === 0) {
      socket.tell({ op: "event", endpoint: "tcp://a:1", source: "pair", t_ms, kind: "trigger", text: `number ${seconds}`, number: seconds });
    }
  }

  /** What a person does now and then: zoom, another axis, holds, pause and live, all channels in one. */
  const ACTS = ["zoomIn", "pause", "live", "holdMax", "showAll", "reference", "resetHolds", "cursor", "spanLonger", "spanShorter"];

  function act(hourPart) {
    document.querySelector(".surface").focus();
    const name = ACTS[hourPart % ACTS.length];
    const keys = { zoomIn: "+", pause: " ", live: "End", holdMax: "m", showAll: "Home", reference: "f", resetHolds: "r", cursor: "c", spanLonger: "ArrowRight", spanShorter: "ArrowLeft" };
    const shiftKey = name.startsWith("span");
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: keys[name], shiftKey, bubbles: true }));
    const layout = document.getElementById("layout");
    layout.value = layout.value === "side" ? "over" : "side";
    layout.dispatchEvent(new Event("change"));
  }

  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

  /** Let `hours` pass, `secondsAFrame` of them in each frame that the page draws; return the frames. */
  window.passHours = async (hours, secondsAFrame) => {
    const until = seconds + 3600 * hours;
    let frames = 0;
    while (seconds < until) {
      await frame();
      if (socket === null || streams.length === 0) continue;
      frames += 1;
      for (let n = 0; n < secondsAFrame && socket !== null; n += 1) second();
      if (seconds % 600 < secondsAFrame) act(Math.floor(seconds / 600));
      if (seconds % (6 * 3600) < secondsAFrame && seconds < until) {
        epoch += 1;
        socket.lose();
      }
    }
    return frames;
  };
})();
