// stft_local.cl - samples to spectra in one kernel: frames are read in place, windowed, transformed
// in the registers of a few work-items, which exchange values through local memory, and squared;
// only what is asked for is written. For GPUs.
//
// Defines : N (length of the complex transform: half of the frame's, or with IQ the frame's) and
//           all that fft_local_passes.clh needs; MIRRORED (1: pairs of bins without an exchange,
//           real frames only); WIN_LENGTH (samples under the window); FORMAT and ALIGNED as in
//           stft_samples.clh; INTERLEAVED (0 or 1); IQ (1: two channels are real and imaginary part
//           of one signal); HELD (1: window factors stay in registers from frame to frame); AHEAD
//           (1: a frame's samples are loaded while the one before is transformed); SHIFT (0, or, if
//           AHEAD: frames without padding begin so many steps N / RADIX_1 of values apart); ONE_FRAME
//           (1: run is 1, and no register is kept for another frame);
//           COMPLEX_OUT (1: spectra, 0: power); WEIGHTED (0 or 1); N_BANDS (0: bins), N_PIECES (of
//           the bands); AVERAGING (0 none, 1 mean, 2 maximum, 3 minimum, 4 exponential); PLACED as
//           in stft_places.clh; DECIBELS.
// In      : samples  see `Samples` in spectrod/analysis/stft/stft_stage.py.
//           window   [N] cplx: factors of a value's two parts.
//           twiddles, real_twiddles   as in fft_local.cl.
//           weights  [bins] of the power, if WEIGHTED.
//           pieces   [N_PIECES] {first bin, bins, first weight, 0}; band_weights; bands [N_BANDS]
//                    {first piece, pieces}: a band is the sum of its pieces, if N_BANDS.
// Out     : out      [rows][channels][values] of float, or of cplx if COMPLEX_OUT.
//           state    [channels][values], see `Average` there, if AVERAGING; of a mean and an
//                    exponential average [channels][2][values], second what rounding lost.
// Scalars : first, pitch, hop [samples]; n_frames; run: frames that a slot computes, one after the
//           other; done, row_frames, primed, see `Average`; row_num, row_den, row_phase, see
//           `RowPlaces`; smoothing, floor_db.
// NDRange : global (ITEMS * LINES * groups, channels), local (ITEMS * LINES, 1); a slot is ITEMS of
//           a group's items.
// Bounds  : slots and frames past the last load zeros and store nothing; no item leaves before a
//           barrier. A frame reads its own WIN_LENGTH samples and nothing else.
// Source  : as fft_local.cl; sums over frames, Kahan 1965; one-sided power from a half-length
//           transform, Sorensen et al. 1987.
// Error   : relative L2 of the power: see README.md.

#include "decibels.clh"
#include "dft.clh"
#include "dft_fused.clh"
#include "stft_places.clh"
// clang-format off: each needs those before it
#include "stft_samples.clh"
#include "stft_values.clh"
// clang-format on

#define MIRRORS_FIRST 0
#define MIRRORS_LAST  MIRRORED
#define STORES_PAIRS  (!IQ)
#define LINE_PAIRS    0

#define BINS       (IQ ? N : N + 1)
#define VALUES_OUT (N_BANDS ? N_BANDS : BINS)

typedef real part;
#include "average.clh"

#define STATE_VALUES (VALUES_OUT * (1 + ADDS))

#if COMPLEX_OUT
typedef cplx result;
#else
typedef float result;
#endif

// ---- What becomes of a bin ----------------------------------------------------------------------

// Where the values of one frame of one channel go.
typedef struct {
    __global const cplx *twiddles;
    __global const float *weights;
    __local float *powers;
    __global result *row;
#if AVERAGING
    __global const float *before; // the average so far, or null
    __global float *after;        // where it is kept, or null
    __local float *lost;          // by the rounding of sums, to be made up for by the next frame
    bool is_last;                 // whether the row is finished by this frame
    float share;                  // of a frame in a mean
    float smoothing;
#endif
    float floor_db;
} sink;

INLINE float finished(const sink to, const float value) {
#if DECIBELS
    return decibels(value, to.floor_db);
#else
    return value;
#endif
}

