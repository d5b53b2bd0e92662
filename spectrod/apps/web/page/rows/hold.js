/** Layers of the line spectrum: the newest row, the server's holds, and a reference kept here. */

/** Copy a row, so that it stays when the ring goes on. */
export function copyRow(row) {
  return row === null ? null : { ...row, values: row.values.slice() };
}

/**
 * Layers of one topic for `Trace.setLayers`, in the order they are drawn: the newest row last, on top.
 *
 * @param {{trace: object | null, second: object | null, reference: object | null, holds: Record<string, object>}} rows
 *   `second`: that at the second cursor
 * @param {readonly string[]} holds names of those that are on
 * @param {(name: string) => object} styleOf style of `now`, `second`, `max`, `min`, `mean` or `reference`
 */
export function layersOf(rows, holds, styleOf) {
  const layers = [];
  const add = (row, name) => {
    if (row) layers.push({ values: row.values, description: row.description, style: styleOf(name) });
  };
  add(rows.reference, "reference");
  for (const name of holds) add(rows.holds[name] ?? null, name);
  add(rows.second ?? null, "second");
  add(rows.trace, "now");
  return layers;
}

/** Switch one hold of a view on or off. */
export function toggleHold(holds, name) {
  return holds.includes(name) ? holds.filter((other) => other !== name) : [...holds, name];
}
