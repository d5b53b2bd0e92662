/** The meter of one level: a bar on a scale with zones, the peak that is held, and the last minutes as a small plot. */

import { element, setAttribute, setText } from "./dom.js";
import { meterScale, meterShare, meterTicks, PeakHold, Trend, trendScale, trendText, zoneOf, zonesOf } from "./meterscale.js";
import { formatLevel } from "../plot/time.js";

const ZONES = Object.freeze(["good", "notice", "bad"]);
const COLOURS = Object.freeze({ good: "--good", notice: "--warn", bad: "--bad", none: "--accent" });

const percent = (share) => `${(100 * share).toFixed(2)}%`;

/** CSS of the zones of a scale, from left to right. */
function zonesCss(scale, zones) {
  if (zones.length === 0) return `var(${COLOURS.none})`;
  const ends = [0, ...zones.map((level) => meterShare(scale, level)), 1];
  const parts = ZONES.map((zone, k) => `var(${COLOURS[zone]}) ${percent(ends[k])} ${percent(ends[k + 1])}`);
  return `linear-gradient(to right, ${parts.join(", ")})`;
}

/** A meter. */
export class LevelMeter {
  #hold = new PeakHold();
  #trend = new Trend();
  #name;
  #unit;
  #zones;
  #level = null;
  #scaleText = "";
  #zonesBehind = element("span", { class: "meter-zones" });
  #fill = element("span", { class: "meter-fill" });
  #lines = element("span", { class: "meter-lines" });
  #peak = element("span", { class: "meter-peak", hidden: true });
  #bar = element("div", { class: "meter", role: "meter" }, this.#zonesBehind, this.#fill, this.#lines, this.#peak);
  #ticks = element("div", { class: "meter-ticks", "aria-hidden": "true" });
  #plot = element("canvas", { class: "meter-trend", role: "img", "aria-label": "no trend yet" });
  #drawn = "";

  constructor(name, unit) {
    this.#name = name;
    this.#unit = unit;
    this.#zones = zonesOf(name, unit);
    setAttribute(this.#bar, "aria-label", name);
    this.elements = [this.#plot, this.#bar, this.#ticks];
  }

  /** Take a level, or null, of an interval [s] that began at a time [ms UTC]; `now` [ms] is the page's clock. */
  take(level, { tMs, interval_s, now }) {
    this.#level = level;
    this.#hold.take(level, interval_s, now);
    this.#trend.take(level, tMs, interval_s);
  }

  get scale() {
    return meterScale(this.#unit, this.#trend.seen);
  }

  /** Bring the elements up to date; `hasTicks`: whether numbers stand below the bar. */
  show(now, hasTicks, colours) {
    const { scale } = this;
    const peak = this.#hold.at(now);
    const level = this.#level;
    const isHeld = peak !== null && level !== null && peak > level;
    this.#fill.style.clipPath = `inset(0 ${percent(1 - meterShare(scale, level))} 0 0)`;
    this.#peak.hidden = !isHeld || peak < scale.lo;
    this.#peak.style.left = percent(meterShare(scale, peak));
    this.#peak.dataset.zone = zoneOf(peak, this.#zones);
    setAttribute(this.#bar, "aria-valuemin", String(scale.lo));
    setAttribute(this.#bar, "aria-valuemax", String(scale.hi));
    setAttribute(this.#bar, "aria-valuenow", String(Math.max(scale.lo, Math.min(scale.hi, level ?? scale.lo)).toFixed(1)));
    setAttribute(this.#bar, "aria-valuetext", level === null ? "no value" : formatLevel(level, this.#unit));
    this.#showScale(scale, hasTicks);
    this.#drawTrend(colours);
  }

  /** Zones and ticks, which change with the scale and the width alone. */
  #showScale(scale, hasTicks) {
    const width = this.#bar.clientWidth;
    const text = [scale.lo, scale.hi, width, hasTicks].join();
    if (text === this.#scaleText || width === 0) return;
    this.#scaleText = text;
    const zones = zonesCss(scale, this.#zones);
    this.#fill.style.background = zones;
    this.#zonesBehind.style.background = zones;
    const levels = meterTicks(scale, width);
    const lines = levels.map((level) => `linear-gradient(var(--edge), var(--edge)) ${percent(meterShare(scale, level))} 0 / 1px 100% no-repeat`);
    this.#lines.style.background = lines.join(", ");
    this.#ticks.hidden = !hasTicks;
    this.#ticks.replaceChildren(...(hasTicks ? levels.map((level) => tick(level, scale)) : []));
  }

  #drawTrend(colours) {
    const plot = this.#plot;
    const ratio = devicePixelRatio;
    const [width, height] = [plot.clientWidth, plot.clientHeight].map((px) => Math.round(px * ratio));
    const { parts } = this.#trend;
    const key = [width, height, colours.now, ...parts.slice(-1).flatMap(Object.values), parts.length].join();
    if (key === this.#drawn || width === 0) return;
    this.#drawn = key;
    const text = trendText(this.#trend, this.#unit);
    setAttribute(plot, "aria-label", `${this.#name}, ${text || "no values yet"}`);
    plot.title = text;
    [plot.width, plot.height] = [width, height];
    const context = plot.getContext("2d");
    context.fillStyle = colours.now;
    const scale = trendScale(this.#trend.seen);
    const y = (level) => (1 - meterShare(scale, level)) * height;
    for (const { from, to, min, max } of parts) {
      const x = Math.floor(from * width);
      const thick = Math.max(ratio, y(min) - y(max));
      context.fillRect(x, Math.min(height - thick, y(max)), Math.ceil(to * width) - x, thick);
    }
  }
}

/** A number below the bar, whole at both of its ends. */
function tick(level, scale) {
  const share = meterShare(scale, level);
  const label = element("span");
  setText(label, String(level));
  label.style.left = percent(share);
  label.style.transform = `translateX(-${percent(share)})`;
  return label;
}
