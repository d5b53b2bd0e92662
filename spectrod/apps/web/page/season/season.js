/** All that an archive has, at a glance: the trend of levels, and a small picture of each day by months. */

import { limitsOf } from "../rows/range.js";
import { storedSpan } from "../rows/stored.js";
import { makeAxis } from "../plot/axis.js";
import { divergingColours } from "../plot/diverging.js";
import { MARKS, palettes } from "../plot/palette.js";
import { formatHertz, formatLevel, formatTime } from "../plot/time.js";
import { topicTitle } from "../link/topics.js";
import { element, setAttribute, setText } from "../side/dom.js";
import { showLess } from "../side/lesschoice.js";
import { monthsOf } from "./calendar.js";
import { scaleOf } from "./dayscale.js";
import { DayKeys } from "./daykeys.js";
import { columnOf, DayTiles, levelColumnOf } from "./daytiles.js";
import { HEIGHT, paintDay } from "./daypicture.js";
import { drawTrend, pointsOf, rangeOfLines } from "./trendline.js";

const MONTHS_MAX = 60;
const WEEKDAYS = Object.freeze(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]);
const SHADES = 256;

const monthTitle = (name) =>
  new Intl.DateTimeFormat("en", { month: "long", year: "numeric", timeZone: "UTC" }).format(new Date(`${name}-01T00:00:00Z`));