#if !COMPLEX_OUT
INLINE void store_value(const sink to, const int first, const int step, const float value) {
#if AVERAGING
    average now = {value, 0};
    if (to.before)
        now = joined((average){(to.before + first)[step], ADDS ? (to.lost + first)[step] : 0},
                     value, to.smoothing);
    if (ADDS)
        (to.lost + first)[step] = now.lost;
    if (to.after)
        (to.after + first)[step] = now.value;
    if (to.is_last)
        (to.row + first)[step] = finished(to, AVERAGING == 1 ? now.value * to.share : now.value);
#else
    (to.row + first)[step] = finished(to, value);
#endif
}

// Bin number first + step.
INLINE void store_power(const sink to, const int first, const int step, float power) {
#if WEIGHTED
    power *= (to.weights + first)[step];
#endif
#if N_BANDS
    (to.powers + first)[step] = power;
#else
    store_value(to, first, step, power);
#endif
}
#endif

#if IQ
// Bins in ascending order of frequency, the negative ones first.
INLINE void store_bin(const sink to, const int k, const cplx a) {
    const int bin = k < N - N / 2 ? k + N / 2 : k - (N - N / 2);
#if COMPLEX_OUT
    to.row[bin] = a;
#else
    store_power(to, bin, 0, squared_magnitude(a));
#endif
}
#else
// Bins k = first + step and N - k of a real frame, from those values of the complex transform:
// twice those of the spectrum, which the window makes up for. Bins 0 and N have no twin to count
// for.
INLINE void store_pair(const sink to, const int first, const int step, const cplx w, const cplx a,
                       const cplx b, const bool may_be_first) {
    const cplx even = {a.re + b.re, a.im - b.im};
    const cplx odd = {a.im + b.im, b.re - a.re};
    cplx sum, difference;
    pair_butterfly(&sum, &difference, even, odd, w);
#if COMPLEX_OUT
    (to.row + first)[step] = sum;
    (to.row + (N - first))[-step] = (cplx){difference.re, -difference.im};
#else
    const float twin = may_be_first && first + step == 0 ? 0.5f : 1.0f;
    store_power(to, first, step, twin * squared_magnitude(sum));
    if (!AVERAGING || 2 * (first + step) != N) // an average counts a bin once
        store_power(to, N - first, -step, twin * squared_magnitude(difference));
#endif
}
#endif

// clang-format off: each needs those before it
#include "fft_local_passes.clh"
#include "fft_local_pairs.clh"
// clang-format on

// ---- Samples to values of the line --------------------------------------------------------------

// Butterflies of the first pass; most of the padding is known to be zero without a look.
#define IS_PADDING(r) ((r) * (N / RADIX_1) * (IQ ? 1 : 2) >= WIN_LENGTH)

// Values of the first pass: number r of butterfly b is value t + STEP(b, r) of the line.
#define STEP(b, r) ((b) * ITEMS + (r) * (N / RADIX_1))
#define FOR_FIRST_PASS(b, r)                                                                       \
    _Pragma("unroll") for (int b = 0; b < BUTTERFLIES(RADIX_1); b++)                               \
        _Pragma("unroll") for (int r = 0; r < RADIX_1; r++)

INLINE void load_window(cplx *w, __global const cplx *window, const int t) {
    FOR_FIRST_PASS(b, r) {
        const bool is_mine = !IS_PADDING(r) && (IS_WHOLE(RADIX_1) || t + b * ITEMS < N / RADIX_1);
        w[b * RADIX_1 + r] = is_mine ? (window + t)[STEP(b, r)] : (cplx){0, 0};
    }
}

// Values of all butterflies from number `from` of each on.
INLINE void load_frame(cplx *x, __global const sample *frame, const ulong pitch, const int t,
                       const int from) {
    FOR_FIRST_PASS(b, r) {
        const bool is_mine = !IS_PADDING(r) && (IS_WHOLE(RADIX_1) || t + b * ITEMS < N / RADIX_1);
        if (r >= from)
            x[b * RADIX_1 + r] = is_mine ? load_value(frame, pitch, t, STEP(b, r)) : (cplx){0, 0};
    }
}

