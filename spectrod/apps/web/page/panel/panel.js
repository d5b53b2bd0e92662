/** A panel: the line spectrum of one or several topics, their waterfalls below, one frequency axis. */

import { valuesOfPixel } from "../plot/axis.js";
import { levelOfValues } from "../rows/bins.js";
import { levelOf } from "../rows/levels.js";
import { bannerText, legend, pointText } from "./captions.js";
import { readCursor, readingText } from "./cursor.js";
import { harmonicReadings, harmonicsOf } from "./harmonics.js";
import { setAttribute, setText } from "../side/dom.js";
import { shownLevels } from "../rows/follow.js";
import { layersOf } from "../rows/hold.js";
import { LINE_KINDS } from "../plot/linekinds.js";
import { momentOf } from "../rows/moment.js";
import { Overlay } from "./overlay.js";
import { makeParts, showLegend } from "./panelparts.js";
import { rangeKey, rangeOf } from "./ranges.js";
import { axisOf, limitsOf } from "../rows/range.js";
import { differenceOf, differenceWith } from "../rows/difference.js";
import { levelOfPixel } from "../rows/rowat.js";
import { axisOfBars, hasNoBars, hasSums, shownRow } from "../rows/spectrumsum.js";
import { differenceMap } from "../plot/palette.js";
import { Orientation, wayIn } from "../plot/orientation.js";
import { drawFrequencyRuler, drawGrid, drawLevelRuler } from "../plot/ruler.js";
import { decimalsOf, formatHertz, formatLevel, formatTime } from "../plot/time.js";
import { topicTitle } from "../link/topics.js";
import { Trace } from "../plot/trace.js";
import { atShownTime, shownMs } from "./view.js";

/** Shapes of the lines of stored spectra, one after another; limits are wide and without gaps. */
const STORED_LINES = Object.freeze([
  { colour: "series6", width: 1, dash: [8, 3] },
  { colour: "series2", width: 1, dash: [8, 2, 2, 2] },
  { colour: "series3", width: 1, dash: [4, 4] },
  { colour: "series5", width: 1, dash: [12, 4] },
  { colour: "series7", width: 1, dash: [2, 2] },
]);
const storedEntry = ({ name, points }, k) => {
  const { colour, dash } = STORED_LINES[k % STORED_LINES.length];
  return { text: name, colour, dash: points === undefined ? dash : null };
};

const POINTER_MS = 100;
/** Ends of the scale of differences, the least that has them all [dB]. */
const DIFFERENCES_DB = Object.freeze([20, 40, 80, 160, 640]);

function lineStyle(name, colour, ratio) {
  const { width, dash } = LINE_KINDS[name];
  return { name, colour, width: width * ratio, dash: dash && dash.map((px) => px * ratio) };
}

function storedLayer({ name, row, points }, k, { view, colours, ratio }) {
  const { colour, ...shape } = STORED_LINES[k % STORED_LINES.length];
  const style = { name, colour: colours[colour], width: shape.width * ratio, dash: shape.dash.map((px) => px * ratio), isFilled: false };
  return points === undefined ? { ...shownRow(row, view), style } : { points, style: { ...style, width: 2 * ratio, dash: null } };
}

const differenceAt = ([row, other]) => (row === null || other === null ? null : differenceWith(row, other));

/** One panel. Its elements are made once; `draw` brings them up to date. */
export class Panel {
  axis = axisOf({ f0: null, f1: null }, limitsOf([], "linear"), 1);
  limits = limitsOf([], "linear");
  levels = { lo: NaN, hi: NaN };
  #stale = { layout: true, trace: true, overlay: true, scales: true };
  #ratio = 1;
  #drawn = {};
  #pointer = null;
  #pointedAt = -Infinity;
  #session;
  #traces;
  #subtracted = null;
  #differenceDb = DIFFERENCES_DB[0];
  #onResize;
  #observer;
  #cursorRows;
  #rows = "";
  overlay = new Overlay();

