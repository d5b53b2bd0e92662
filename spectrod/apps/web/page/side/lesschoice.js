/** The choice of the topic whose levels are subtracted from those of the others. */

import { topicTitle } from "../link/topics.js";
import { element, setAttribute } from "./dom.js";

/**
 * Offer topics in a list; of a single one there is no difference, and no list.
 *
 * @param {HTMLSelectElement} select with its label in an element of their own
 * @param {object[]} offered topics of spectra
 * @param {{nameOf: (info: object) => string, less: string}} chosen name of a topic in a view, and that of the one that is subtracted
 * @returns {object | null} that one; null: none
 */
export function showLess(select, offered, { nameOf, less }) {
  const names = ["", ...offered.map(nameOf)];
  const texts = ["levels", ...offered.map((info) => `less ${topicTitle(info)}, in dB`)];
  const isSame = select.options.length === names.length && names.every((name, k) => select.options[k].value === name && select.options[k].text === texts[k]);
  if (!isSame) select.replaceChildren(...names.map((name, k) => element("option", { value: name }, texts[k])));
  select.value = names.includes(less) ? less : "";
  setAttribute(select.parentElement, "hidden", offered.length < 2);
  return offered.find((info) => nameOf(info) === less) ?? null;
}
