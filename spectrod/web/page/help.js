/** The list of keys and gestures. */

import { element } from "./dom.js";
import { KEYS, keyText } from "./keys.js";

function keyRow({ keys, text }) {
  const shown = keys.filter((key) => key.length > 1 || key.toUpperCase() === key);
  const signs = (shown.length > 0 ? shown : keys).flatMap((key, k) => [...(k > 0 ? [" "] : []), element("kbd", {}, keyText(key))]);
  return element("tr", {}, element("td", {}, ...signs), element("td", {}, text));
}

/** Open the list; Escape or its button closes it, and the focus goes back. */
export function showHelp() {
  const body = document.getElementById("help-keys");
  if (body.rows.length === 0) body.append(...KEYS.map(keyRow));
  const dialog = document.getElementById("help");
  if (!dialog.open) dialog.showModal();
}
