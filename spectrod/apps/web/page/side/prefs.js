/** What this browser remembers of its user, which a link must not carry: colours, clock, keys, linked levels, levels over time, open panes, whether events are listed, bands with names, size of figures. */

import { BOUNDS } from "../panel/view.js";
import { namedBands } from "../rows/namedbands.js";

const KEY = "spectrod";

export const THEMES = Object.freeze(["auto", "light", "dark"]);
/** Zones of times: that of the browser, UTC, and that of the source where one is known. */
export const ZONES = Object.freeze(["local", "UTC", "source"]);

/** What buttons open beside the plots: nothing at first. */
export const PANES = Object.freeze(["state", "time", "measure", "options"]);

/** Sizes of a figure: the least and the greatest. */
export const FIGURE_BOUNDS = Object.freeze({ widthMm: [60, 420], plotsMm: [40, 420], dpi: [72, 600] });
const FIGURE = Object.freeze({ widthMm: 160, plotsMm: 100, dpi: 300 });

const LINES_MAX = 8;

export const DEFAULTS = Object.freeze({ theme: "auto", zone: "local", keysEverywhere: true, isLinked: true, lines: Object.freeze([]), panes: Object.freeze([]), isEventsOpen: false, bands: Object.freeze([]), figure: FIGURE });

/** A size of figures of anything: whole numbers within their bounds. */
function figureSize(given) {
  const isWithin = (value, [least, most]) => Number.isInteger(value) && value >= least && value <= most;
  return Object.freeze(Object.fromEntries(Object.entries(FIGURE).map(([name, usual]) => [name, isWithin(given?.[name], FIGURE_BOUNDS[name]) ? given[name] : usual])));
}

/** Make preferences of anything. */
export function makePrefs(given) {
  const { theme, zone, keysEverywhere, isLinked, lines, panes, isEventsOpen, bands, figure } = given !== null && typeof given === "object" ? given : {};
  return Object.freeze({
    theme: THEMES.includes(theme) ? theme : DEFAULTS.theme,
    zone: ZONES.includes(zone) ? zone : DEFAULTS.zone,
    keysEverywhere: keysEverywhere !== false,
    isLinked: isLinked !== false,
    lines: Object.freeze(Array.isArray(lines) ? lines.filter((one) => typeof one === "string").slice(0, LINES_MAX) : []),
    panes: Object.freeze(PANES.filter((name) => Array.isArray(panes) && panes.includes(name))),
    isEventsOpen: isEventsOpen === true,
    bands: namedBands(bands, BOUNDS.hertz),
    figure: figureSize(figure),
  });
}

/** Read the preferences; a browser that keeps nothing, or nonsense, has the defaults. */
export function readPrefs(storage) {
  try {
    return makePrefs(JSON.parse(storage().getItem(KEY)));
  } catch {
    return makePrefs(null);
  }
}

/** Write the preferences, where the browser lets the page. */
export function writePrefs(storage, prefs) {
  try {
    storage().setItem(KEY, JSON.stringify(prefs));
  } catch {
    // A private window may forbid it: then they last as long as the page.
  }
}

let local = null;

/**
 * Name of the time zone that is shown; the system's is read once, as each frame asks for it.
 *
 * @param {{zone: string}} prefs
 * @param {string} source name of the source's zone; empty where none is known: then that of the browser
 */
export function zoneOf({ zone }, source = "") {
  local ??= Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  if (zone === "source" && source !== "") return source;
  return zone === "UTC" ? "UTC" : local;
}
