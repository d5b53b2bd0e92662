/** Requests that change a daemon: what each button asks for, and how it is asked. */

/** What a recording can be: endings of its name, and texts. */
export const RECORDING_KINDS = Object.freeze([
  ["spd", "spectra"],
  ["png", "picture"],
  ["wav", "sound"],
]);

/**
 * Ask a daemon for something.
 *
 * @param {{method: string, params: object, endpoint: string}} request `endpoint` as in the list of topics
 * @returns {Promise<any>} its result
 * @throws {Error} with the daemon's or the server's reason, for a person
 */
export async function askDaemon({ method, params, endpoint }, base, fetch = globalThis.fetch) {
  const answer = await fetch(new URL("api/control", base).href, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ method, params, endpoint }),
  });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error ?? `HTTP status ${answer.status}`);
  return found;
}

/** Sources of a list of topics, each with its products; the same source of two daemons is two. */
export function sourcesOf(topics) {
  const found = new Map();
  for (const { endpoint, source, product } of topics) {
    const key = `${source}@${endpoint}`;
    if (!found.has(key)) found.set(key, { key, endpoint, source, products: [] });
    const { products } = found.get(key);
    if (!products.includes(product)) products.push(product);
  }
  const sources = [...found.values()];
  const isOnly = ({ source }) => sources.filter((one) => one.source === source).length === 1;
  return sources.map((one) => ({ ...one, title: isOnly(one) ? one.source : one.key }));
}

/** A part of a key as the configuration writes it: quoted unless it is bare. */
const quoted = (name) => (/^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name));

/**
 * Settings of a product that can be changed while the daemon runs.
 *
 * @param {object} config all that `get` tells
 * @param {{source: string, product: string}} chosen
 * @returns {Array<{key: string, name: string, value: string}>} the main product's are those of the source's analysis
 */
export function settingsOf(config, { source, product }) {
  const own = config.sources?.[source]?.analysis;
  const shared = own ?? config.analysis ?? {};
  const place = own ? `sources.${quoted(source)}.analysis` : "analysis";
  const named = config.products?.[product];
  const prefix = named ? `products.${quoted(product)}` : place;
  const values = named ? { ...shared, ...named } : shared;
  return Object.entries(values).map(([name, value]) => ({
    key: `${prefix}.${name}`,
    name,
    value: typeof value === "string" ? value : JSON.stringify(value),
  }));
}

/** Name of a recording that begins now: the source, the UTC time, and what it is. */
export function recordingName(source, kind, date) {
  const time = date.toISOString().replace(/[-:]/g, "").replace(/\.\d+/, "");
  return `${source.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64)}-${time}.${kind}`;
}

/**
 * The requests by the names of their buttons: functions of what is chosen and typed, which give a method, its
 * parameters, and the text of success.
 */
export const REQUESTS = Object.freeze({
  pause: ({ source }) => ({ method: "pause", params: { source }, done: () => "analysis paused" }),
  resume: ({ source }) => ({ method: "resume", params: { source }, done: () => "analysis resumed" }),
  reset: ({ source, product }) => ({
    method: "reset",
    params: { source, product },
    done: () => "averages and holds reset",
  }),
  set: ({ key, value }) => ({ method: "set", params: { changes: { [key]: value } }, done: (lines) => lines.join("; ") }),
  record: ({ source, product, kind, duration_s, date }) => ({
    method: "record.start",
    params: { source, product, name: recordingName(source, kind, date), ...(duration_s === null ? {} : { duration_s }) },
    done: ({ name }) => `recording ${name}`,
  }),
  stop: () => ({
    method: "record.stop",
    params: {},
    done: (found) => (found.length > 0 ? `recorded ${found.map(({ name }) => name).join(", ")}` : "no recording was running"),
  }),
  trigger: ({ source }) => ({
    method: "record.trigger",
    params: { name: "", source },
    done: (found) => `triggered: ${found.join(", ")}`,
  }),
  learn: ({ source, product, mask, mask_s }) => ({
    method: "learn.start",
    params: { name: mask, source, product, ...(mask_s === null ? {} : { duration_s: mask_s }) },
    done: ({ name }) => `learning mask ${name}; an event reports its end`,
  }),
  abort: ({ mask }) => ({ method: "learn.abort", params: { name: mask }, done: ({ name }) => `learning of mask ${name} aborted` }),
});