// From the values of a frame to those of the next one. What both have is in the registers, a few
// numbers further on, if the hop is so many steps of a butterfly; the rest is loaded.
INLINE void load_next(cplx *x, __global const sample *frame, const ulong pitch, const int t) {
#if SHIFT > 0
    FOR_FIRST_PASS(b, r) {
        if (r + SHIFT < RADIX_1)
            x[b * RADIX_1 + r] = x[b * RADIX_1 + r + SHIFT];
    }
    load_frame(x, frame, pitch, t, RADIX_1 - SHIFT);
#else
    load_frame(x, frame, pitch, t, 0);
#endif
}

INLINE void apply_window(cplx *v, const cplx *x, __global const cplx *window, const cplx *held,
                         const int t) {
    FOR_FIRST_PASS(b, r) {
        const bool is_mine = !IS_PADDING(r) && (IS_WHOLE(RADIX_1) || t + b * ITEMS < N / RADIX_1);
        const int i = b * RADIX_1 + r;
        v[i] = is_mine ? windowed(x[i], HELD ? held[i] : (window + t)[STEP(b, r)]) : (cplx){0, 0};
    }
}

// Both at once, for those who do not load ahead.
INLINE void load_windowed(cplx *v, __global const sample *frame, const ulong pitch,
                          __global const cplx *window, const cplx *held, const int t,
                          const bool exists) {
    FOR_FIRST_PASS(b, r) {
        const bool is_mine = !IS_PADDING(r) && (IS_WHOLE(RADIX_1) || t + b * ITEMS < N / RADIX_1);
        const int i = b * RADIX_1 + r;
        v[i] = exists && is_mine ? windowed(load_value(frame, pitch, t, STEP(b, r)),
                                            HELD ? held[i] : (window + t)[STEP(b, r)])
                                 : (cplx){0, 0};
    }
}

// ---- Values of the line to what is asked for ----------------------------------------------------

#if N_BANDS
// A band is summed in pieces of about the same length, one an item: top bands have most of the
// bins.
INLINE void store_bands(const sink to, __local float *sums, __global const uint4 *pieces,
                        __global const float *band_weights, __global const uint2 *bands,
                        const int t, const bool exists) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = t; i < N_PIECES; i += ITEMS) {
        const uint4 piece = pieces[i];
        float sum = 0;
        for (uint j = 0; j < piece.y; j++)
            sum += band_weights[piece.z + j] * to.powers[piece.x + j];
        sums[i] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = t; i < N_BANDS; i += ITEMS) {
        float sum = 0;
        for (uint j = 0; j < bands[i].y; j++)
            sum += sums[bands[i].x + j];
        if (exists)
            store_value(to, i, 0, sum);
    }
}
#endif

INLINE void store_frame(const sink to, const cplx *v, buffers *tile, const int t,
                        const bool exists) {
#if IQ
#pragma unroll
    for (int b = 0; b < BUTTERFLIES(RADIX_LAST); b++) {
        const int j = t + b * ITEMS;
        if (exists && (IS_WHOLE(RADIX_LAST) || j < N / RADIX_LAST)) {
#pragma unroll
            for (int r = 0; r < RADIX_LAST; r++)
                store_bin(to, j + r * (N / RADIX_LAST), v[b * RADIX_LAST + r]);
        }
    }
#else
    store_bins(to, v, tile, t, exists, 0);
#endif
}

// ---- The kernel ---------------------------------------------------------------------------------

