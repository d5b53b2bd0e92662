/**
 * Ticks of the frequency and level axes: where they are and what they say.
 */

/** The most ticks of an axis, labelled or not. */
export const TICKS_MAX = 64;

const LABEL_GAP_PX = 6;
const LEVEL_TICK_PX = 28; // least distance between labelled levels
const LINEAR_STEP_PX = 24; // least distance between labelled ticks of a linear axis
const MINOR_STEP_PX = 5;
const MANTISSAS = [1, 2, 2.5, 5];
// Digits of a decade in the order in which they get labels.
const DECADE = [[1], [5, 2], [3, 4, 6, 7, 8, 9]];
const HERTZ = [1, ""];
const UNITS = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
const OCTAVE_REFERENCE_HZ = 1000;
// Frequencies about evenly spaced on the mel scale, in the order in which they get labels [Hz].
const MEL_HZ = [
  [0, 1000, 4000, 16000, 64000],
  [500, 2000, 8000, 32000],
  [250, 750, 1500, 3000, 6000, 12000, 24000, 48000, 96000],
];

/**
 * @typedef {object} Tick
 * @property {number} px place on the axis
 * @property {number} value in the axis' unit
 * @property {string} label empty for a tick without one
 * @property {boolean} major whether a grid line belongs to it
 */

/**
 * Return the smallest 1, 2, 2.5 or 5 times a power of ten that is not below `floor`.
 *
 * @param {number} floor above 0
 * @returns {{step: number, mantissa: number, decimals: number}} with the decimals that tell its
 *   multiples apart
 */
export function niceStep(floor) {
  let exponent = Math.floor(Math.log10(floor));
  // The margin keeps a step that rounding has put just below its exact value.
  let mantissa = MANTISSAS.find((m) => m * 10 ** exponent >= floor * (1 - 1e-9));
  if (mantissa === undefined) [mantissa, exponent] = [1, exponent + 1];
  const decimals = Math.max(0, -exponent + (mantissa === 2.5 ? 1 : 0));
  return { step: mantissa * 10 ** exponent, mantissa, decimals };
}

/** Return the multiples of a step from lo to hi, both included, at most `TICKS_MAX`. */
function multiples(lo, hi, step) {
  const first = Math.ceil(lo / step - 1e-9);
  const count = Math.min(Math.floor(hi / step + 1e-9) - first + 1, TICKS_MAX);
  return Array.from({ length: Math.max(count, 0) }, (_, n) => (first + n) * step);
}

/**
 * Return the ticks of a frequency axis, ascending.
 *
 * Labels do not come closer than 6 px. A linear axis has multiples of a round step; a logarithmic one
 * decades, then 5 and 2, then the rest; an octave axis 1 kHz times powers of two; a mel axis round
 * frequencies. One that shows too little for three of those has multiples of a round step as well.
 *
 * @param {import("./axis.js").Axis} axis
 * @param {(text: string) => number} measureText width of a label [px]
 * @returns {Tick[]} at most `TICKS_MAX`
 */
export function frequencyTicks(axis, measureText) {
  const tiers = usualFrequencies(axis).map((tier) => tier.filter((hz) => isWithin(axis, hz)));
  const usual = tiers.flat().length >= 3 && tiers.flat().length <= TICKS_MAX;
  return usual ? labelTiers(axis, tiers, metricLabel, measureText) : linearTicks(axis, measureText);
}

function isWithin(axis, hz) {
  const px = axis.toPixel(hz);
  return px >= -1e-6 && px <= axis.width + 1e-6;
}

function usualFrequencies(axis) {
  if (axis.kind === "mel") return axis.f1 - axis.f0 >= 2000 ? MEL_HZ : [];
  if (axis.kind === "octave") return axis.f1 / axis.f0 >= 4 ? [octaves(axis)] : [];
  if (axis.kind === "log" && axis.f1 / axis.f0 >= 10) return decades(axis);
  return [];
}

function octaves({ f0, f1 }) {
  const first = Math.ceil(Math.log2(f0 / OCTAVE_REFERENCE_HZ) - 1e-9);
  const last = Math.floor(Math.log2(f1 / OCTAVE_REFERENCE_HZ) + 1e-9);
  const count = Math.min(last - first + 1, TICKS_MAX);
  return Array.from({ length: count }, (_, n) => OCTAVE_REFERENCE_HZ * 2 ** (first + n));
}

