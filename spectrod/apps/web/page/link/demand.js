/** Which streams the page asks its server for, from what it shows. */

const ROLES = Object.freeze(["waterfall", "trace", "max", "min", "mean"]);
const TRACE_ROWS_S = 20;
const HIDDEN_ROWS_S = 1;
/** Pixels of an axis that a server of this version takes. */
export const PIXELS_MAX = 4096;
/** A phone draws no more than this, however many pixels it has. */
const PIXELS_MAX_NARROW = 1200;
const NARROW_CSS_PX = 600;
const PEAKS = 10;

/** Number of a stream: eight for each topic's place, so that no two topics share one. */
export const streamId = (place, role) => place * 8 + ROLES.indexOf(role);

/** Place and role of a stream's number. */
export const streamRole = (id) => ({ place: Math.floor(id / 8), role: ROLES[id % 8] });

/** Values to ask for: one for each device pixel, within bounds. */
export function pixelsWanted(widthCss, ratio, valuesMax) {
  const most = widthCss < NARROW_CSS_PX ? PIXELS_MAX_NARROW : PIXELS_MAX;
  return Math.max(1, Math.min(most, valuesMax, Math.round(widthCss * ratio)));
}

/** Rows per second for one row a pixel of the waterfall's time axis. */
export function rowsWanted(spanSeconds, lengthPx, rowsMax) {
  return Math.max(HIDDEN_ROWS_S, Math.min(rowsMax, Math.ceil(lengthPx / spanSeconds)));
}

function measureOf(view) {
  const measure = {};
  if (view.cursors.length > 0) measure.cursors = [...view.cursors];
  if (view.band !== null) measure.bands = [[...view.band]];
  if (view.peaks) measure.peaks = PEAKS;
  return measure;
}

/** How a hold decays, or its time constant; defaults are left out. */
function ballisticsOf(role, { decay, holdTime, timeConstant }) {
  if (role === "mean") return timeConstant > 0 ? { time_constant_s: timeConstant } : {};
  return decay > 0 ? { decay_db_s: decay, hold_s: holdTime } : {};
}

function streamOf(shown, role, { view, limits, isVisible }) {
  const isWaterfall = role === "waterfall";
  const isHold = !isWaterfall && role !== "trace";
  const { f0, f1, width } = (!isWaterfall && shown.line) || { ...shown, width: shown.widthCss };
  const rows = isWaterfall ? rowsWanted(view.span, shown.lengthPx, limits.rows_s) : TRACE_ROWS_S;
  return {
    id: streamId(shown.place, role),
    topic_id: shown.topicId,
    f0,
    f1,
    px: pixelsWanted(isWaterfall ? shown.breadthCss : shown.widthCss, (shown.ratio * width) / shown.widthCss, limits.values),
    axis: shown.axis,
    of: isHold ? role : "rows",
    stat: view.statistic,
    rows_s: isVisible ? Math.min(rows, limits.rows_s) : HIDDEN_ROWS_S,
    bits: isWaterfall && !shown.isFine ? 8 : 16,
    ...(role === "trace" ? { measure: measureOf(view) } : {}),
    ...(isHold ? ballisticsOf(role, view) : {}),
  };
}

/**
 * List the streams for what is shown, waterfalls first and holds last, as far as the limit goes.
 *
 * @param {Array<{place: number, topicId: number, f0: number, f1: number, axis: string, widthCss: number,
 *   breadthCss: number, lengthPx: number, ratio: number, isFine: boolean, line?: import("../plot/axis.js").Axis}>} shown topics on the screen; `widthCss` of the
 *   line spectrum, `line`: what that needs, if it is more than the view, `breadthCss` of the waterfall's frequency axis, `lengthPx` of its time axis, `isFine`: whether its rows need 16 bits
 * @param {{view: object, limits: {streams: number, values: number, rows_s: number}, isVisible: boolean}} given
 * @returns {{streams: object[], left: Array<{place: number, role: string}>}} `left`: beyond the limit
 */
export function streamsWanted(shown, given) {
  const roles = given.isVisible ? ["waterfall", "trace", ...given.view.holds] : ["waterfall"];
  const all = roles.flatMap((role) => shown.map((one) => ({ one, role })));
  const taken = all.slice(0, given.limits.streams);
  const left = all.slice(given.limits.streams).map(({ one, role }) => ({ place: one.place, role }));
  return { streams: taken.map(({ one, role }) => streamOf(one, role, given)), left };
}
