// stft_multipass_last.cl - the last pass of long frames' transforms: lines to power, levels or
// complex spectra. For GPUs.
//
// Defines : N (length of this pass) and all that fft_local_passes.clh and fft_local_lines.clh need;
//           N_COLUMNS (as in stft_multipass_first.cl); IQ, COMPLEX_OUT, WEIGHTED and DECIBELS as in
//           stft_local.cl; LINE_PAIRS (N_COLUMNS, or 0 with IQ).
// In      : lines    [frames * channels][N N_COLUMNS] cplx, of the pass before: column c is the
//           values from place c / inner * middle_step + c % inner * inner_step on.
//           twiddles, pair_twiddles   as in fft_local.cl.
//           weights  [bins] of the power, if WEIGHTED.
// Out     : value v of channel c of frame f is number first + f * row_pitch + c * channel_pitch + v
//           of out: float, or cplx if COMPLEX_OUT.
// Scalars : n_lines = frames * channels; floor_db.
// NDRange : global (ITEMS * LINES * groups), local (ITEMS * LINES): over N_COLUMNS columns of each
//           line, or with LINE_PAIRS half as many pairs.
// Bounds  : columns past the last load zeros and store nothing; no item leaves before a barrier.
// Source  : as fft_local.cl; one-sided power from a half-length transform, Sorensen et al. 1987.
// Error   : relative L2 of the power: see README.md.

#include "decibels.clh"
#include "dft.clh"
#include "dft_fused.clh"

#define MIRRORS_FIRST 0
#define MIRRORS_LAST  (LINE_PAIRS > 0)
#define STORES_PAIRS  (LINE_PAIRS > 0)
#define TILE_BUFFERS  1
#define LOADS_REALS   0
#define STORES_REALS  0
#define INVERSE       0
#define IN_UNIT       1
#define OUT_UNIT      0

// clang-format off: each needs those before it
#include "fft_local_passes.clh"
#include "fft_local_lines.clh"
// clang-format on

#define BINS (IQ ? N * N_COLUMNS : N * N_COLUMNS + 1)

#if COMPLEX_OUT
typedef cplx result;
#else
typedef float result;
#endif

// Where the values of one frame of one channel go.
typedef struct {
    __global result *row;
    __global const cplx *twiddles;
    __global const float *weights;
    float floor_db;
} sink;

#if !COMPLEX_OUT
// Bin number first + step.
INLINE void store_power(const sink to, const int first, const int step, float power) {
#if WEIGHTED
    power *= (to.weights + first)[step];
#endif
#if DECIBELS
    power = decibels(power, to.floor_db);
#endif
    (to.row + first)[step] = power;
}
#endif

#if LINE_PAIRS
// Bins k = first + step and ALL_BINS - k: twice the values of the spectrum, which the window makes
// up for. Bins 0 and ALL_BINS have no twin to count for.
INLINE void store_pair(const sink to, const int first, const int step, const cplx w, const cplx a,
                       const cplx b, const bool may_be_first) {
    const cplx even = {a.re + b.re, a.im - b.im};
    const cplx odd = {a.im + b.im, b.re - a.re};
    cplx sum, difference;
    pair_butterfly(&sum, &difference, even, odd, w);
#if COMPLEX_OUT
    (to.row + first)[step] = sum;
    (to.row + (ALL_BINS - first))[-step] = (cplx){difference.re, -difference.im};
#else
    const float twin = may_be_first && first + step == 0 ? 0.5f : 1.0f;
    store_power(to, first, step, twin * squared_magnitude(sum));
    store_power(to, ALL_BINS - first, -step, twin * squared_magnitude(difference));
#endif
}
#else
// Bins in ascending order of frequency, the negative ones first.
INLINE void store_bin(const sink to, const int k, const cplx a) {
    const int bin = k < BINS - BINS / 2 ? k + BINS / 2 : k - (BINS - BINS / 2);
#if COMPLEX_OUT
    to.row[bin] = a;
#else
    store_power(to, bin, 0, squared_magnitude(a));
#endif
}
#endif

#include "fft_local_pairs.clh"

__kernel __attribute__((reqd_work_group_size(ITEMS * LINES, 1, 1))) void
finish_frames(__global result *out, __global const cplx *restrict lines,
              __global const cplx *restrict twiddles, __global const cplx *restrict pair_twiddles,
              __global const float *restrict weights, const ulong first, const ulong row_pitch,
              const ulong channel_pitch, const uint n_lines, const uint channels, const uint inner,
              const uint middle_step, const uint inner_step, const float floor_db) {
    __local exchanged tiles[TILES];
    buffers tile = {tiles + TILE_START, tiles + LAST_TILE_START};
    const int t = ITEM();
    const ulong group = get_group_id(0) * (ulong)LINES;
    const uint per_line = N_COLUMNS / HELD_LINES;
    const uint source = (group + LINE()) / per_line, first_pair = (group + LINE()) % per_line;
    const uint line = (group + LAST_LINE()) / per_line, pair = (group + LAST_LINE()) % per_line;
    const uint frame = line / channels, channel = line - frame * channels;
    lines += source * (ulong)(N * N_COLUMNS);

    cplx v[VALUES];
#pragma unroll
    for (int held = 0; held < HELD_LINES; held++) {
        const uint column = LINE_PAIRS ? pair_line(first_pair, held) : first_pair;
        load_line(v + held * HELD_VALUES(RADIX_1),
                  lines + column / inner * middle_step + column % inner * inner_step, 1, t,
                  source < n_lines);
    }
    transform(v, &tile, twiddles, t, MIRRORED_AS(pair));
    const sink to = {out + first + frame * row_pitch + channel * channel_pitch, pair_twiddles,
                     weights, floor_db};
#if LINE_PAIRS
    store_bins(to, v, &tile, LAST_ITEM(), line < n_lines, pair);
#else
#pragma unroll
    for (int b = 0; b < BUTTERFLIES(RADIX_LAST); b++) {
        const int j = LAST_ITEM() + b * ITEMS;
        if (line < n_lines && (IS_WHOLE(RADIX_LAST) || j < N / RADIX_LAST)) {
#pragma unroll
            for (int r = 0; r < RADIX_LAST; r++)
                store_bin(to, pair + (j + r * (N / RADIX_LAST)) * N_COLUMNS, v[b * RADIX_LAST + r]);
        }
    }
#endif
}
