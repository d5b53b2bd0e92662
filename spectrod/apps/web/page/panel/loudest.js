/** The loudest moment: where the greatest value of a bin is in a selection, or in all that is shown. */

import { findLoudest } from "../rows/selection.js";
import { cursorAt } from "./actions.js";
import { snapToBin } from "./cursor.js";

/** What is looked through: the selection, else the times and frequencies on the screen; null before the first row. */
export function searchedBox({ view, axis, newestMs }) {
  if (view.selection !== null) return view.selection;
  const top = view.t1 ?? newestMs;
  return top === null ? null : { t0: top - 1000 * view.span, t1: top, f0: axis.f0, f1: axis.f1 };
}

/**
 * Part of a view with cursor A at the loudest moment of a channel; null without data.
 *
 * @param {Function} fetch
 * @param {string} base address of the page
 * @param {{scene: import("./actions.js").Scene, channel: import("../rows/channel.js").Channel}} asked
 * @returns {Promise<object | null>}
 * @throws {Error} with the server's reason
 */
export async function loudestPart(fetch, base, { scene, channel: { info, description } }) {
  const box = searchedBox(scene);
  if (description === null) throw new Error("the frequencies of this channel are not known yet");
  const found = box && (await findLoudest(fetch, base, { topic: info, box }));
  return found ? cursorAt(scene, { hz: snapToBin(found.hz, description), tMs: found.tMs, isSecond: false }) : null;
}
