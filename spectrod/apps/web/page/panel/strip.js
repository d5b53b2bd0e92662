/** One topic's waterfall with its scales and all that lies over it. */

import { extentOf } from "../rows/bins.js";
import { concerns } from "../link/events.js";
import { element, setAttribute, setText } from "../side/dom.js";
import { PIXELS_MAX, pixelsWanted } from "../link/demand.js";
import { columnFor } from "../rows/history.js";
import { alikeOf, JoinedRows, refilled, seamOf } from "../rows/past.js";
import { byPeriods } from "../rows/periods.js";
import { MARKS } from "../plot/palette.js";
import { Orientation } from "../plot/orientation.js";
import { chooseRenderer } from "../plot/renderer.js";
import { drawFrequencyRuler, drawTimeRuler } from "../plot/ruler.js";
import { EventMarks } from "./eventmarks.js";
import { Overlay } from "./overlay.js";
import { TimeMarks } from "./timemarks.js";
import { stepInTime, timeOfLine } from "../rows/rowat.js";
import { topicTitle } from "../link/topics.js";

/** Columns of the past that are taken at once, so that scrolling asks for them now and then only. */
const STEP_COLUMNS = 32;

/** Whether an axis shows some of the frequencies that a topic has. */
const isWithin = ({ f0, f1 }, extent) => f0 < extent.f1 && f1 > extent.f0;

/** A waterfall in a panel. */
export class Strip {
  #ring = null;
  #rows = new JoinedRows(null, []);
  #joined = "";
  #axis = null;
  #past = null;
  #drawnTimes = "";
  #drawnTones = "";
  #shown = null;
  #ratio = 1;
  #canvasHome = element("div", { class: "waterfall", "data-empty": true });
  #times = element("canvas", { class: "times", "aria-hidden": "true" });
  #tones = element("canvas", { class: "tones", "aria-hidden": "true" });
  #caption = element("p", { class: "caption" });
  #waterfall;
  #px = new Orientation("down", { width: 1, height: 1 });
  #timed = [];
  #marks;
  #eventMarks;

  /** Frequencies, where the line spectrum's lines of them do not go on through it. */
  overlay = new Overlay();

  /** How it lies on the screen [CSS px]. */
  places = this.#px;