  /**
   * @param {import("../rows/channel.js").Channel[]} channels
   * @param {{session: import("../link/session.js").Session, forced: string | null, onResize: () => void,
   *   levels: (panel: Panel) => object, cursorRows: import("../rows/cursorrow.js").CursorRows,
   *   traces: import("../side/storedtraces.js").StoredTraces}} given `levels`: what its bar does, see `LevelBar`
   */
  constructor(channels, { session, forced, onResize, levels, cursorRows, traces }) {
    this.channels = channels;
    this.#session = session;
    this.#traces = traces;
    this.#onResize = onResize;
    this.#cursorRows = cursorRows;
    Object.assign(this, makeParts(channels, { forced, levels: levels(this) }));
    this.trace = new Trace(this.traceCanvas);
    this.#observer = new ResizeObserver(() => this.#markResized());
    for (const box of [this.traceBox, ...this.strips.map((strip) => strip.box)]) this.#observer.observe(box);
  }

  #markResized() {
    this.#stale.layout = true;
    this.#onResize();
  }

  /** Lay out the plots: the line spectrum has a share of the height [%], and below a waterfall is what has its time axis there. */
  arrange({ split, direction, lines }) {
    const { isUpright } = new Orientation(direction, this.grid);
    const hasLines = isUpright && lines.length > 0;
    const each = (100 - split) / this.strips.length;
    const strip = `minmax(3rem, ${hasLines ? each * 0.7 : each}fr) ${hasLines ? `minmax(3rem, ${each * 0.3}fr)` : 0} `;
    const rows = `auto minmax(3rem, ${split}fr) 1.6rem ${strip.repeat(this.strips.length)}[foot] ${isUpright ? "1.6rem" : 0} [after]`;
    if (rows + direction === this.#rows) return;
    this.#rows = rows + direction;
    this.plot.style.gridTemplateRows = rows;
    setAttribute(this.plot, "data-upright", isUpright);
    (isUpright ? this.traceBox : this.surface).append(this.overlay.root);
    this.#stale.layout = true;
  }

  /** Say that something other than rows has changed: the view, the colours. */
  touch() {
    Object.assign(this.#stale, { trace: true, overlay: true, scales: true });
  }

  /** Say that something new was measured. */
  touchReadings() {
    this.#stale.overlay = true;
  }

  /** Take a row of one of the panel's channels. */
  append(channel, role, row, description) {
    if (role === "waterfall") this.#stripOf(channel)?.append(row, description);
    else this.#stale.trace = true;
  }

  /** How a topic is shown, for `Session.demand`. */
  shapeOf(view, channel) {
    const described = this.#descriptions();
    const widthCss = this.traceBox.clientWidth || 1;
    const ratio = devicePixelRatio;
    const { box } = this.#stripOf(channel) ?? this.strips[0];
    const { breadth, length } = new Orientation(view.direction, { width: widthCss, height: box.clientHeight });
    const size = { widthCss, breadthCss: breadth, lengthPx: Math.round(length * ratio), ratio };
    if (described.length === 0) {
      const f1 = (this.channels[0].info.fs ?? 48000) / 2;
      return { f0: 0, f1, axis: "linear", ...size };
    }
    const limits = limitsOf(described, view.axis);
    const axis = axisOf(view, limits, widthCss);
    const { f0, f1, kind } = axis;
    return { f0, f1, axis: kind, line: axisOfBars(axis, channel.description, view), ...size };
  }

  #stripOf(channel) {
    return this.strips.find((strip) => strip.channel === channel);
  }

  /** Descriptions of the topics with the same sample rate: their panels' axes are alike. */
  #descriptions() {
    const { fs } = this.channels[0].info;
    const alike = this.#session.channels.filter(({ info }) => info.fs === fs);
    return [...new Set([...this.channels, ...alike])].map(({ description }) => description).filter(Boolean);
  }

  /** What actions look at: axis and levels of the view, which may not be drawn yet. */
  scene(view) {
    const limits = limitsOf(this.#descriptions(), view.axis);
    const axis = axisOf(view, limits, this.grid.width);
    const levels = rangeOf(view, this.levelKey(view)) ?? this.levels;
    const moments = this.moments(view);
    const peaks = moments.flatMap((moment) => moment.peaks).sort((a, b) => b.level - a.level);
    const stepInTime = (tMs, direction) => this.strips[0].stepInTime(tMs, direction);
    return { view, axis, limits, levels, peaks, newestMs: this.newestMs(), row: moments[0].row, stepInTime };
  }

  /** Time of the newest row of the panel's daemons, or null. */
  newestMs() {
    const times = this.channels.map(({ info }) => this.#session.newestMs(info.endpoint)).filter((t) => t !== null);
    return times.length > 0 ? Math.max(...times) : null;
  }

  /**
   * Draw what has changed.
   *
   * @param {{view: object, now: number, colours: object, zone: string, levels: {lo: number, hi: number},
   *   hasOthers: boolean, past: import("../rows/history.js").History | null}} scene `hasOthers`: whether there are
   *   other panels; `past`: null where the server has none
   */
  draw({ view, now, colours, zone, levels, hasOthers, past }) {
    if (this.#stale.layout) this.#resize(view);
    this.#setAxis(view);
    this.#noteSubtracted();
    this.#setLevels(levels);
    this.#setLook(view, colours);
    this.#showBar(view, hasOthers, colours);
    this.#drawScales(colours);
    this.#noteCursorRows(view);
    this.#drawTrace(view, colours, zone);
    const newestMs = view.t1 ?? this.newestMs();
    const { events } = this.#session;
    const isPaused = view.t1 !== null;
    for (const strip of this.strips) {
      const { span, statistic } = view;
      const scene = { newestMs, spanMs: span * 1000, statistic, past, isPaused, zone, events, colours };
      if (strip.draw(scene) && shownMs(view) !== null) this.#stale.trace = true;
    }
    this.#placeMarks(view, zone);
    this.#drawLines(view, { colours, zone, ratio: this.#ratio });
    this.#drawOverlay(view);
    this.#drawBanner(now, view, zone);
    if (this.#pointer !== null && now - this.#pointedAt >= POINTER_MS) this.point(this.#pointer, view, zone);
  }

  #resize(view) {
    this.#stale.layout = false;
    const ratio = devicePixelRatio;
    this.#ratio = ratio;
    const size = (box) => [Math.max(1, Math.round(box.clientWidth * ratio)), Math.max(1, Math.round(box.clientHeight * ratio))];
    const [width, height] = size(this.traceBox);
    this.trace.resize(width, height);
    Object.assign(this.grid, { width, height });
    const [gutter, scaleHeight] = size(this.corner);
    Object.assign(this.levelRuler, { width: gutter, height });
    Object.assign(this.frequencyRuler, { width, height: scaleHeight });
    const { direction } = view;
    const topics = this.channels.map(({ info }) => info);
    const { isUpright } = new Orientation(direction, this.grid);
    this.strips.forEach((strip, k) => {
      // Below the last waterfall is the time scale of all.
      const timed = isUpright ? (k === topics.length - 1 ? topics : []) : [topics[k]];
      strip.resize({ direction, width, height: size(strip.box)[1], gutter, foot: scaleHeight, timed }, ratio);
    });
    this.lines.resize(ratio);
    this.#drawn = {};
    this.touch();
    this.#setAxis(view);
  }

  /** Draw levels over time; the plots make room for them where some are chosen. */
  #drawLines(view, look) {
    setAttribute(this.plot, "data-lines", view.lines.length > 0);
    const pointedMs = this.#pointer === null ? null : this.timeAt(this.#pointer);
    this.lines.draw({ ...this.#linesOf(view), times: view.times, pointedMs }, this.strips, look);
  }

  /** What levels over time are of. */
  #linesOf(view) {
    const { levels: series, topics } = this.#session;
    return { chosen: view.lines, series, topics, shownMs: shownMs(view) };
  }

  #setAxis(view) {
    const limits = limitsOf(this.#descriptions(), view.axis);
    const axis = axisOf(view, limits, this.grid.width);
    this.limits = limits;
    const key = [axis.kind, axis.f0, axis.f1, axis.width].join();
    if (key === this.#drawn.axis) return;
    this.#drawn.axis = key;
    this.axis = axis;
    this.trace.setAxis(axis);
    for (const strip of this.strips) strip.setAxis(strip.breadthPx === axis.width ? axis : axisOf(view, limits, strip.breadthPx));
    this.touch();
  }

  #setLevels({ lo, hi }) {
    if (lo === this.#drawn.lo && hi === this.#drawn.hi) return;
    Object.assign(this.#drawn, { lo, hi });
    this.levels = { lo, hi };
    for (const strip of this.strips) strip.setLevels(this.levels);
    const needing = this.channels.filter((channel) => channel.showDownTo(lo));
    if (needing.length > 0) this.#onResize();
    this.touch();
  }

  /** Levels of the line spectrum: those of the waterfalls, or of differences. */
  get #traceLevels() {
    return this.#subtracted === null ? this.levels : { lo: -this.#differenceDb, hi: this.#differenceDb };
  }

  /** Take the stored spectrum whose difference is shown, or none. */
  #noteSubtracted() {
    const found = this.#traces.subtractedFrom(this.levelsOf);
    if (found === this.#subtracted) return;
    this.#subtracted = found;
    this.#differenceDb = DIFFERENCES_DB[0];
    this.touch();
  }

  /** A row as its line shows it: smoothed, as bars, as a difference; null without one, or where there is none. */
  #shaped(row, view) {
    const shown = shownRow(row, view);
    if (this.#subtracted === null || shown === null) return shown;
    return differenceOf(shown, shownRow(this.#subtracted.row, view));
  }

  /** Whether it shows differences of channels: all of its channels are, or none. */
  get isDifference() {
    return this.channels[0].info.less !== undefined;
  }

  /** Map of its colours in a theme. */
  #mapOf({ map }, theme) {
    return this.isDifference ? differenceMap(theme) : map;
  }

  /** What its range of levels depends on, see `rangeKey`. */
  get levelsOf() {
    const { unit = "dB", ref } = this.channels[0].description ?? this.channels[0].info;
    const names = this.channels.flatMap(({ info }) => [info, info.less]).filter(Boolean).map((info) => this.#session.nameOf(info));
    return { names, unit, ref, isDifference: this.isDifference };
  }

  /** Key of its range of levels. */
  levelKey(view) {
    return rangeKey(view, this.levelsOf);
  }

  /** Levels of each channel on the screen, for the automatic range. */
  shownLevels(view) {
    const newestMs = view.t1 ?? this.newestMs();
    if (newestMs === null) return [];
    const isLive = shownMs(view) === null;
    const seconds = this.#seconds(view);
    const stored = this.#traces.shownOver(this.levelsOf);
    const limits = stored.flatMap(({ points = [] }) => points).filter(([hz]) => hz >= this.axis.f0 && hz <= this.axis.f1);
    const tops = limits.map(([, level]) => level);
    return this.channels.map((channel, k) => {
      const { rows } = this.#stripOf(channel);
      const { row, holds } = this.momentOf(channel, view);
      const names = view.holds.filter((name) => !hasNoBars(name, channel.description, view));
      const still = [...names.map((name) => holds[name]), channel.reference, seconds[k]?.row, isLive ? null : row, ...stored.map((one) => one.row)];
      const held = still.filter(Boolean).map((one) => shownRow(one, view)).filter(Boolean);
      const shown = { rows, line: isLive ? shownRow(row, view) : null, held, tops };
      return shownLevels(shown, this.axis, { newestMs, spanMs: 1000 * view.span });
    });
  }

  #showBar(view, hasOthers, colours) {
    const isAuto = rangeOf(view, this.levelKey(view)) === null;
    const { isLinked } = view;
    this.bar.show({ range: this.levels, isAuto, isLinked, hasOthers, unit: this.unitOf(0), map: this.#mapOf(view, document.documentElement.dataset.theme) }, colours, this.#ratio);
  }

  #setLook(view, colours) {
    const map = this.#mapOf(view, document.documentElement.dataset.theme);
    if (this.#drawn.map !== map) {
      this.#drawn.map = map;
      for (const strip of this.strips) strip.setPalette(map);
    }
    if (this.#drawn.colours !== colours) this.touch();
    this.#drawn.colours = colours;
  }

  #drawScales(colours) {
    if (!this.#stale.scales) return;
    this.#stale.scales = false;
    drawGrid(this.grid, this.axis, this.#traceLevels, colours, this.#ratio);
    drawFrequencyRuler(this.frequencyRuler, this.axis, colours, this.#ratio);
    drawLevelRuler(this.levelRuler, this.#traceLevels, colours, this.#ratio);
    // A scale of differences is not that of the waterfalls, and is not taken hold of.
    setAttribute(this.levelRuler, "data-other", this.#subtracted !== null);
    const units = new Set(this.channels.map((_, k) => this.unitOf(k)));
    setText(this.unit, this.#subtracted === null && !this.isDifference ? [...units].join(", ") : "Δ dB");
  }

  /** What a view shows of one of the panel's channels. */
  momentOf(channel, view) {
    return this.#momentAt(channel, view, shownMs(view));
  }

  /** What is known of a channel at a time; `t1` null: now. */
  #momentAt(channel, view, t1) {
    const { times, span, statistic } = view;
    const strip = this.#stripOf(channel);
    const { rows, lengthPx } = strip;
    const axis = axisOfBars(this.axis, channel.description, view);
    // Rows of the waterfall end where the view does, and bands do not; those of a difference are not of two spectra that can be summed.
    const hasParts = hasSums(view) && channel.info.less !== undefined;
    const isAsked = times.includes(t1) || ((hasParts || axis !== this.axis) && !channel.isKeptAt(t1));
    const about = isAsked && t1 !== null ? strip.about(statistic, axis) : null;
    const hasServer = about !== null && this.#session.hello?.has_history === true;
    const at = (scale, tMs) => (topic) => this.#cursorRows.at({ ...about, topic }, tMs, scale);
    const whole = (topic, rowOf) => (hasParts ? differenceAt([{ ...topic, less: undefined }, topic.less].map(rowOf)) : rowOf(topic));
    const fine = about === null ? null : (scale, tMs) => (hasServer ? whole(about.topic, at(scale, tMs)) : null);
    return momentOf(channel, { rows, t1, msPerPx: (1000 * span) / lengthPx, fine, isCursor: times.includes(t1) });
  }

  /** What is known at the second cursor's time of each channel, where both cursors have a time. */
  #seconds(view) {
    const [first, second] = view.times;
    if (typeof first !== "number" || typeof second !== "number") return [];
    return this.channels.map((channel) => this.#momentAt(channel, view, second));
  }

  /** Take the rows that have come for the cursors' times. */
  #noteCursorRows({ times }) {
    const { version } = this.#cursorRows;
    if (times.length === 0 || version === this.#drawn.cursorRows) return;
    this.#drawn.cursorRows = version;
    this.#stale.trace = true;
  }

  /** What a view shows of each channel. */
  moments(view) {
    return this.channels.map((channel) => this.momentOf(channel, view));
  }

  #drawTrace(view, colours, zone) {
    if (!this.#stale.trace) return;
    this.#stale.trace = false;
    const { own, layers, entries } = this.#spectrum(view, colours, zone, this.#ratio);
    showLegend(this.legend, entries, colours);
    this.#fitDifferences(own);
    const { lo, hi } = this.#traceLevels;
    this.trace.setLevels(lo, hi);
    this.trace.setLayers(layers);
    this.trace.draw();
    this.#stale.overlay = true;
  }

  /**
   * The line spectra of a view: `own` of the channels, `layers` with stored ones below them, `entries` of the legend.
   * Lines have colours of the style sheet, and `ratio` pixels of a CSS pixel.
   */
  #spectrum(view, colours, zone, ratio) {
    const isAlone = this.channels.length === 1;
    const moments = this.moments(view);
    const seconds = this.#seconds(view);
    const own = this.channels.flatMap((channel, k) => {
      const { row, holds } = moments[k];
      const lines = { trace: row, second: seconds[k]?.row ?? null, reference: channel.reference };
      const shownOf = (given) => Object.fromEntries(Object.entries(given).map(([name, one]) => [name, this.#shaped(one, view)]));
      const rows = { ...shownOf(lines), holds: shownOf(holds) };
      const colour = (name) => (isAlone ? colours[name] : colours[`series${k}`]);
      const isFilled = isAlone && Boolean(rows.trace?.description.edges_hz);
      const styleOf = (name) => ({ ...lineStyle(name, colour(name), ratio), isFilled: isFilled && name === "now" });
      return layersOf(rows, view.holds.filter((name) => !hasNoBars(name, channel.description, view)), styleOf);
    });
    const stored = this.#subtracted === null ? this.#traces.shownOver(this.levelsOf) : [];
    const usual = legend(this.channels, atShownTime(view), { moments, seconds, zone });
    const hasDifference = own.length > 0 || moments.every(({ row }) => row === null);
    const entries = [...this.#differenceNote(hasDifference), ...usual.slice(0, -1), ...stored.map(storedEntry), ...usual.slice(-1)];
    return { own, layers: [...stored.map((one, k) => storedLayer(one, k, { view, colours, ratio })), ...own], entries };
  }

  /**
   * What the panel shows, for a figure of it.
   *
   * @param {object} view
   * @param {{zone: string, colours: Record<string, string>}} given colours of the style sheet
   * @returns {object} what `figureOf` takes
   */
  figure(view, { zone, colours }) {
    const spectrum = { ...this.#spectrum(view, colours, zone, 1), levels: this.#traceLevels };
    const strips = this.strips.map((strip, k) => ({ k, ...strip.figure(this.#session.events) })).filter(({ rows }) => rows !== undefined);
    return { panel: this, view, zone, colours, spectrum, strips, map: this.#mapOf(view, "light"), lines: this.#linesOf(view) };
  }

  #differenceNote(hasDifference) {
    if (this.#subtracted === null) return [];
    const why = hasDifference ? "" : ": it has other bins, or another choice of bins in a pixel";
    return [{ text: `${hasDifference ? "" : "no "}difference to ${this.#subtracted.name}${why}`, colour: null }];
  }

  /** Make the scale of differences long enough for most of what is drawn; it never gets shorter by itself. */
  #fitDifferences(layers) {
    if (this.#subtracted === null) return;
    const sizes = layers.flatMap(({ values, description }) => Array.from(values, (value) => Math.abs(levelOf(description, value)))).filter((size) => !Number.isNaN(size));
    const reach = sizes.sort((a, b) => a - b)[Math.floor(0.99 * sizes.length)] ?? 0;
    const wanted = DIFFERENCES_DB.find((size) => size >= reach) ?? DIFFERENCES_DB.at(-1);
    if (wanted <= this.#differenceDb) return;
    this.#differenceDb = wanted;
    this.#stale.scales = true;
  }

  /** Cursor readings of a channel, each of its own time; `tMs` null: that of the line spectrum. */
  readings(channel, view) {
    return view.cursors.map((hz, k) => {
      const tMs = view.times[k] ?? null;
      return { ...readCursor(hz, this.#momentAt(channel, view, tMs ?? shownMs(view))), tMs };
    });
  }

  /** Readings of the harmonics of cursor A that show, of the cursor's time. */
  harmonics(channel, view) {
    return harmonicReadings(harmonicsOf(view, this.axis), this.#momentAt(channel, view, view.times[0] ?? shownMs(view)));
  }

  #placeMarks({ times, selection, span }, zone) {
    const cursors = times.map((tMs) => tMs && { tMs, text: formatTime(tMs, zone, decimalsOf(span)).slice(11) });
    for (const strip of this.strips) {
      strip.placeMarks({ cursors, box: selection });
      strip.placeEvents(this.#session.events);
    }
  }

  /** What is at a place of the surface: how it lies and where in it that is [CSS px]; `strip` null: the line spectrum, which has no time. */
  #spotAt(at) {
    const { width, height } = this.grid;
    const spectrum = { strip: null, places: new Orientation("down", { width: width / this.#ratio, height: height / this.#ratio }), at };
    return this.#stripAt(at) ?? spectrum;
  }

  /** Place of what is at a place of the surface [CSS px] on the panel's axis. */
  toneAt(at) {
    const { places, at: within } = this.#spotAt(at);
    return (places.fromScreen(within).tone / places.breadth) * this.axis.width;
  }

  /** What a way from a place of the surface [CSS px] is on the panel's axis, and as a share of the time that is shown, to older rows. */
  wayAt(way, at) {
    const { strip, places } = this.#spotAt(at);
    const { tone, age } = wayIn(places.direction, way);
    return { tone: (tone / places.breadth) * this.axis.width, share: strip === null ? 0 : age / places.length };
  }

  /** Whether frequencies are above each other at a place of the surface [CSS px]. */
  isUprightAt(at) {
    return this.#spotAt(at).places.isUpright;
  }

  /** Share of the time that is shown from its newest row to a place of the surface [CSS px]: 0 above the waterfalls, 0.5 between two. */
  timeShare(at) {
    const { strip, places, at: within } = this.#spotAt(at);
    if (strip !== null) return places.fromScreen(within).age / places.length;
    const first = this.strips[0].box.getBoundingClientRect().top - this.surface.getBoundingClientRect().top;
    return at.y < first ? 0 : 0.5;
  }

  /** Time and frequency of a place of the surface [CSS px], within a waterfall's edges; null beside the waterfalls. */
  placeAt({ x, y }, strip = this.#stripAt({ x, y })?.strip ?? null) {
    if (strip === null) return null;
    const { width, height } = strip.places;
    const top = strip.box.getBoundingClientRect().top - this.surface.getBoundingClientRect().top;
    const { tone, age } = strip.places.fromScreen({ x: Math.max(0, Math.min(width, x)), y: Math.max(0, Math.min(height, y - top)) });
    return { strip, tMs: strip.timeOf(age), hz: strip.axis.toHertz(tone * this.#ratio) };
  }

  /** Time that a place of the surface stands for [CSS px]; null beside the waterfalls. */
  timeAt(at) {
    const found = this.#stripAt(at);
    return found === null ? null : found.strip.timeAt(found.at);
  }

  #drawOverlay(view) {
    if (!this.#stale.overlay) return;
    this.#stale.overlay = false;
    const unit = this.unitOf(0);
    const readings = this.readings(this.channels[0], view).map(({ hz, level, isExact }, k) => ({
      hz: view.cursors[k],
      text: `${formatHertz(hz)} ${readingText({ level, isExact }, unit)}`,
    }));
    const shown = { readings, band: view.band, harmonics: harmonicsOf(view, this.axis) };
    const places = new Orientation("down", { width: this.traceBox.clientWidth, height: 0 });
    this.overlay.place({ places, toTone: (hz) => this.axis.toPlace(hz) / this.#ratio }, shown);
    for (const strip of this.strips.filter((one) => one.places.isUpright)) strip.overlay.place({ places: strip.places, toTone: (hz) => strip.toneOf(hz) }, shown);
  }

  #drawBanner(now, { t1 }, zone) {
    const text = bannerText(this.channels, now, { t1, zone });
    this.banner.hidden = text === "";
    setText(this.banner, text);
  }

  /** Show what is under the pointer, also of rows that come while it rests; nothing if it has gone. */
  point(at, view, zone) {
    this.#pointer = at;
    this.#pointedAt = performance.now();
    const hz = at === null ? null : this.axis.toHertz(this.toneAt(at));
    for (const { overlay } of [this, ...this.strips]) overlay.point(hz);
    setText(this.readout, at === null ? "" : pointText({ ...this.#readAt(at, hz, view), zone }));
  }

  /** What is shown at a place of the surface [CSS px]. */
  #readAt(at, hz, view) {
    const px = Math.max(0, Math.min(this.axis.width - 1, Math.floor(this.toneAt(at))));
    const found = this.#stripAt(at);
    const pixel = found?.strip.pixelAt(found.at) ?? null;
    const { k, level, tMs } = pixel === null ? this.#lineNearest(px, at.y, view) : this.#waterfallAt(found.strip, pixel);
    const name = this.channels.length > 1 ? topicTitle(this.channels[k].info) : "";
    const isDifference = pixel === null && this.#subtracted !== null;
    return { name, hz, level, unit: isDifference ? "dB" : this.unitOf(k), tMs };
  }

  #waterfallAt(strip, { line, msPerPx, px }) {
    const level = levelOfPixel(strip.rows, { line, msPerPx, axis: strip.axis, px });
    return { k: this.strips.indexOf(strip), level, tMs: (line + 0.5) * msPerPx };
  }

  /** The line spectrum that is nearest to the pointer, of equally near ones the one on top. */
  #lineNearest(px, y, view) {
    const { lo, hi } = this.#traceLevels;
    const box = this.traceBox.getBoundingClientRect();
    const pointed = hi - ((y + this.surface.getBoundingClientRect().top - box.top) / box.height) * (hi - lo);
    const lines = this.moments(view).map(({ row: measured, tMs }, k) => {
      const row = this.#shaped(measured, view);
      const level = row === null ? NaN : levelOfValues(row.values, row.description, valuesOfPixel(this.axis, row.description, px));
      return { k, level, tMs, distance: Number.isNaN(level) ? Infinity : Math.abs(level - pointed) };
    });
    return lines.reduce((best, one) => (one.distance <= best.distance ? one : best));
  }

  /** Unit of a channel's levels. */
  unitOf(k) {
    return this.channels[k].description?.unit ?? "dB";
  }

  /** The waterfall at a place of the surface, how it lies now, and the place within it [CSS px]; null between them. */
  #stripAt({ x, y }) {
    const surfaceTop = this.surface.getBoundingClientRect().top;
    for (const strip of this.strips) {
      const { top, height } = strip.box.getBoundingClientRect();
      const at = { x, y: y + surfaceTop - top };
      const { direction, width } = strip.places;
      // Since it was drawn its height may have changed.
      if (at.y >= 0 && at.y < height) return { strip, places: new Orientation(direction, { width, height }), at };
    }
    return null;
  }

  /** Texts for who cannot see the plots. */
  describe(text) {
    this.traceCanvas.setAttribute("aria-label", `Line spectrum. ${text}`);
    for (const strip of this.strips) strip.setLabel(text);
  }

  destroy() {
    this.#observer.disconnect();
    for (const strip of this.strips) strip.destroy();
    this.root.remove();
  }
}
