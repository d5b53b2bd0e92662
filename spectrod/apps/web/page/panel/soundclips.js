/** Recorded sound of an event: what the server has of its time, to be played and saved. */

import { formatTime } from "../plot/time.js";
import { element } from "../side/dom.js";

/** Files of an answer at most, whatever the server says. */
const CLIPS_MAX = 8;

/**
 * @typedef {object} Clip
 * @property {string} name of the file
 * @property {number} beginMs
 * @property {number} endMs
 * @property {string} address
 */

/**
 * Ask for the sound of a source in a span of time.
 *
 * @param {Function} fetch
 * @param {string} base address of the page
 * @param {{source: string, t0: number, t1: number}} asked [ms UTC]
 * @returns {Promise<Clip[]>} the oldest first
 * @throws {Error} with the server's reason
 */
export async function findClips(fetch, base, { source, t0, t1 }) {
  const address = new URL("api/sound", base);
  // A mark of a moment has no length.
  address.search = new URLSearchParams({ source, t0, t1: Math.max(t0 + 1, t1) });
  const response = await fetch(address);
  const answer = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw new Error(answer.error);
  const clips = Array.isArray(answer.clips) ? answer.clips : [];
  return clips.slice(0, CLIPS_MAX).map((clip) => ({ name: String(clip.name), beginMs: Number(clip.begin_ms), endMs: Number(clip.end_ms), address: addressOf(base, clip) }));
}

function addressOf(base, { folder, recording, source, name }) {
  const address = new URL("api/sound/file", base);
  address.search = new URLSearchParams({ folder, recording, source, name });
  return address.href;
}

/** Seconds from the begin of a clip to a time, within the clip. */
export const secondsInto = ({ beginMs, endMs }, tMs) => Math.max(0, Math.min(tMs, endMs) - beginMs) / 1000;

/**
 * Show clips: each with its time, a player that begins where the event does, and a link that saves it.
 *
 * @param {HTMLElement} place
 * @param {Clip[]} clips
 * @param {{t0: number, zone: string}} event
 */
export function showClips(place, clips, { t0, zone }) {
  place.replaceChildren(
    ...clips.map((clip) => {
      const title = `${formatTime(clip.beginMs, zone)}, ${((clip.endMs - clip.beginMs) / 1000).toFixed(1)} s`;
      const at = secondsInto(clip, t0);
      const player = element("audio", { controls: "", preload: "metadata", src: `${clip.address}#t=${at.toFixed(3)}`, "aria-label": `Sound from ${title}` });
      const link = element("a", { href: clip.address, download: clip.name }, `Save ${clip.name}`);
      return element("div", { class: "clip" }, element("div", {}, title), player, link);
    }),
  );
}
