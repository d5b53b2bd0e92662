/** The buttons that save: names, titles and times around `export.js`. */

import { themeColours } from "./dom.js";
import { fileName, picture, save, traceCsv } from "./export.js";
import { exportAddress } from "./history.js";
import { formatTime } from "./time.js";
import { topicTitle } from "./topics.js";

/** Save what the plots show as PNG. */
export async function savePicture(panels, session, zone) {
  const { channels } = session;
  const times = channels.map((channel) => channel.newest?.tMs).filter(Number.isFinite);
  const time = times.length > 0 ? formatTime(Math.max(...times), zone, 1) : "";
  const title = [...channels.map(({ info }) => topicTitle(info)), time].join("   ");
  const { plot, text } = themeColours();
  const blob = await picture(panels.root, { background: plot, text, title, ratio: devicePixelRatio });
  save(blob, fileName(title, "png"));
}

/** Save the newest line spectrum of each channel as CSV. */
export function saveCsv(session, zone) {
  for (const channel of session.channels) {
    const row = channel.newest;
    if (row === null) continue;
    const title = topicTitle(channel.info);
    const time = formatTime(row.tMs, zone, 3);
    save(new Blob([traceCsv({ title, time, row })], { type: "text/csv" }), fileName(`${title} ${time}`, "csv"));
  }
}

/**
 * Save the time that the waterfalls show, of each channel: `csv`, levels of what is on the screen; `spd`, the
 * recorded rows.
 *
 * @param {string} base address of the page
 * @param {import("./actions.js").Scene} scene of a panel
 */
export async function savePast(format, base, session, { view, axis, newestMs }) {
  const t1 = Math.ceil(view.t1 ?? newestMs ?? 0);
  const shown = { t0: t1 - 1000 * view.span, t1, f0: axis.f0, f1: axis.f1, statistic: view.statistic };
  for (const { info } of session.channels) {
    const response = await fetch(exportAddress(base, info, shown, format));
    if (!response.ok) {
      const { error } = await response.json().catch(() => ({ error: `status ${response.status}` }));
      throw new Error(error);
    }
    const time = new Date(shown.t0).toISOString();
    save(await response.blob(), fileName(`${topicTitle(info)} ${time}`, format));
  }
}
