/**
 * What the page says of the stream's health: facts as texts, each with how bad it is.
 *
 * A signal that is silent, a daemon that says nothing, and a page without a server are three things,
 * and look like three.
 */

import { NO_ANSWER } from "../link/stream.js";
import { formatTime } from "../plot/time.js";

/** Without a sign of life for longer than this, a daemon counts as gone: it sends a heartbeat each second. */
export const SILENCE_S = 3;

const OFFSET_S = 1;

const START_DAEMON = "start it, and the page goes on";

/**
 * @typedef {object} Fact
 * @property {string} name
 * @property {string} text
 * @property {"good" | "notice" | "bad"} grade
 * @property {number} [lost] how many of something were lost
 * @property {string} [phrase] what the state's line says of it, in place of name and text
 * @property {string} [advice] what to do
 */

const fact = (name, text, grade = "good", more = {}) => ({ name, text, grade, ...more });

/** A duration for reading: 0.5 s, 12 s, 3 min, 2 h. */
export function durationText(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/**
 * The page's own connection.
 *
 * @param {{phase: string, wait_ms: number, why: string}} state of `Connection`
 * @returns {Fact}
 */
export function connectionFact({ phase, wait_ms, why }) {
  if (phase === "open") return fact("page", "connected");
  if (phase === "connecting") return fact("page", "connecting", "notice");
  if (phase === "stopped") return fact("page", "not connected", "notice");
  const advice = why === NO_ANSWER ? { advice: "start spectrod web again" } : {};
  return fact("page", `${why}; next attempt in ${durationText(wait_ms / 1000)}`, "bad", advice);
}

/** A daemon, of a `state` text's `endpoints`. */
export function endpointFact({ endpoint, is_archive: isArchive = false, connected, silence_s, missed, broken = 0, why }) {
  if (isArchive && connected) return fact(endpoint, "open");
  if (connected === false) return fact(endpoint, why || "no connection to the daemon", "bad", why ? {} : { advice: START_DAEMON });
  if (silence_s > SILENCE_S) {
    return fact(endpoint, `no heartbeat for ${durationText(silence_s)}: the daemon has stopped or hangs`, "bad", { advice: "restart it" });
  }
  const losses = [[missed, "messages missed"], [broken, "messages left out: they break the protocol"]];
  const texts = losses.filter(([count]) => count > 0).map(([count, text]) => `${count} ${text}`);
  if (texts.length === 0) return fact(endpoint, "connected");
  return fact(endpoint, ["connected", ...texts].join(", "), "notice", { lost: missed + broken, phrase: texts.join(", ") });
}

/** What a source is doing; what it did when its daemon was last heard of is no state. */
function sourceState({ state, waiting_for, restarts }, isAway) {
  if (isAway) return fact("state", "unknown: no connection to the daemon", "bad");
  if (waiting_for) return fact("state", `waiting: ${waiting_for}`, "bad", { advice: "it goes on by itself once that is over" });
  const known = state || "unknown";
  const isRunning = known === "running";
  const again = restarts > 0 ? `, restarted ${restarts} times` : "";
  return fact("state", known + again, isRunning && !again ? "good" : "notice");
}

const CHECK_TEXTS = new Map([
  ["silent", "digital silence: all samples are zero"],
  ["missing", "digital silence on one channel only"],
  ["stuck", "stuck: the samples do not change"],
  ["clipping", "clipping"],
  ["dc", "DC offset"],
]);

/** Checks are a kind and a channel, such as `silent: 0` or `dc: 1 (-23.1 dBFS)`. */
function checkText(check) {
  const [kind, ...rest] = check.split(": ");
  const known = CHECK_TEXTS.get(kind);
  return known === undefined ? check : `${known} (${rest.join(": ")})`;
}

function checkFacts(checks) {
  return (checks ?? []).map((check) => fact("signal", checkText(check), "notice"));
}

function counted(name, count, unit = "") {
  return count > 0 ? [fact(name, `${count}${unit}`, "notice", { lost: count, phrase: `${count}${unit.startsWith(",") ? "" : unit} ${name}` })] : [];
}

/** Samples that were too loud are there, and were not lost. */
function clippedFacts({ clipped_samples: count }) {
  return count > 0 ? [fact("clipped", `${count} samples`, "notice")] : [];
}

function clockFacts({ rate_error_ppm, rate_uncertainty_ppm, clock_offset_s }) {
  const facts = [];
  if (typeof rate_error_ppm === "number") {
    const spread = typeof rate_uncertainty_ppm === "number" ? ` ± ${rate_uncertainty_ppm.toFixed(1)}` : "";
    facts.push(fact("sample clock", `${rate_error_ppm.toFixed(1)}${spread} ppm`));
  }
  if (Math.abs(clock_offset_s ?? 0) > OFFSET_S) {
    facts.push(fact("clock", `${clock_offset_s.toFixed(1)} s off this machine's`, "notice"));
  }
  return facts;
}

/** A source, of a `state` text's `sources`; `isAway`: whether its daemon is. */
export function sourceFacts(source, isAway = false) {
  return [
    sourceState(source, isAway),
    ...checkFacts(source.checks),
    ...counted("overflows", source.overflows),
    ...counted("suspected losses", source.suspected),
    ...counted("dropped by the daemon", source.dropped),
    ...clippedFacts(source),
    ...clockFacts(source),
  ];
}

function analysisFacts({ fs, nfft, window, unit, ref, cal_id, engine, weighting, averaging, epoch }) {
  const facts = [fact("sample rate", `${fs} Hz`)];
  if (nfft) facts.push(fact("FFT", `${nfft}, ${window}`));
  facts.push(fact("unit", ref ? `${unit}, ${ref}` : unit));
  facts.push(fact("calibration", cal_id ?? "none", "good"));
  if (weighting && weighting !== "Z") facts.push(fact("weighting", weighting));
  if (averaging && averaging !== "none") facts.push(fact("averaging", averaging));
  if (engine) facts.push(fact("engine", engine), fact("epoch", String(epoch)));
  return facts;
}

/**
 * A topic on the screen.
 *
 * @param {import("../rows/channel.js").Channel} channel
 * @param {number} now_ms of the clock that stamped `receivedAt`
 */
export function channelFacts(channel, now_ms) {
  const { description, counts, receivedAt, info = {} } = channel;
  const facts = [];
  if (info.stored) facts.push(fact("stored", info.stored.map((tMs) => formatTime(tMs)).join(" to ")));
  else if (receivedAt === null) facts.push(fact("rows", "none yet", "notice", { phrase: "waiting for data" }));
  else if (now_ms - receivedAt > rowsDueMs(description)) {
    const since = durationText((now_ms - receivedAt) / 1000);
    facts.push(fact("rows", `none for ${since}`, "bad", { phrase: `no data for ${since}` }));
  }
  facts.push(...counted("missed", counts.missed, " messages"));
  facts.push(...counted("gaps", counts.gaps, `, ${Math.round(counts.gapSamples)} samples`));
  facts.push(...counted("dropped for this page", counts.clientDropped, " rows"));
  return description === null ? facts : [...facts, ...analysisFacts(description)];
}

/** Rows that come each `row_s` are late after three of them, and never before 3 s. */
export function rowsDueMs(description) {
  return 1000 * Math.max(SILENCE_S, 3 * (description?.row_s ?? 0));
}

/** The worst grade of some facts. */
export function worstGrade(facts) {
  const grades = facts.map(({ grade }) => grade);
  return ["bad", "notice"].find((grade) => grades.includes(grade)) ?? "good";
}
