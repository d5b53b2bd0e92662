/** The list of keys and gestures. */

import { element } from "./dom.js";
import { KEYS, keyText } from "./keys.js";
import { TERMS } from "./terms.js";

function keyRow({ keys, text }) {
  const shown = keys.filter((key) => key.length > 1 || key.toUpperCase() === key);
  const signs = (shown.length > 0 ? shown : keys).flatMap((key, k) => [...(k > 0 ? [" "] : []), element("kbd", {}, keyText(key))]);
  return element("tr", {}, element("td", {}, ...signs), element("td", {}, text));
}

function termRow([term, text]) {
  return element("tr", {}, element("th", { scope: "row" }, term), element("td", {}, text));
}

/** Let the tooltips of the buttons of actions name their keys. */
export function nameKeys(root) {
  for (const { keys, action, text } of KEYS) {
    for (const button of root.querySelectorAll(`[data-action="${action}"], button#${action}`)) button.title = `${text} (${keyText(keys[0])})`;
  }
}

/** Open the list; Escape or its button closes it, and the focus goes back. */
export function showHelp() {
  const body = document.getElementById("help-keys");
  if (body.rows.length === 0) {
    body.append(...KEYS.map(keyRow));
    document.getElementById("help-terms").append(...Object.entries(TERMS).map(termRow));
  }
  const dialog = document.getElementById("help");
  if (!dialog.open) dialog.showModal();
}