  /**
   * @param {import("../rows/channel.js").Channel} channel
   * @param {{hasCaption: boolean, forced: string | null}} how `hasCaption`: several topics share a panel
   */
  constructor(channel, { hasCaption, forced }) {
    this.channel = channel;
    const canvas = element("canvas", { role: "img", "aria-label": "Waterfall" });
    this.#canvasHome.append(canvas);
    if (hasCaption) this.#canvasHome.append(this.#caption);
    setText(this.#caption, topicTitle(channel.info));
    this.#waterfall = chooseRenderer(canvas, forced);
    this.#eventMarks = new EventMarks(this.#canvasHome);
    this.#marks = new TimeMarks(this.#canvasHome);
    this.elements = [this.#times, this.#tones, this.#eventMarks.targets, this.#canvasHome];
  }

  /** Element that the waterfall fills. */
  get box() {
    return this.#canvasHome;
  }

  /** Lines of the waterfall [device px]. */
  get lengthPx() {
    return this.#px.length;
  }

  /** Columns of the waterfall, so the width of its axis [device px]. */
  get breadthPx() {
    return this.#px.breadth;
  }

  /** The canvas that is drawn now: a lost context gets another one. */
  get canvas() {
    return this.#waterfall.canvas;
  }

  get times() {
    return this.#times;
  }

  /**
   * Set direction and sizes [device px].
   *
   * @param {{direction: string, width: number, height: number, gutter: number, foot: number, timed: object[]}} given
   *   `gutter` and `foot`: of the scales at the left and below; `timed`: topics whose events its time scale has, none
   *   where it has no time scale
   * @param {number} ratio device pixels of a CSS pixel
   */
  resize({ direction, width, height, gutter, foot, timed }, ratio) {
    this.#ratio = ratio;
    this.#px = new Orientation(direction, { width, height });
    this.places = new Orientation(direction, { width: width / ratio, height: height / ratio });
    this.#waterfall.resize(width, height, direction);
    const { isUpright } = this.places;
    setAttribute(this.#canvasHome, "data-upright", isUpright);
    if (isUpright) this.canvas.after(this.overlay.root);
    else this.overlay.root.remove();
    this.#timed = timed;
    Object.assign(this.#times, isUpright ? { width, height: foot } : { width: gutter, height });
    Object.assign(this.#tones, { width: gutter, height });
    for (const part of [this.#times, this.#eventMarks.targets]) part.hidden = timed.length === 0;
    this.#drawnTimes = this.#drawnTones = "";
  }

  get axis() {
    return this.#axis;
  }

  setAxis(axis) {
    this.#axis = axis;
    this.#waterfall.setAxis(axis);
  }

  setLevels({ lo, hi }) {
    this.#waterfall.setLevels(lo, hi);
  }

  setPalette(name) {
    this.#waterfall.setPalette(name);
  }

  setLabel(text) {
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${topicTitle(this.channel.info)}, waterfall. ${text}`);
  }

  /** Take a row that is already in the channel's ring. */
  append(row, description) {
    if (this.#ring === this.channel.ring) this.#waterfall.append(row, description);
  }

  /**
   * Draw what has changed; return whether other rows than before are there to be looked at.
   *
   * @param {{newestMs: number | null, spanMs: number, isPaused: boolean, zone: string, statistic: string,
   *   past: import("../rows/history.js").History | null, events: import("../link/events.js").EventLog, colours: object}} scene
   */
  draw(scene) {
    if (scene.newestMs === null) return false;
    const isJoined = this.#join(scene);
    const msPerPx = scene.spanMs / this.lengthPx;
    this.#shown = { newestMs: scene.newestMs, msPerPx };
    this.#waterfall.setMarks(MARKS[document.documentElement.dataset.theme] ?? MARKS.light);
    this.#waterfall.setScroll({ newestMs: scene.newestMs, msPerPx, paused: scene.isPaused });
    if (this.#waterfall.draw()) setAttribute(this.#canvasHome, "data-empty", null);
    this.#drawScales(scene);
    return isJoined;
  }

  /** Put the past behind the live rows where the waterfall shows more than those; return whether it changed. */
  #join({ newestMs, spanMs, statistic, past }) {
    const { ring, info, isSilent } = this.channel;
    // Rows that came at another zoom have other values: the past may have those of this one.
    const alike = alikeOf(ring, isSilent);
    const seamMs = seamOf(ring, alike);
    const isRefilled = alike < (ring?.length ?? 0);
    const stepMs = columnFor(spanMs / this.lengthPx) * STEP_COLUMNS;
    const t0 = Math.floor((newestMs - spanMs) / stepMs) * stepMs;
    const t1 = Math.min(Math.ceil(newestMs / stepMs) * stepMs, seamMs);
    const about = past === null || t0 >= t1 ? null : this.about(statistic);
    const key = about === null ? "" : [t0, t1, stepMs, spanMs, ...Object.values({ ...about, topic: info.id }), past.version, isRefilled].join();
    if (key === this.#joined && ring === this.#ring) return false;
    this.#joined = key;
    this.#ring = ring;
    this.#past = past;
    const msPerPx = spanMs / this.lengthPx;
    const rows = about === null ? [] : past.rows(this, about, { t0, t1, msPerPx, isBeforeLive: t1 === seamMs }).rows;
    if (about === null) past?.forget(this);
    const joined = refilled(ring, rows, { untilMs: t1, alike });
    this.#rows = new JoinedRows(ring, byPeriods(joined.past, statistic, joined.seamMs), joined.since);
    this.#waterfall.rebuild(this.#rows);
    return true;
  }

  /** Which part of the past to ask for along an axis, or null while the topic's frequencies are not known. */
  about(statistic, shown = this.#axis) {
    const { description, info: topic } = this.channel;
    if (description === null || shown === null || !isWithin(shown, extentOf(description))) return null;
    const { f0, f1, kind: axis, width } = shown;
    const px = pixelsWanted(width / this.#ratio, this.#ratio, PIXELS_MAX);
    return { topic, f0, f1, axis, px, statistic };
  }

  /** Rows of the waterfall, live ones and those of the past behind them. */
  get rows() {
    return this.#rows;
  }

  /**
   * Line and column of the waterfall at a place [CSS px], and the time of a line; null before it is drawn.
   *
   * @returns {{line: number, msPerPx: number, px: number} | null}
   */
  pixelAt({ x, y }) {
    if (this.#shown === null) return null;
    const { newestMs, msPerPx } = this.#shown;
    const { tone, age } = this.#px.pixelAt({ x: x * this.#ratio, y: y * this.#ratio });
    return { line: Math.floor(newestMs / msPerPx) - age, msPerPx, px: Math.max(0, Math.min(this.breadthPx - 1, tone)) };
  }

  /** Time of the row, or line, at a place of the waterfall [CSS px]; null before it is drawn. */
  timeAt(at) {
    const found = this.pixelAt(at);
    return found === null ? null : timeOfLine(this.#rows, found.line, found.msPerPx);
  }

  /** The next later (1) or earlier (-1) row's time, or line's where rows are shorter. */
  stepInTime(tMs, direction) {
    return this.#shown === null ? tMs : stepInTime(this.#rows, tMs, this.#shown.msPerPx, direction);
  }

  /** Age of a time [CSS px], also outside of the waterfall; NaN before it is drawn. */
  ageOf(tMs) {
    if (this.#shown === null) return NaN;
    const { newestMs, msPerPx } = this.#shown;
    return (Math.floor(newestMs / msPerPx) + 1 - tMs / msPerPx) / this.#ratio;
  }

  /** The inverse of `ageOf`; null before it is drawn. */
  timeOf(age) {
    if (this.#shown === null) return null;
    const { newestMs, msPerPx } = this.#shown;
    return (Math.floor(newestMs / msPerPx) + 1 - age * this.#ratio) * msPerPx;
  }

  /** Place of a frequency on the axis [CSS px]. */
  toneOf(hz) {
    return this.#axis.toPlace(hz) / this.#ratio;
  }

  /** Times at the ends of the waterfall, the earlier first; nulls before it is drawn. */
  get ends() {
    return [this.timeOf(this.places.length), this.timeOf(0)];
  }

  /** Show the times of cursors, and the box of a selection: see `TimeMarks`. */
  placeMarks(marks) {
    this.#marks.place(marks, this);
  }

  /** Show the events that concern the channel, at their times and bands. */
  placeEvents(events) {
    if (this.#shown === null || this.#axis === null) return;
    const [t0, t1] = this.ends;
    const { kind, f0, f1 } = this.#axis;
    const key = [t0, t1, this.places.direction, kind, f0, f1].join();
    const { version, selected } = events;
    const listed = { marksOf: () => this.#eventsBetween(events, t0, t1), timedOf: () => this.#eventsBetween(events, t0, t1, this.#timed), selected };
    this.#eventMarks.place({ ...listed, key: [version, key].join() }, this);
  }

  /** Events that concern some topics, its own if no others are given. */
  #eventsBetween(events, t0, t1, topics = [this.channel.info]) {
    return events.between(t0, t1).filter((mark) => topics.some((info) => concerns(mark, info)));
  }

  /** What the waterfall shows, for a figure of it; null before it is drawn. */
  figure(events) {
    if (this.#shown === null) return null;
    const { newestMs, msPerPx } = this.#shown;
    const spanMs = msPerPx * this.lengthPx;
    const entries = this.#eventsBetween(events, newestMs - spanMs, newestMs);
    return { title: topicTitle(this.channel.info), rows: this.#rows, newestMs, spanMs, entries };
  }

  #drawScales({ newestMs, spanMs, zone, events, colours }) {
    const { direction, isUpright } = this.places;
    const { kind, f0, f1 } = this.#axis;
    const tones = [kind, f0, f1, colours.text].join();
    if (isUpright && tones !== this.#drawnTones) drawFrequencyRuler(this.#tones, this.#axis, colours, this.#ratio, isUpright);
    this.#drawnTones = tones;
    const key = [newestMs, spanMs, zone, events.version, colours.text].join();
    if (key === this.#drawnTimes) return;
    this.#drawnTimes = key;
    const t0Ms = newestMs - spanMs;
    const entries = this.#eventsBetween(events, t0Ms, newestMs, this.#timed);
    drawTimeRuler(this.#times, { t0Ms, t1Ms: newestMs, direction, zone, entries }, colours, this.#ratio);
  }

  destroy() {
    this.#past?.forget(this);
    this.#waterfall.destroy();
  }
}
