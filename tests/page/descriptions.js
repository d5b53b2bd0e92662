/** Descriptions and rows for the tests. */

/** Return the text `stream` of nfft / 2 + 1 bins in one slice, 8 bits, with changes. */
export function description(changes = {}) {
  const { fs = 48000, nfft = 4096, per = 1 } = changes;
  const bins = nfft / 2 + 1;
  const slices = [{ first: 0, per_value: per, values: Math.ceil(bins / per) }];
  return {
    ...{ id: 1, kind: "spec", fs, row_s: 0.02, first_hz: 0, bin_hz: fs / nfft, n_bins: bins },
    ...{ edges_hz: null, bits: 8, lo: -120, step: 0.5, slices },
    ...changes,
  };
}

/** Return a row of these values. */
export function row(values, changes = {}) {
  return { seq: 1, missed: 0, merged: 1, flags: 0, tMs: 0, gapSamples: 0, values, ...changes };
}

/** Return a generator of numbers in [0, 1) (Park and Miller's). */
export function random(seed) {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}