function decades({ f0, f1 }) {
  const first = Math.floor(Math.log10(f0));
  const count = Math.floor(Math.log10(f1) + 1e-9) - first + 1;
  // Ticks of so many decades would touch: every n-th decade alone is left.
  const every = Math.ceil(count / (TICKS_MAX / 2));
  const digits = count <= 6 ? DECADE : DECADE.slice(0, 1);
  const exponents = Array.from({ length: Math.ceil(count / every) }, (_, n) => first + n * every);
  return digits.map((tier) => exponents.flatMap((e) => tier.map((digit) => digit * 10 ** e)));
}

function labelTiers(axis, tiers, format, measureText) {
  const taken = [];
  const ticks = tiers.flatMap((tier, rank) =>
    tier.map((hz) => placeTick(axis, hz, format(hz), measureText, taken, rank === 0)),
  );
  return ticks.sort((a, b) => a.px - b.px);
}

/** Make a tick; it keeps its label if that touches none of those `taken`, and is then one of them. */
function placeTick(axis, hz, text, measureText, taken, isFirstRank) {
  const px = axis.toPixel(hz);
  if (text === "") return { px, value: hz, label: "", major: false };
  const half = (measureText(text) + LABEL_GAP_PX) / 2;
  const isFree = taken.every(([from, to]) => px + half <= from || px - half >= to);
  if (isFree) taken.push([px - half, px + half]);
  return { px, value: hz, label: isFree ? text : "", major: isFree || isFirstRank };
}

function linearTicks(axis, measureText) {
  const { step, mantissa, values, format } = fittingStep(axis, measureText);
  const parts = mantissa === 2 ? 4 : 5;
  const isRoomy = (axis.width * step) / (axis.f1 - axis.f0) / parts >= MINOR_STEP_PX;
  const minor = isRoomy ? multiples(axis.f0, axis.f1, step / parts) : [];
  const isMinor = (hz) => Math.abs(hz / step - Math.round(hz / step)) > 0.1;
  const tiers = [values, minor.length < TICKS_MAX - values.length ? minor.filter(isMinor) : []];
  const label = (hz) => (isMinor(hz) ? "" : format(hz));
  return labelTiers(axis, tiers, label, measureText);
}

/** Return the smallest round step whose labels fit at the axis' high end. */
function fittingStep(axis, measureText) {
  const perPx = axis.f1 - axis.toHertz(axis.width - 1); // where an axis is densest: at its high end
  const reaches = Math.max(Math.abs(axis.f0), Math.abs(axis.f1));
  let floor = perPx * LINEAR_STEP_PX;
  for (;;) {
    const nice = niceStep(floor);
    const values = multiples(axis.f0, axis.f1, nice.step);
    const format = stepLabel(nice.step, reaches);
    const widest = Math.max(0, ...values.map((hz) => measureText(format(hz))));
    const fits = nice.step >= perPx * (widest + LABEL_GAP_PX) && values.length < TICKS_MAX;
    // Two values always fit: the second one loses its label if it must.
    if (fits || values.length <= 2) return { ...nice, values, format };
    floor = nice.step * 1.01;
  }
}

/** Return a function that labels multiples of a step, in the largest unit that needs few decimals. */
function stepLabel(step, reaches) {
  const [scale, suffix] = UNITS.find(([unit]) => reaches >= unit && step >= unit / 1000) ?? HERTZ;
  const decimals = niceStep(step / scale).decimals;
  return (hz) => {
    const text = trimZeros((hz / scale).toFixed(Math.min(decimals, 12)));
    return text === "0" || text === "-0" ? "0" : text + suffix;
  };
}

function trimZeros(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Return a frequency as a short label: `31.25`, `500`, `2k`, `1M`. */
function metricLabel(hz) {
  const [scale, suffix] = UNITS.find(([unit]) => hz >= unit) ?? HERTZ;
  return `${Number((hz / scale).toPrecision(6))}${suffix}`;
}

/**
 * Return the ticks of a level axis, from the top down.
 *
 * @param {number} lo level at the lower end
 * @param {number} hi level at the upper end, px 0; above lo
 * @param {number} height [px]
 * @returns {Tick[]}
 */
export function levelTicks(lo, hi, height) {
  if (!(hi > lo) || !(height > 0)) return [];
  const floor = ((hi - lo) * LEVEL_TICK_PX) / Math.max(height, LEVEL_TICK_PX);
  // One number is no scale: where there is little room the step is halved until there are two.
  const { step, decimals } = [1, 2, 4].map((share) => niceStep(floor / share)).find((nice) => multiples(lo, hi, nice.step).length > 1) ?? niceStep(floor);
  return multiples(lo, hi, step)
    .map((value) => ({
      px: ((hi - value) / (hi - lo)) * height,
      value,
      label: value.toFixed(decimals).replace(/^-(?=0(\.0*)?$)/, ""),
      major: true,
    }))
    .reverse();
}