__kernel __attribute__((reqd_work_group_size(ITEMS * LINES, 1, 1))) void
stft_local(__global result *out, __global float *state, __global const sample *restrict samples,
           __global const cplx *restrict window, __global const cplx *restrict twiddles,
           __global const cplx *restrict real_twiddles, __global const float *restrict weights,
           __global const uint4 *restrict pieces, __global const float *restrict band_weights,
           __global const uint2 *restrict bands, const ulong first, const ulong pitch,
           const ulong hop, const uint n_frames, const uint run, const uint done,
           const uint row_frames, const uint primed, const ulong row_num, const ulong row_den,
           const ulong row_phase, const float smoothing, const float floor_db) {
    __local exchanged tiles[TILES];
    buffers tile = {tiles + TILE_START, tiles + (TILE_BUFFERS - 1) * PLANE + TILE_START};
    const int t = ITEM();
    const ulong slot = get_group_id(0) * LINES + LINE();
    const ulong channel = get_global_id(1), channels = get_global_size(1);
    // Frames that a row had before this launch have places in front of its first.
    const ulong before = AVERAGING == 0 || AVERAGING == 4 ? 0 : done;
    const ulong end = min((slot + 1) * run - before, (ulong)n_frames);
    ulong frame = slot == 0 ? 0 : slot * run - before;
    const ulong part = IQ ? 2 * channel : channel;
#define BEGIN_OF(f) begin_of(f, hop, row_frames, done, row_num, row_den, row_phase)
#define FRAME_AT(f) (samples + SAMPLE_STEP * (INTERLEAVED ? pitch : 1) * BEGIN_OF(f))
    samples += SAMPLE_STEP * (INTERLEAVED ? part + first * pitch : part * pitch + first);

    sink to;
    to.twiddles = real_twiddles;
    to.weights = weights;
    to.floor_db = floor_db;
#if N_BANDS
    __local float powers[LINES][BINS], sums[LINES][N_PIECES];
    to.powers = powers[LINE()];
#else
    to.powers = 0;
#endif
#if AVERAGING
    to.share = 1.0f / row_frames;
    to.smoothing = smoothing;
    __global float *kept = state + channel * STATE_VALUES;
    to.before = slot == 0 && primed ? kept : 0;
    __local float lost[LINES][VALUES_OUT];
    to.lost = lost[LINE()];
    if (ADDS && to.before)
        for (int i = t; i < VALUES_OUT; i += ITEMS)
            to.lost[i] = kept[VALUES_OUT + i];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    cplx held[VALUES];
    if (HELD)
        load_window(held, window, t);
#if AHEAD
    cplx next[VALUES];
    if (frame < end)
        load_frame(next, FRAME_AT(frame), pitch, t, 0);
#endif
    // All items of a group with one slot leave the loop together. With one frame that one exists,
    // as a launch has no group without; checking it all the same takes 105 instead of 128
    // registers where exchanges are split, and more operations elsewhere.
    const uint left = frame < end ? end - frame : 0;
    const uint turns = ONE_FRAME ? 1 : LINES == 1 ? left : run;
    for (uint i = 0; i < turns; i++, frame++) {
        const bool exists = (LINES == 1 && !(ONE_FRAME && SPLIT_EXCHANGE)) || frame < end;
        cplx v[VALUES];
#if AHEAD
        apply_window(v, next, window, held, t);
        if (frame + 1 < end) // now, so that they are there when this frame is done
            load_next(next, FRAME_AT(frame + 1), pitch, t);
#else
        load_windowed(v, FRAME_AT(frame), pitch, window, held, t, exists);
#endif
        transform(v, &tile, twiddles, t, WITHIN_LINE);
#if AVERAGING
        const ulong row = (done + frame) / row_frames;
        to.row = out + (row * channels + channel) * VALUES_OUT;
        to.is_last = (done + frame + 1) % row_frames == 0;
        // A row that this launch finishes gathers in its own place.
        const bool finishes = (row + 1) * row_frames <= (ulong)done + n_frames;
        to.after = AVERAGING == 4 ? kept : to.is_last ? 0 : finishes ? to.row : kept;
#else
        to.row = out + (frame * channels + channel) * VALUES_OUT;
#endif
        store_frame(to, v, &tile, t, exists);
#if N_BANDS
        store_bands(to, sums[LINE()], pieces, band_weights, bands, t, exists);
#endif
#if AVERAGING
        if (exists)
            to.before = AVERAGING != 4 && to.is_last ? 0 : to.after;
#endif
        if (STORES_PAIRS && !MIRRORS_LAST)
            leave(&tile);
    }
#if ADDS
    barrier(CLK_LOCAL_MEM_FENCE);
    if (to.before) // the row is unfinished, or has no end
        for (int i = t; i < VALUES_OUT; i += ITEMS)
            kept[VALUES_OUT + i] = to.lost[i];
#endif
}
