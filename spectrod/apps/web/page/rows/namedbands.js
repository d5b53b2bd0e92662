/** Bands of frequency that have names: those of speech, octave bands, and those that somebody named. */

/** Most characters of a name, and most bands that somebody named. */
export const BAND_NAME_MAX = 40;
export const BANDS_MAX = 16;

const OCTAVE_NAMES = Object.freeze(["31.5 Hz", "63 Hz", "125 Hz", "250 Hz", "500 Hz", "1 kHz", "2 kHz", "4 kHz", "8 kHz", "16 kHz"]);
const PLACE_OF_1_KHZ = 5;

/** Octave band `n` above that of 1 kHz, of base ten: edges at `10^(3/20)` times the exact middle (IEC 61260-1). */
function octave(name, n) {
  const edge = (half) => Number((1000 * 10 ** (0.3 * n + 0.15 * half)).toPrecision(6));
  return Object.freeze({ name: `octave of ${name}`, f0: edge(-1), f1: edge(1) });
}

/** Bands that everybody has [Hz]: speech of telephones (ITU-T G.712) and of wideband calls (G.722), and octave bands. */
export const COMMON_BANDS = Object.freeze([
  Object.freeze({ name: "speech, telephone", f0: 300, f1: 3400 }),
  Object.freeze({ name: "speech, wideband", f0: 50, f1: 7000 }),
  ...OCTAVE_NAMES.map((name, k) => octave(name, k - PLACE_OF_1_KHZ)),
]);

/**
 * Bands with names of anything: each name once, in order, and what is none is left out.
 *
 * @param {unknown} given a list of `{name, f0, f1}` [Hz]
 * @param {number} hertzMax greatest frequency, of either sign
 * @returns {ReadonlyArray<Readonly<{name: string, f0: number, f1: number}>>} BANDS_MAX at most
 */
export function namedBands(given, hertzMax) {
  const found = new Map();
  for (const { name, f0, f1 } of Array.isArray(given) ? given.map((one) => one ?? {}) : []) {
    const isName = typeof name === "string" && name === name.trim() && name !== "" && name.length <= BAND_NAME_MAX;
    const isRange = [f0, f1].every((hz) => Number.isFinite(hz) && Math.abs(hz) <= hertzMax) && f0 < f1;
    if (isName && isRange && !found.has(name) && found.size < BANDS_MAX) found.set(name, Object.freeze({ name, f0, f1 }));
  }
  return Object.freeze([...found.values()]);
}

/** The band of some that has these ends, or null; ends are written in a link with twelve digits. */
export function bandOfEnds(bands, f0, f1) {
  const isNear = (a, b) => Math.abs(a - b) <= 1e-9 * Math.abs(b);
  return f0 === null ? null : (bands.find((one) => isNear(f0, one.f0) && isNear(f1, one.f1)) ?? null);
}
