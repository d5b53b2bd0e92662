/** Taking away what is on the screen: a picture of a panel, and the line spectrum as CSV. */

import { eachValue } from "../rows/bins.js";

const QUOTED = /[",\n\r]/;
/** A spreadsheet would compute what begins with one of these. */
const FORMULA = /^[=+\-@\t]/;

/** A field of CSV, quoted where it must be; texts are never formulas. */
export function csvField(value) {
  if (typeof value === "number") return Number.isFinite(value) ? String(Number(value.toPrecision(10))) : "";
  const text = FORMULA.test(value) ? `'${value}` : value;
  return QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * The line spectrum as CSV, one line a value; comments first, as in spectrod's other CSV.
 *
 * @param {{title: string, time: string, row: {values: ArrayLike<number>, description: object}}} trace
 * @returns {string}
 */
export function traceCsv({ title, time, row }) {
  const { description } = row;
  const lines = [`# ${title}`, `# ${time}`, `# unit: ${description.unit}; max or mean of the bins of each line`];
  lines.push("frequency_hz,bins,level");
  eachValue(row.values, description, (hz, level, bin, perValue) => {
    lines.push([hz, Math.min(perValue, description.n_bins - bin), level].map(csvField).join(","));
  });
  return `${lines.join("\n")}\n`;
}

/** A name of a file from a text: letters, digits, dots and dashes alone. */
export function fileName(text, ending) {
  const plain = text.replace(/[^A-Za-z0-9.]+/g, "-").replace(/^[-.]+|-+$/g, "");
  return `${plain.slice(0, 100) || "spectrum"}.${ending}`;
}

/** Let the browser save a file. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Texts of the panels that a picture has beside its canvases. */
const TEXTS = "h2, .legend > span, .unit, .caption, .cursor-label, .banner";

/** Draw the text of an element where it is on the screen, as far as it is wide; nothing of one that is hidden. */
function drawText(context, part, { left: x0, top: y0 }, head, ratio) {
  const { left, top, width, height } = part.getBoundingClientRect();
  if (width === 0 || height === 0) return;
  const style = getComputedStyle(part);
  const { color, fontSize, fontWeight, backgroundColor } = style;
  const [x, y] = [(left - x0) * ratio, (top - y0 + head) * ratio];
  const em = parseFloat(fontSize) * ratio;
  context.fillStyle = backgroundColor;
  context.fillRect(x, y, width * ratio, height * ratio);
  const middle = y + (height * ratio) / 2;
  const sign = part.dataset.line === undefined ? 0 : 1.55 * em; // as wide as in the style sheet
  if (sign > 0) {
    context.fillStyle = style.getPropertyValue("--line");
    context.fillRect(x, middle - 1.5 * ratio, 1.2 * em, 3 * ratio);
  }
  context.fillStyle = color;
  context.font = `${fontWeight} ${em}px system-ui, sans-serif`;
  context.fillText(part.textContent, x + sign, middle, width * ratio - sign);
}

/**
 * Draw the canvases of an element, and its titles, legends, units and cursors, into one picture, as they lie on the
 * screen.
 *
 * @param {HTMLElement} root
 * @param {{background: string, text: string, title: string, ratio: number}} look
 * @returns {Promise<Blob>} PNG
 */
export function picture(root, { background, text, title, ratio }) {
  const frame = root.getBoundingClientRect();
  const head = 24;
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(frame.width * ratio);
  canvas.height = Math.round((frame.height + head) * ratio);
  const context = canvas.getContext("2d");
  context.fillStyle = background;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = text;
  context.font = `${Math.round(13 * ratio)}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.fillText(title, 8 * ratio, (head / 2) * ratio, canvas.width - 16 * ratio);
  for (const part of root.querySelectorAll("canvas")) {
    const { left, top, width, height } = part.getBoundingClientRect();
    if (width === 0 || height === 0) continue;
    const [x, y] = [left - frame.left, top - frame.top + head];
    // Pixel by pixel: a canvas between two pixels would be blurred.
    context.drawImage(part, Math.round(x * ratio), Math.round(y * ratio));
  }
  for (const part of root.querySelectorAll(TEXTS)) drawText(context, part, frame, head, ratio);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large"))), "image/png");
  });
}
