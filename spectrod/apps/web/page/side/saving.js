/** The buttons that save: names, titles and times around `export.js`. */

import { PIXELS_MAX } from "../link/demand.js";
import { fileName, save, traceCsv } from "./export.js";
import { loadFigures, paperColours } from "./figureform.js";
import { exportAddress } from "../rows/history.js";
import { formatTime } from "../plot/time.js";
import { topicTitle } from "../link/topics.js";

/**
 * Save what the plots show, all kinds of one moment: `png` and `svg` figures, `csv` line spectra.
 *
 * @param {readonly string[]} kinds
 * @param {import("../panel/panels.js").Panels} panels
 * @param {import("./figureform.js").FigureForm} form
 * @param {() => {view: object, zone: string}} shown
 * @throws {Error} if there is nothing to save
 */
export async function saveShown(kinds, panels, form, shown) {
  const pictures = kinds.filter((kind) => kind !== "csv");
  const hasCsv = kinds.includes("csv");
  const made = pictures.length > 0 ? await loadFigures() : null;
  const { view, zone } = shown();
  const moments = panels.moments(view, form.hasActiveOnly);
  if (hasCsv && moments.every(({ moment }) => moment.row === null)) throw new Error("Spectrum (CSV): there is no data at this time");
  if (made !== null && moments.length === 0) throw new Error("Picture: no channel is shown");
  const fileOf = made?.figureFiles(panels.figures(form.viewOf(view), paperColours(), form.hasActiveOnly), form.size);
  if (hasCsv) saveCsv(moments, zone);
  const title = titleOf(moments, view, zone);
  for (const kind of pictures) save(await fileOf(kind), fileName(title, kind));
}

/** Channels, and the time at the top of the waterfalls. */
function titleOf(moments, view, zone) {
  const times = moments.map(({ moment }) => moment.tMs).filter((tMs) => tMs !== null);
  const topMs = view.t1 ?? (times.length > 0 ? Math.max(...times) : null);
  return [...moments.map(({ channel }) => topicTitle(channel.info)), topMs === null ? "" : formatTime(topMs, zone, 1)].join("   ");
}

/**
 * Save the line spectrum of each channel that the view shows as CSV.
 *
 * @param {Array<{channel: import("../rows/channel.js").Channel, moment: import("../rows/moment.js").Moment}>} moments
 */
function saveCsv(moments, zone) {
  for (const { channel, moment } of moments) {
    const { row } = moment;
    if (row === null) continue;
    const title = topicTitle(channel.info);
    const time = formatTime(row.tMs, zone, 3);
    save(new Blob([traceCsv({ title, time, row })], { type: "text/csv" }), fileName(`${title} ${time}`, "csv"));
  }
}

/**
 * Save a selection of some channels: `csv`, its levels; `png`, a picture in the colours that are shown.
 *
 * @param {string} base address of the page
 * @param {{view: object, channels: Array<import("../rows/channel.js").Channel>, levels: {lo: number, hi: number},
 *   axis: import("../plot/axis.js").Axis}} shown
 */
export async function saveSelection(format, base, { view, channels, levels, axis }) {
  const { t0, t1, f0, f1 } = view.selection;
  const px = Math.min(PIXELS_MAX, axis.width);
  for (const { info } of channels) {
    const address = exportAddress(base, info, { t0, t1, f0, f1, axis: axis.kind, px, statistic: view.statistic }, format);
    const { lo, hi } = levels;
    for (const [name, value] of Object.entries({ lo, hi, colormap: view.map })) address.searchParams.set(name, value);
    await saveAnswer(address, `${topicTitle(info)} ${new Date(t0).toISOString()} selection`, format);
  }
}

async function saveAnswer(address, title, format) {
  const response = await fetch(address);
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({ error: `status ${response.status}` }));
    throw new Error(error);
  }
  save(await response.blob(), fileName(title, format));
}

/**
 * Save the time that the waterfalls show, of each channel: `csv`, levels of what is on the screen; `spd`, the
 * recorded rows.
 *
 * @param {string} base address of the page
 * @param {Array<import("../rows/channel.js").Channel>} channels
 * @param {import("../panel/actions.js").Scene} scene of a panel
 */
export async function savePast(format, base, channels, { view, axis, newestMs }) {
  const t1 = Math.ceil(view.t1 ?? newestMs ?? 0);
  const { f0, f1, kind, width } = axis;
  const shown = { t0: t1 - 1000 * view.span, t1, f0, f1, axis: kind, px: Math.min(PIXELS_MAX, width), statistic: view.statistic };
  for (const { info } of channels) {
    const time = new Date(shown.t0).toISOString();
    await saveAnswer(exportAddress(base, info, shown, format), `${topicTitle(info)} ${time}`, format);
  }
}
