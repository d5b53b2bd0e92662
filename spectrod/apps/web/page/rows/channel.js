/** What the page knows about one topic on the screen: its rows, holds, measurements and losses. */

import { FLAG_DROPPED, FLAG_GAP, FLAG_NEW_EPOCH } from "./decode.js";
import { rowLength } from "../plot/axis.js";
import { copyRow } from "./hold.js";
import { PeakList } from "./peaks.js";
import { isNear } from "./rowat.js";
import { RowRing } from "./rows.js";

/** Rows that a waterfall keeps. */
export const RING_ROWS = 4096;

/** Values of a row that the ring has room for at first: a transform of 4096 samples. */
const VALUES_LEAST = 2049;

/** The newest rows of two streams are not further apart [ms]. */
const PAUSED_MS = 2000;

/** Longest time from a list of topics to the rows that were sent before it [ms]. */
const LAST_ROW_MS = 5000;

/** Roles that are not sent, and why. */
class Unsent {
  #roles;

  constructor(roles = [], why = "") {
    this.#roles = new Set(roles);
    this.why = why;
  }

  has(role) {
    return this.#roles.has(role);
  }
}

export class Channel {
  /** Rows for the waterfall, the newest first; null before the first. Another one if rows get longer. */
  ring = null;
  /** Newest row of 16 bits, or null: `{values, description, ...}`. */
  trace = null;
  holds = {};
  reference = null;
  measured = null;
  peaks = new PeakList();
  /** What there was when the view left the live rows, or null: `{newest, trace, holds, measured, peaks, pausedMs}`. */
  kept = null;
  /** What there is instead if the topic is no longer there; empty while it is. */
  gone = "";
  /** Topics of its source and channel that came after its newest row: what it may be called now. */
  newer = [];
  /** Whether rows are late, so that what was measured is no longer of now. */
  isSilent = false;
  /** Whether the waterfall needs rows of 16 bits, as it shows levels below those that 8 bits have. */
  isFine = false;
  /** Roles that the server does not send this page, as more streams than it allows would be needed. */
  unsent = new Unsent();
  /** Newest description of each role. */
  descriptions = {};
  counts = { missed: 0, gapSamples: 0, gaps: 0, clientDropped: 0 };
  receivedAt = null;
  #rows;
  #valuesMax = VALUES_LEAST;
  #droppedOf = {};

  /**
   * @param {object} info one of the `topics` that the server lists
   * @param {number} place number of the topic on the screen, from 0
   * @param {number} rows kept for the waterfall
   */
  constructor(info, place, rows) {
    this.info = info;
    this.place = place;
    this.#rows = rows;
  }

  /** Description of what the topic is: the trace's, which has the finest steps, else another's. */
  get description() {
    return this.descriptions.trace ?? this.descriptions.waterfall ?? null;
  }

  /** Take a `stream` text; of another epoch, what belongs to the old one is forgotten. */
  describe(role, description) {
    if (this.descriptions[role] === description) return;
    const before = this.description;
    if (before !== null && before.epoch !== description.epoch) this.#startEpoch();
    this.descriptions[role] = description;
    if (role === "waterfall") this.#fitRing(description);
  }

  #fitRing(description) {
    const length = rowLength(description);
    if (this.ring === null || length > this.#valuesMax) this.#growRing(length);
    this.ring.setDescription(description);
  }

