/** Making elements without markup: texts are only ever texts. */

/**
 * Make an element.
 *
 * @param {string} name
 * @param {Record<string, string | number | boolean | null>} attributes null and false are left out
 * @param {...(Node | string)} children strings become text
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) setAttribute(made, key, value);
  made.append(...children);
  return made;
}

/** Set an attribute, or remove it with null or false; true sets it empty. */
export function setAttribute(target, key, value) {
  if (value === null || value === false) target.removeAttribute(key);
  else if (target.getAttribute(key) !== String(value)) target.setAttribute(key, value === true ? "" : value);
}

/** Change a text only if it is another one: the document is laid out again for each change. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Move an element to a place of what it lies over [CSS px]. */
export function shift(target, left, top) {
  target.style.transform = `translate(${left.toFixed(2)}px, ${top.toFixed(2)}px)`;
}

/** Make the rows of a table's body those of `rows`, each a list of texts; rows that are there are used again. */
export function fillTable(body, rows) {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((texts, k) => {
    const row = body.rows[k] ?? body.insertRow();
    while (row.cells.length > texts.length) row.deleteCell(-1);
    texts.forEach((text, j) => setText(row.cells[j] ?? row.insertCell(), text));
  });
}

/** Colours of the style sheet, for what is drawn on canvases. */
export function themeColours(target = document.documentElement) {
  const style = getComputedStyle(target);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ["text", "muted", "grid", "plot", "now", "max", "min", "mean", "second", "reference", "mark"];
  const series = Array.from({ length: 8 }, (_, k) => `series${k}`);
  return Object.fromEntries([...names, ...series].map((name) => [name, colour(name)]));
}
