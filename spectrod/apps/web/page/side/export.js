/** Files of what is on the screen: the line spectrum as CSV, and names of files. */

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

const STATISTICS = Object.freeze({ max: "the greatest bin", mean: "the mean power of the bins" });

/**
 * The line spectrum as CSV, one line a value; comments first, as in spectrod's other CSV.
 *
 * @param {{title: string, time: string, row: {values: ArrayLike<number>, description: object}}} trace
 * @returns {string}
 */
export function traceCsv({ title, time, row }) {
  const { description } = row;
  const { unit = "dB", ref = "" } = description;
  const about = `unit: ${unit}${ref === "" ? "" : `, reference: ${ref}`}; level of a line: ${STATISTICS[description.statistic ?? "max"]}`;
  const lines = [title, time, about].map((text) => `# ${text.replace(/[\n\r]/g, " ")}`);
  lines.push(["frequency_hz", "bins", `level (${unit})`].map(csvField).join(","));
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
