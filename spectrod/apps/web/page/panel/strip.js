/** One topic's waterfall and its time scale. */

import { extentOf } from "../rows/bins.js";
import { concerns } from "../link/events.js";
import { element, setAttribute, setText } from "../side/dom.js";
import { PIXELS_MAX, pixelsWanted } from "../link/demand.js";
import { columnFor } from "../rows/history.js";
import { alikeOf, JoinedRows, refilled, seamOf } from "../rows/past.js";
import { byPeriods } from "../rows/periods.js";
import { MARKS } from "../plot/palette.js";
import { chooseRenderer } from "../plot/renderer.js";
import { drawTimeRuler } from "../plot/ruler.js";
import { EventMarks } from "./eventmarks.js";
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
  #shown = null;
  #ratio = 1;
  #canvasHome = element("div", { class: "waterfall", "data-empty": true });
  #times = element("canvas", { class: "times", "aria-hidden": "true" });
  #caption = element("p", { class: "caption" });
  #waterfall;
  #heightPx = 1;
  #isUp = false;
  #marks;
  #eventMarks;

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
    this.elements = [this.#times, this.#eventMarks.targets, this.#canvasHome];
  }

  /** Element that the waterfall fills. */
  get box() {
    return this.#canvasHome;
  }

  get heightPx() {
    return this.#heightPx;
  }

  /** The canvas that is drawn now: a lost context gets another one. */
  get canvas() {
    return this.#waterfall.canvas;
  }

  get times() {
    return this.#times;
  }

  /** Set the sizes [device px]. */
  resize(widthPx, heightPx, gutterPx) {
    this.#heightPx = heightPx;
    this.#waterfall.resize(widthPx, heightPx);
    this.#times.width = gutterPx;
    this.#times.height = heightPx;
    this.#drawnTimes = "";
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

  /** Say whether rows move up, the newest at the bottom. */
  setDirection(direction) {
    this.#isUp = direction === "up";
    setAttribute(this.#canvasHome, "data-up", this.#isUp);
  }

  /** A height [CSS px from the end with the newest row] from the top, or the inverse. */
  #turned(y) {
    return this.#isUp ? this.#heightPx / this.#ratio - y : y;
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
   *   past: import("../rows/history.js").History | null, events: import("../link/events.js").EventLog, colours: object, ratio: number}} scene
   */
  draw(scene) {
    if (scene.newestMs === null) return false;
    this.#ratio = scene.ratio;
    const isJoined = this.#join(scene);
    const msPerPx = scene.spanMs / this.#heightPx;
    this.#shown = { newestMs: scene.newestMs, msPerPx };
    this.#waterfall.setMarks(MARKS[document.documentElement.dataset.theme] ?? MARKS.light);
    this.#waterfall.setScroll({ newestMs: scene.newestMs, msPerPx, paused: scene.isPaused });
    if (this.#waterfall.draw()) setAttribute(this.#canvasHome, "data-empty", null);
    this.#drawTimes(scene);
    return isJoined;
  }

  /** Put the past behind the live rows where the waterfall shows more than those; return whether it changed. */
  #join({ newestMs, spanMs, statistic, past }) {
    const { ring, info, isSilent } = this.channel;
    // Rows that came at another zoom have other values: the past may have those of this one.
    const alike = alikeOf(ring, isSilent);
    const seamMs = seamOf(ring, alike);
    const isRefilled = alike < (ring?.length ?? 0);
    const stepMs = columnFor(spanMs / this.#heightPx) * STEP_COLUMNS;
    const t0 = Math.floor((newestMs - spanMs) / stepMs) * stepMs;
    const t1 = Math.min(Math.ceil(newestMs / stepMs) * stepMs, seamMs);
    const about = past === null || t0 >= t1 ? null : this.#about(info, statistic);
    const key = about === null ? "" : [t0, t1, stepMs, spanMs, ...Object.values({ ...about, topic: info.id }), past.version, isRefilled].join();
    if (key === this.#joined && ring === this.#ring) return false;
    this.#joined = key;
    this.#ring = ring;
    this.#past = past;
    const msPerPx = spanMs / this.#heightPx;
    const rows = about === null ? [] : past.rows(this, about, { t0, t1, msPerPx }).rows;
    if (about === null) past?.forget(this);
    const joined = refilled(ring, rows, { untilMs: t1, alike });
    this.#rows = new JoinedRows(ring, byPeriods(joined.past, statistic, joined.seamMs), joined.since);
    this.#waterfall.rebuild(this.#rows);
    return true;
  }

  /** Which part of the past to ask for, or null while the topic's frequencies are not known. */
  about(statistic) {
    return this.#about(this.channel.info, statistic);
  }

  #about(topic, statistic) {
    const { description } = this.channel;
    if (description === null || this.#axis === null || !isWithin(this.#axis, extentOf(description))) return null;
    const { f0, f1, kind: axis, width } = this.#axis;
    const px = pixelsWanted(width / this.#ratio, this.#ratio, PIXELS_MAX);
    return { topic, f0, f1, axis, px, statistic };
  }

  /** Rows of the waterfall, live ones and those of the past behind them. */
  get rows() {
    return this.#rows;
  }

  /** Line of the waterfall at a height [canvas px from the top], and the time of a line; null before it is drawn. */
  lineAt(y) {
    if (this.#shown === null) return null;
    const { newestMs, msPerPx } = this.#shown;
    const row = this.#isUp ? this.#heightPx - 1 - Math.floor(y) : Math.floor(y);
    return { line: Math.floor(newestMs / msPerPx) - row, msPerPx };
  }

  /** Time that a height of the waterfall stands for [CSS px from the top]; null before it is drawn. */
  timeAt(y) {
    const found = this.lineAt(y * this.#ratio);
    return found === null ? null : timeOfLine(this.#rows, found.line, found.msPerPx);
  }

  /** The next later (1) or earlier (-1) row's time, or line's where rows are shorter. */
  stepInTime(tMs, direction) {
    return this.#shown === null ? tMs : stepInTime(this.#rows, tMs, this.#shown.msPerPx, direction);
  }

  /** Height of a time within the waterfall [CSS px from the top], also outside of it; NaN before it is drawn. */
  heightOf(tMs) {
    if (this.#shown === null) return NaN;
    const { newestMs, msPerPx } = this.#shown;
    return this.#turned((Math.floor(newestMs / msPerPx) + 1 - tMs / msPerPx) / this.#ratio);
  }

  /** The inverse of `heightOf`. */
  timeOfHeight(y) {
    if (this.#shown === null) return null;
    const { newestMs, msPerPx } = this.#shown;
    return (Math.floor(newestMs / msPerPx) + 1 - this.#turned(y) * this.#ratio) * msPerPx;
  }

  /** Share of the height that is between the end with the newest row and a height [CSS px from the top]. */
  shareOf(y) {
    const share = y / this.#canvasHome.clientHeight; // which may have changed since it was drawn
    return this.#isUp ? 1 - share : share;
  }

  /** Times at the ends of the waterfall, the earlier first; nulls before it is drawn. */
  get ends() {
    const ends = [this.timeOfHeight(0), this.timeOfHeight(this.#heightPx / this.#ratio)];
    return this.#isUp ? ends : ends.reverse();
  }

  /** Show the times of cursors, and the box of a selection: see `TimeMarks`. */
  placeMarks(marks) {
    this.#marks.place(marks, (tMs) => this.heightOf(tMs), this.#heightPx / this.#ratio);
  }

  /**
   * Show the events that concern the channel, at their times and bands.
   *
   * @param {import("../link/events.js").EventLog} events
   * @param {(hz: number) => number} toX place of a frequency [CSS px]
   */
  placeEvents(events, toX) {
    if (this.#shown === null || this.#axis === null) return;
    const [height, width] = [this.#heightPx / this.#ratio, this.#axis.width / this.#ratio];
    const [t0, t1] = this.ends;
    const { kind, f0, f1 } = this.#axis;
    const key = [t0, t1, this.#isUp, kind, f0, f1].join();
    this.#eventMarks.place(
      { marksOf: () => this.#eventsBetween(events, t0, t1), selected: events.selected, version: events.version },
      { toY: (tMs) => this.heightOf(tMs), toX, height, width, key },
    );
  }

  #eventsBetween(events, t0, t1) {
    return events.between(t0, t1).filter((mark) => concerns(mark, this.channel.info));
  }

  /** What the waterfall shows, for a figure of it; null before it is drawn. */
  figure(events) {
    if (this.#shown === null) return null;
    const { newestMs, msPerPx } = this.#shown;
    const spanMs = msPerPx * this.#heightPx;
    const entries = this.#eventsBetween(events, newestMs - spanMs, newestMs);
    return { title: topicTitle(this.channel.info), rows: this.#rows, newestMs, spanMs, entries };
  }

  #drawTimes({ newestMs, spanMs, zone, events, colours, ratio }) {
    const key = [newestMs, spanMs, this.#isUp, zone, events.version, colours.text, ratio].join();
    if (key === this.#drawnTimes) return;
    this.#drawnTimes = key;
    const t0Ms = newestMs - spanMs;
    const entries = this.#eventsBetween(events, t0Ms, newestMs);
    drawTimeRuler(this.#times, { t0Ms, t1Ms: newestMs, isUp: this.#isUp, zone, entries }, colours, ratio);
  }

  destroy() {
    this.#past?.forget(this);
    this.#waterfall.destroy();
  }
}