/** Colour of each level of a scale, as a pixel: red is its lowest byte. */
function colourer({ lo, hi }, colours) {
  const shades = Uint32Array.from(colours, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
  const scale = SHADES / (hi - lo);
  return (level) => shades[Math.max(0, Math.min(SHADES - 1, Math.floor((level - lo) * scale)))];
}

function coloursOf(map) {
  const table = palettes[map.replace(/_r$/, "")] ?? palettes.viridis;
  const colours = Array.from({ length: SHADES }, (_, k) => [...table.subarray(3 * k, 3 * k + 3)]);
  return map.endsWith("_r") ? colours.reverse() : colours;
}

/** The view of days. Its elements are made once a span and a choice of channels; `show` brings them up to date. */
export class Season {
  #root;
  #given;
  #parts;
  #tiles;
  #made = "";
  #drawn = "";
  #months = [];
  #seen = new Set();
  #both = {};
  #observer;

  /**
   * @param {HTMLElement} root
   * @param {{session: import("../link/session.js").Session, change: (part: object) => void, opened: () => void, fetch: Function, base: string,
   *   notice: (text: string) => void}} given
   */
  constructor(root, given) {
    this.#root = root;
    this.#given = given;
    this.#tiles = new DayTiles(given);
    this.#tiles.onnotice = (text) => given.notice(`the past: ${text}`);
    this.#parts = makeParts();
    root.append(...this.#parts.top);
    this.#parts.less.addEventListener("change", () => given.change({ less: this.#parts.less.value }));
    this.#parts.trend.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    this.#parts.trend.addEventListener("pointerleave", () => setText(this.#parts.readout, ""));
    this.#parts.trend.addEventListener("click", (event) => this.#openAt(event.offsetX));
    this.#observer = new IntersectionObserver((entries) => this.#see(entries), { rootMargin: "300px" });
  }

  #see(entries) {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this.#seen.add(target.dataset.month);
      else this.#seen.delete(target.dataset.month);
    }
  }

  /**
   * Bring all up to date.
   *
   * @param {{view: object, zone: string, colours: object, theme: string}} scene
   */
  show(scene) {
    const { session } = this.#given;
    this.#root.hidden = !scene.view.days;
    const described = session.channels.filter(({ info, description }) => info.stored && description !== null);
    const less = this.#chooseLess(session, described, scene.view);
    // A channel less itself says nothing, where there is another.
    const others = described.filter(({ info }) => info !== less);
    const channels = others.length > 0 ? others : described;
    const span = storedSpan(channels.map(({ info }) => info));
    if (!scene.view.days || span === null) {
      this.#tiles.want([]);
      return;
    }
    const names = [...new Set([...channels.map(({ info }) => info), ...(less === null ? [] : [less])])].map((info) => session.nameOf(info));
    this.#both = less === null ? {} : { topics: names };
    this.#make(channels, span, scene.zone);
    const about = { ...scene, channels, span, less, axis: axisOfDays(channels, scene.view) };
    const asked = this.#asked(about);
    this.#tiles.want([...asked.trend, ...asked.days.filter(({ month }) => this.#seen.has(month))]);
    const key = JSON.stringify([this.#made, this.#tiles.version, scene.theme, scene.view, this.#root.clientWidth]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.#draw(about, asked);
  }

  /** Offer the topics whose levels can be subtracted; return the one that is chosen, or null. */
  #chooseLess(session, channels, view) {
    const offered = session.topics.filter(({ stored }) => stored);
    const { less } = this.#parts;
    const found = showLess(less, offered, { nameOf: (info) => session.nameOf(info), less: view.less });
    if (channels.length === 0) setAttribute(less.parentElement, "hidden", true);
    return found;
  }

  /** Make the months, if the span, the zone or the channels are others. */
  #make(channels, span, zone) {
    const topics = channels.map(({ info }) => `${info.endpoint} ${info.topic}`);
    const made = JSON.stringify([topics, span, zone]);
    if (made === this.#made) return;
    this.#made = made;
    this.#observer.disconnect();
    this.#seen.clear();
    for (const { root } of this.#months) root.remove();
    const { months, left } = monthsOf(span, zone, MONTHS_MAX);
    this.#months = months.map((month) => this.#makeMonth(month, channels));
    channels.forEach((_, k) => new DayKeys(this.#months.flatMap(({ grids }) => grids[k])));
    this.#root.append(...this.#months.map(({ root }) => root));
    for (const { root } of this.#months) this.#observer.observe(root);
    setText(this.#parts.left, left > 0 ? `${left} days before ${months[0].name} are not shown here.` : "");
  }

  #makeMonth({ name, days }, channels) {
    const root = element("section", { class: "month", "data-month": name }, element("h2", {}, monthTitle(name)));
    const grids = channels.map(({ info }) => {
      const buttons = days.map((day) => this.#makeDay(day));
      const grid = element("div", { class: "days" }, ...WEEKDAYS.map((weekday) => element("span", { class: "weekday", "aria-hidden": "true" }, weekday)));
      grid.append(...buttons.map(({ button }) => button));
      buttons[0].button.style.gridColumnStart = String(days[0].weekday + 1);
      if (channels.length > 1) root.append(element("h3", {}, topicTitle(info)));
      root.append(grid);
      return buttons;
    });
    return { name, days, root, grids };
  }

  #makeDay(day) {
    const canvas = element("canvas", { "aria-hidden": "true" });
    const changed = day.hours === 24 ? "" : `${day.hours} h`;
    const label = element("span", { class: "date" }, String(Number(day.date.slice(8))), changed === "" ? "" : element("small", {}, ` ${changed}`));
    const button = element("button", { type: "button", class: "day" }, canvas, label);
    button.addEventListener("click", () => this.#open(day));
    return { day, canvas, button };
  }

  /** Open a day in the plots; beside a difference the channel that is subtracted. */
  #open({ begin, end }) {
    this.#given.change({ days: false, t1: end, span: (end - begin) / 1000, times: [], ...this.#both });
    this.#given.opened();
  }

  /** What to ask the server for: the trend of each channel, and the days of each month. */
  #asked({ channels, span, less, axis, view }) {
    const whole = { ...span, columnMs: levelColumnOf(span.t1 - span.t0) };
    const trend = channels.map(({ info: topic }) => ({ topic, less, layer: "level", times: whole, axis: bandOf(topic, view) }));
    const columnMs = columnOf((span.t1 - span.t0) / 86_400_000);
    const days = this.#months.flatMap((month) =>
      channels.flatMap(({ info: topic }, k) =>
        piecesOf(month.days, topic, less).map(({ begin, end }) => {
          const times = { t0: begin, t1: end, columnMs, until: Math.min(end, topic.stored[1]) };
          return { month: month.name, channel: k, topic, less, layer: view.statistic, times, axis };
        }),
      ),
    );
    return { trend, days };
  }

  #draw(about, asked) {
    const { view, less, theme, axis } = about;
    const tiles = asked.days.map((one) => ({ ...one, tile: this.#tiles.get(one) })).filter(({ tile }) => tile !== null);
    const isByHand = view.lo !== null && less === null;
    const samplesOf = (unit) => tiles.filter(({ tile }) => tile.unit === unit).map(({ tile }) => tile.sample);
    const units = [...new Set(tiles.map(({ tile }) => tile.unit).filter(Boolean))];
    const scales = units
      .map((unit) => ({ unit, scale: isByHand ? { lo: view.lo, hi: view.hi } : scaleOf(samplesOf(unit), less !== null) }))
      .filter(({ scale }) => scale !== null);
    const colours = less === null ? coloursOf(view.map) : divergingColours(theme);
    const why = [...new Set(tiles.map(({ tile }) => tile.why).filter(Boolean))];
    setText(this.#parts.why, why.join("; "));
    this.#drawScales(scales, colours, about);
    const colourersOf = new Map(scales.map(({ unit, scale }) => [unit, colourer(scale, colours)]));
    const heightAxis = makeAxis({ kind: axis.kind, f0: axis.f0, f1: axis.f1, width: HEIGHT });
    for (const month of this.#months) {
      month.grids.forEach((buttons, channel) => {
        const own = tiles.filter((one) => one.month === month.name && one.channel === channel);
        const colourOf = colourersOf.get(own.find(({ tile }) => tile.unit !== "")?.tile.unit) ?? null;
        for (const one of buttons) paint(one, own, heightAxis, colourOf);
      });
    }
    this.#drawTrend(about, asked.trend);
  }

  /** Show the scale; of channels of several units each unit has one. */
  #drawScales(scales, colours, { channels, less, view, span }) {
    const columnMs = columnOf((span.t1 - span.t0) / 86_400_000);
    const { bar, lo, hi, caption } = this.#parts;
    setAttribute(bar.parentElement, "hidden", scales.length === 0);
    if (scales.length > 0) {
      const [{ scale, unit }, ...others] = scales;
      bar.style.background = `linear-gradient(to right, ${colours.map((rgb) => `rgb(${rgb.join(" ")})`).join(", ")})`;
      setText(lo, formatLevel(scale.lo, "", 0).trim());
      const more = others.map((one) => `; ${formatLevel(one.scale.lo, "", 0).trim()} to ${formatLevel(one.scale.hi, one.unit, 0)}`);
      setText(hi, `${formatLevel(scale.hi, unit, 0)}${more.join("")}`);
    }
    const what = `${view.statistic === "max" ? "greatest level" : "mean power"} of each ${durationOf(columnMs)}, from 0 to 24 h`;
    const of = channels.length > 1 ? `${channels.length} channels${scales.length > 1 ? "" : " on one scale"}` : topicTitle(channels[0].info);
    setText(caption, less === null ? `${of}; ${what}` : `${of} less ${topicTitle(less)}; ${what}`);
  }

  #drawTrend(about, asked) {
    const { channels, zone, colours, theme, less, span, view } = about;
    const { trend, ruler, trendCaption } = this.#parts;
    const ratio = devicePixelRatio;
    for (const canvas of [trend, ruler]) {
      canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
      canvas.height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    }
    const found = asked.map((one, k) => ({ tile: this.#tiles.get(one), colour: channels.length > 1 ? colours[`series${k}`] : colours.now, name: topicTitle(channels[k].info) }));
    const lines = found.filter(({ tile }) => tile?.rows.length > 0).map(({ tile, ...one }) => ({ ...one, tile, points: pointsOf(tile) }));
    const range = rangeOfLines(lines) ?? { lo: 0, hi: 1 };
    const cellMs = Math.max(1, ...lines.map(({ tile }) => tile.cellMs));
    this.#trend = { lines, span, zone };
    drawTrend(trend, ruler, { lines, span, cellMs, zone, range, colours, ratio, marks: MARKS[theme] ?? MARKS.light });
    const unit = lines[0]?.tile.unit ?? "";
    const band = view.f0 === null ? "all power" : `the power from ${formatHertz(view.f0)} to ${formatHertz(view.f1)}`;
    const what = `${less === null ? "Level" : "Difference of the levels"} of ${band}`;
    setText(trendCaption, lines.length === 0 ? `${what}: no data yet` : `${what}, mean of each ${durationOf(cellMs)}, ${unit}`);
    trend.setAttribute("aria-label", lines.map(({ name, points }) => describe(name, points, unit, zone)).join(" ") || "no data yet");
    const legend = lines.length > 1 ? lines : [];
    this.#parts.legend.replaceChildren(...legend.map(({ name, colour }) => {
      const item = element("span", { "data-line": "now" }, name);
      item.style.setProperty("--line", colour);
      return item;
    }));
  }

  #trend = { lines: [], span: { t0: 0, t1: 1 }, zone: "UTC" };

  #timeAt(x) {
    const { t0, t1 } = this.#trend.span;
    return t0 + (x / this.#parts.trend.clientWidth) * (t1 - t0);
  }

  #point(x) {
    const { lines, zone } = this.#trend;
    const tMs = this.#timeAt(x);
    const texts = lines.map(({ name, points, tile: { unit, cellMs } }) => {
      const point = points.find((one) => Math.abs(one.tMs - tMs) <= cellMs / 2);
      return `${lines.length > 1 ? `${name} ` : ""}${point === undefined ? "no data" : formatLevel(point.level, unit)}`;
    });
    setText(this.#parts.readout, [formatTime(tMs, zone), ...texts].join("  "));
  }

  #openAt(x) {
    const tMs = this.#timeAt(x);
    const day = this.#months.flatMap(({ days }) => days).find(({ begin, end }) => tMs >= begin && tMs < end);
    if (day !== undefined) this.#open(day);
  }
}

/** Axis of all days: the view's, within what the channels have. */
function axisOfDays(channels, view) {
  const limits = limitsOf(channels.map(({ description }) => description), view.axis);
  const f0 = Math.max(view.f0 ?? limits.f0, limits.f0);
  const f1 = Math.min(view.f1 ?? limits.f1, limits.f1);
  return f0 < f1 ? { kind: limits.kind, f0, f1 } : { kind: limits.kind, f0: limits.f0, f1: limits.f1 };
}

/** Frequencies of the level: the view's, or all. */
function bandOf({ fs }, { f0, f1 }) {
  return { kind: "linear", f0: f0 ?? -fs, f1: f1 ?? fs };
}

/** Pieces to ask for: a month of a pyramid, else each day, since a request reads so many rows at most. */
function piecesOf(days, topic, less) {
  const isPooled = topic.has_pyramid && (less?.has_pyramid ?? true);
  return isPooled ? [{ begin: days[0].begin, end: days.at(-1).end }] : days;
}

function paint({ day, canvas, button }, tiles, axis, colourOf) {
  const own = tiles.filter(({ times }) => times.t0 < day.end && times.t1 > day.begin);
  const rows = own.flatMap(({ tile }) => tile.rows.filter(({ tMs }) => tMs > day.begin && tMs < day.end));
  const columns = Math.max(1, Math.round((day.end - day.begin) / (own[0]?.tile.cellMs || day.end - day.begin)));
  canvas.width = columns;
  canvas.height = HEIGHT;
  const image = new ImageData(columns, HEIGHT);
  const isDrawn = colourOf !== null && rows.length > 0;
  const used = isDrawn ? paintDay(new Uint32Array(image.data.buffer), columns, rows, day, axis, colourOf) : 0;
  if (isDrawn) canvas.getContext("2d").putImageData(image, 0, 0);
  const isHere = own.length > 0;
  setAttribute(button, "data-state", isHere ? (used > 0 ? "data" : "empty") : "waiting");
  const text = isHere ? (used > 0 ? `data in ${Math.round((100 * used) / columns)} % of the day` : "no data") : "not loaded yet";
  setAttribute(button, "aria-label", `${day.date}${day.hours === 24 ? "" : ` ${day.hours} h`}: ${text}`);
  setAttribute(button, "title", `${day.date}: ${text}`);
}

function durationOf(ms) {
  const hours = ms / 3_600_000;
  if (hours < 1) return `${Math.round(ms / 60_000)} min`;
  if (hours % 24 > 0) return hours === 1 ? "hour" : `${hours} h`;
  return hours === 24 ? "day" : `${hours / 24} days`;
}

function describe(name, points, unit, zone) {
  const [least, most] = points.reduce(([a, b], one) => [one.level < a.level ? one : a, one.level > b.level ? one : b], [points[0], points[0]]);
  return `${name}: from ${formatLevel(least.level, unit)} on ${formatTime(least.tMs, zone)} to ${formatLevel(most.level, unit)} on ${formatTime(most.tMs, zone)}.`;
}

function makeParts() {
  const less = element("select");
  const bar = element("span", { class: "season-bar", role: "img", "aria-label": "colours from the lowest to the highest level" });
  const [lo, hi] = [element("span"), element("span")];
  const caption = element("p", { class: "season-caption" });
  const trend = element("canvas", { role: "img", class: "trend" });
  const ruler = element("canvas", { class: "trend-ruler", "aria-hidden": "true" });
  const trendCaption = element("p", { class: "season-caption" });
  const readout = element("p", { class: "readout" });
  const legend = element("p", { class: "legend" });
  const why = element("p", { class: "season-why", role: "status" });
  const left = element("p", { class: "empty" });
  const head = element("div", { class: "season-head" }, element("label", {}, "Show ", less), element("span", { class: "season-scale" }, lo, bar, hi), caption);
  const plot = element("div", { class: "trend-box" }, ruler, trend);
  const line = element("div", { class: "season-head" }, trendCaption, legend, readout);
  return { top: [head, why, line, plot, left], less, bar, lo, hi, caption, trend, ruler, trendCaption, readout, legend, why, left };
}
