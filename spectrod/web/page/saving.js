/** The buttons that save: names, titles and times around `export.js`. */

import { themeColours } from "./dom.js";
import { fileName, picture, save, traceCsv } from "./export.js";
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