  /** Make a ring for longer rows and copy the old one's; lengths double, so that zooming does it rarely. */
  #growRing(length) {
    while (this.#valuesMax < length) this.#valuesMax *= 2;
    const old = this.ring;
    this.ring = new RowRing({ rows: this.#rows, valuesMax: this.#valuesMax });
    for (let i = (old?.length ?? 0) - 1; i >= 0; i -= 1) {
      const row = old.at(i);
      this.ring.setDescription(row.description);
      this.ring.push(row);
    }
  }

  /** Take the number of rows that the server dropped for this client, of one stream. */
  dropped(role, count) {
    this.#droppedOf[role] = count;
    this.counts.clientDropped = Math.max(0, ...Object.values(this.#droppedOf));
  }

  #startEpoch() {
    this.holds = {};
    this.forgetMeasured();
  }

  /** Forget what was measured: it is no longer of now. */
  forgetMeasured() {
    this.measured = null;
    this.peaks.clear();
  }

  /** Note the lowest level that is shown [dB]; return whether that needs finer rows than before. */
  showDownTo(lo) {
    const { waterfall } = this.descriptions;
    if (this.isFine || waterfall?.bits !== 8 || lo >= waterfall.lo) return false;
    this.isFine = true;
    return true;
  }

  /** Note topics that are new; of its own source and channel one may be what it has become. */
  noteNewer(added, now_ms) {
    const isOwn = (one) => ["endpoint", "source", "channel"].every((name) => one[name] === this.info[name]);
    const found = added.filter((one) => isOwn(one) && one.topic !== this.info.topic);
    this.newer.push(...found.map((one) => ({ ...one, noted_ms: now_ms })));
  }

  /** Forget the topics that are not newer than a row: its last one may come after the list that has its successor. */
  #forgetNewer(now_ms) {
    if (this.newer.length === 0) return;
    this.newer = this.isSilent ? [] : this.newer.filter(({ noted_ms }) => now_ms - noted_ms < LAST_ROW_MS);
  }

  /** Note that rows are late. */
  fallSilent() {
    this.isSilent = true;
    this.forgetMeasured();
  }

  /** Forget the holds that the view no longer asks for. */
  keepHolds(names) {
    for (const name of Object.keys(this.holds)) if (!names.includes(name)) delete this.holds[name];
  }

  /**
   * Take a row of a role.
   *
   * @param {(kind: "gap" | "epoch" | "dropped", row: object) => void} notice hears of breaks
   */
  take(role, row, description, now_ms, notice) {
    this.receivedAt = now_ms;
    this.#forgetNewer(now_ms);
    this.isSilent = false;
    if (role === "waterfall") {
      this.ring.push(row);
      this.#count(row, notice);
    } else if (role === "trace") this.trace = { ...row, values: row.values.slice(), description };
    else this.holds[role] = { ...row, values: row.values.slice(), description };
  }

  #count(row, notice) {
    this.counts.missed += row.missed;
    this.counts.gapSamples += row.gapSamples;
    if (row.flags & FLAG_GAP) {
      this.counts.gaps += 1;
      notice("gap", row);
    }
    if (row.flags & FLAG_NEW_EPOCH) notice("epoch", row);
    if (row.flags & FLAG_DROPPED) notice("dropped", row);
  }

  /** Take a `measured` text. */
  measure(measured) {
    this.measured = measured;
    const tolerance_hz = this.description?.bin_hz ?? 0;
    this.peaks.update(measured.peaks ?? [], measured.t_ms, tolerance_hz);
    this.#keepMeasured();
  }

  /** Keep what was measured just after the view left the live rows, where what there was is missing or of another time: rows were late. */
  #keepMeasured() {
    const { kept, measured } = this;
    if (kept === null || !isNear(kept.newest, measured.t_ms)) return;
    if (kept.measured !== null && isNear(kept.newest, kept.measured.t_ms)) return;
    this.kept = { ...kept, measured, peaks: this.peaks.list() };
  }

  /** Keep a row as the reference, or none. */
  keepReference(row) {
    this.reference = copyRow(row);
  }

  /** Keep what there is now, for a view that leaves the live rows for a time [ms]. */
  keepMoment(toMs) {
    const { newest, newestMs, trace, holds, measured, peaks } = this;
    if (newest === null) this.kept = null;
    else {
      const pausedMs = toMs >= newestMs && toMs - newestMs <= PAUSED_MS ? toMs : NaN;
      this.kept = { newest, trace, holds: { ...holds }, measured, peaks: peaks.list(), pausedMs };
    }
  }

  /** Whether what is kept is of a time: near it, or that of the pause, as rows of streams are not equally new. */
  isKeptAt(tMs) {
    // Addresses have whole milliseconds.
    return this.kept !== null && (Math.abs(this.kept.pausedMs - tMs) < 1 || isNear(this.kept.newest, tMs));
  }

  /** Whether a time is that of a pause: rows of streams are not equally new when the view leaves them. */
  isPausedAt(tMs) {
    return this.kept !== null && (this.isKeptAt(tMs) || Math.abs(this.kept.newest.tMs - tMs) <= PAUSED_MS);
  }

  /** Note which roles the server does not send; their old rows are no longer of now. */
  setUnsent(roles, why) {
    this.unsent = new Unsent(roles, why);
    if (this.unsent.has("trace")) {
      this.trace = null;
      this.forgetMeasured();
    }
    for (const role of roles) delete this.holds[role];
  }

  /** Time of its newest row [ms], or null: the waterfall's, by which time axes go; the trace's until that has one. */
  get newestMs() {
    return this.ring !== null && this.ring.length > 0 ? this.ring.timeAt(0) : (this.trace?.tMs ?? null);
  }

  /** Newest row that has levels: of 16 bits, else the waterfall's. */
  get newest() {
    if (this.trace !== null) return this.trace;
    return this.ring !== null && this.ring.length > 0 ? this.ring.at(0) : null;
  }
}
