// fft_local.cl - transforms of many lines, each held in the registers of a few work-items, which
// exchange their values through local memory.
//
// Defines : N (length of the complex transform), N_PASSES (1 to 6), RADIX_1 to RADIX_6 (as dft.clh
//           has them; their product is N, those past N_PASSES are 1) and RADIX_LAST (of the last
//           pass), ITEMS (work-items a line), LINES (lines a work-group), VALUES (complex values an
//           item holds: the most that a pass needs), REAL_IN (1, R2C: 2 N reals to N + 1 bins),
//           REAL_OUT (1, C2R: back; both 0: C2C), LINE_PAIRS (0, or, of R2C and C2R, MIRRORED: so
//           many lines of N cplx make half a real line of 2 N LINE_PAIRS; this is the last pass of
//           R2C, which stores bins, or the first one of C2R, which loads them), INVERSE (1: the
//           exponent's sign is plus, as of C2R), SPLIT_EXCHANGE (1: real, then imaginary parts
//           through the same local memory; 0: both at once, twice the memory, half the barriers),
//           SECTIONS (2: C2C, even radices: each part in two halves, for half the memory again),
//           PAIRED_TWIDDLES (1: a pass of radix R loads log2 R factors and multiplies the others,
//           0: it loads all), FUSED (1: radices that are powers of two as in dft_fused.clh, 0: as in
//           dft.clh), MIRRORED (1: R2C's last or C2R's first pass has two butterflies an
//           item, which hold pairs of bins), LOCAL_PAD (a gap of one value after so many, 0 for
//           none), LINES_FIRST (1: neighbouring items work on neighbouring lines), LINES_LAST (1:
//           in the last pass only, of at least two), RANKS (1: lines
//           are numbered by outer alone, 2: by outer and inner, 3: by outer, middle and inner),
//           IN_UNIT and OUT_UNIT (1: a line's values are neighbours), IN_SLICE and OUT_SLICE (1:
//           that side holds the lines of one launch alone), ALIGNED (1: the reals of a line are
//           neighbours and start at an even place: they are loaded or stored, and counted, as cplx),
//           N_COLUMNS (0, or: the lines are so
//           many columns of a longer transform, inner says which, and result k of column c is
//           multiplied by root k c of order N N_COLUMNS).
// In      : source    lines of N cplx; R2C: of 2 N real; C2R: of N + 1 cplx.
//           twiddles  [N - 1] cplx [1], see pass_twiddles in spectrod/fft/twiddles.py.
//           pair_twiddles    R2C, C2R: [N / 2 + 1] cplx [1], see real_twiddles; with LINE_PAIRS see
//                     twiddle_tables, of the order of the real line and LINE_PAIRS entries first.
//           column_twiddles  N_COLUMNS: cplx [1], see twiddles.py.
// Out     : out       lines of N cplx; R2C: of N + 1 cplx; C2R: of 2 N real. May be the source.
// Scalars : *_first [values], *_steps = distances [values] of outer, middle, inner and of a line's
//           values; n_lines, middle, inner: counts, the line being (outer * middle + m) * inner +
//           i, or with LINE_PAIRS pair of lines p = 0 to LINE_PAIRS / 2 - 1 of outer, which is
//           lines p and LINE_PAIRS - p (p = 0: LINE_PAIRS / 2); scale [1], R2C: half of it.
// NDRange : global (ITEMS * LINES * ceil(n_lines / LINES)), local (ITEMS * LINES).
// Bounds  : lines past the last load zeros and store nothing; no item leaves before a barrier. All
//           of a line is loaded before any of it is stored.
// Source  : Stockham passes as Govindaraju et al. 2008; two passes for long transforms, Bailey
//           1990; even-length real transforms, Sorensen et al. 1987.
// Error   : relative L2 against float64: see README.md.

#include "dft.clh"
#include "dft_fused.clh"

#define MIRRORS_FIRST (MIRRORED && REAL_OUT)
#define MIRRORS_LAST  (MIRRORED && REAL_IN)
#define STORES_PAIRS  REAL_IN
#define TILE_BUFFERS  1
#define LOADS_REALS   (REAL_IN && !LINE_PAIRS && !ALIGNED)
#define STORES_REALS  (REAL_OUT && !LINE_PAIRS && !ALIGNED)

// clang-format off: each needs those before it
#include "fft_local_passes.clh"
#include "fft_local_lines.clh"
// clang-format on

#if REAL_IN
// Where the bins of a real line go.
typedef struct {
    __global cplx *line;
    ulong out_step;
    __global const cplx *twiddles;
    scalar scale;
} sink;

// Bins k = first + step and ALL_BINS - k of a real line, from those values of the complex one.
INLINE void store_pair(const sink to, const int first, const int step, const cplx w, const cplx a,
                       const cplx b, const bool may_be_first) {
    const ulong out_step = to.out_step;
    const cplx even = {a.re + b.re, a.im - b.im};
    const cplx odd = {a.im + b.im, b.re - a.re};
    cplx sum, difference;
    pair_butterfly(&sum, &difference, even, odd, w);
    __global cplx *low = to.line + first * OUT_STEP,
                  *high = to.line + (ALL_BINS - first) * OUT_STEP;
    store(low + step * OUT_STEP, OUT_STEP, cscale(sum, to.scale));
    store(high - step * OUT_STEP, OUT_STEP,
          cscale((cplx){difference.re, -difference.im}, to.scale));
}
#endif

#include "fft_local_pairs.clh"

// ---- Half spectra to real lines -----------------------------------------------------------------

#if REAL_OUT
// Values k and N - k of the complex line, from the bins; exchanged parts, for the inverse.
INLINE void join_pair(cplx *low, cplx *high, const cplx a, const cplx b, const cplx w) {
    const cplx even = {a.re + b.re, a.im - b.im};
    const cplx odd = {a.re - b.re, a.im + b.im};
    cplx sum, difference;
    pair_butterfly(&sum, &difference, even, odd, (cplx){w.im, w.re});
    *low = (cplx){sum.im, sum.re};
    *high = (cplx){-difference.im, difference.re};
}

INLINE void load_pair(cplx *low, cplx *high, __global const cplx *line, const ulong in_step,
                      const int first, const int step, const cplx w, const bool exists) {
    const cplx nothing = {0, 0};
    cplx a = exists ? (line + first * IN_STEP)[step * IN_STEP] : nothing;
    cplx b = exists ? (line + (ALL_BINS - first) * IN_STEP - step * IN_STEP)[0] : nothing;
    if (first + step == 0)
        a.im = b.im = 0; // a real signal has nothing there
    join_pair(low, high, a, b, w);
}

#if MIRRORED
// As `store_bins` of fft_local_pairs.clh.
INLINE void load_bins(cplx *v, __global const cplx *bins, const ulong in_step,
                      __global const cplx *twiddles, const int t, const bool exists,
                      const int pair) {
    const int radix = RADIX_1, step = N / radix, mirrored = MIRRORED_AS(pair);
    const int line = pair_line(pair, held_line(t, 0, radix, mirrored));
    const int other = pair_line(pair, held_line(t, 1, radix, mirrored));
    const int j = butterfly(t, 0, radix, mirrored), s = butterfly(t, 1, radix, mirrored);
    const bool are_own = t == 0 && mirrored != BETWEEN_LINES;
    cplx first[16], second[16], middle, same;
#pragma unroll
    for (int r = 0; r < radix / 2; r++) {
        load_pair(v + r, first + r, bins, in_step, line + j * BIN_STEP, r * step * BIN_STEP,
                  pair_twiddle(twiddles, line, j, r * step), exists);
        load_pair(v + radix + r, second + r, bins, in_step, other + s * BIN_STEP,
                  r * step * BIN_STEP, pair_twiddle(twiddles, other, s, r * step), exists);
    }
    load_pair(&middle, &same, bins, in_step, 0, ALL_BINS / 2, pair_twiddle(twiddles, 0, 0, N / 2),
              exists && are_own);
#pragma unroll
    for (int r = 0; r < radix / 2; r++) {
        v[2 * radix - 1 - r] = are_own ? second[r] : first[r];
        v[radix - 1 - r] = !are_own ? second[r] : r + 1 < radix / 2 ? first[(r + 1) % 16] : middle;
    }
}
#else
#if SPLIT_EXCHANGE
INLINE void put_pairs(__local scalar *tile, const cplx *low, const cplx *high, const int t,
                      const int part) {
#pragma unroll
    for (int p = 0; p < ITEM_PAIRS; p++) {
        if (IS_PAIR(t, p)) {
            if (p > 0 || t > 0)
                tile[high_place(t, p)] = part ? high[p].im : high[p].re;
            tile[LOW_PLACE(t, p)] = part ? low[p].im : low[p].re;
        }
    }
}
#else
INLINE void put_pairs(__local cplx *tile, const cplx *low, const cplx *high, const int t) {
#pragma unroll
    for (int p = 0; p < ITEM_PAIRS; p++) {
        if (IS_PAIR(t, p)) {
            if (p > 0 || t > 0)
                tile[high_place(t, p)] = high[p];
            tile[LOW_PLACE(t, p)] = low[p];
        }
    }
}
#endif

INLINE void load_bins(cplx *v, __local exchanged *tile, __global const cplx *line,
                      const ulong in_step, __global const cplx *pair_twiddles, const int t,
                      const bool exists) {
    cplx low[ITEM_PAIRS], high[ITEM_PAIRS];
#pragma unroll
    for (int p = 0; p < ITEM_PAIRS; p++) {
        if (IS_PAIR(t, p))
            load_pair(low + p, high + p, line, in_step, t, p * ITEMS,
                      pair_twiddle(pair_twiddles, 0, t, p * ITEMS), exists);
    }
#if SPLIT_EXCHANGE
    put_pairs(tile, low, high, t, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    get(v, tile, t, RADIX_1, NOT_MIRRORED, 0, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    put_pairs(tile, low, high, t, 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    get(v, tile, t, RADIX_1, NOT_MIRRORED, 1, 0);
#else
    put_pairs(tile, low, high, t);
    barrier(CLK_LOCAL_MEM_FENCE);
    get_whole(v, tile, t, RADIX_1, NOT_MIRRORED);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
}
#endif
#endif

// ---- The kernel ---------------------------------------------------------------------------------

// Where a line is: outer, middle and inner, or with LINE_PAIRS outer and the number of the pair.
typedef struct {
    ulong4 index;
    int pair;
} position;

INLINE position find_line(const uint line, const uint middle, const uint inner) {
#if LINE_PAIRS
    return (position){(ulong4)(line / (LINE_PAIRS / 2), 0, 0, 0), line % (LINE_PAIRS / 2)};
#elif RANKS == 1
    return (position){(ulong4)(line, 0, 0, 0), 0};
#elif RANKS == 2
    return (position){(ulong4)(line / inner, 0, line % inner, 0), 0};
#else
    const uint rest = line / inner;
    return (position){(ulong4)(rest / middle, rest % middle, line % inner, 0), 0};
#endif
}

__kernel __attribute__((reqd_work_group_size(ITEMS * LINES, 1, 1))) void
fft_local(__global out_value *out, __global const in_value *source,
          __global const cplx *restrict twiddles, __global const cplx *restrict pair_twiddles,
          __global const cplx *restrict column_twiddles, const ulong out_first,
          const ulong4 out_steps, const ulong in_first, const ulong4 in_steps,
          const uint slice_lines, const uint outer, const uint middle, const uint inner,
          const scalar scale) {
    __local exchanged tiles[TILES];
    buffers tile = {tiles + TILE_START, tiles + LAST_TILE_START};
    const int t = ITEM();
    const uint group = get_group_id(0) * LINES;
    const position in = find_line(group + LINE(), middle, inner);
    const position to = find_line(group + LAST_LINE(), middle, inner);
    const ulong offset = get_global_offset(0);
    const ulong4 from = (in.index + (ulong4)(IN_SLICE ? 0 : offset, 0, 0, 0)) * in_steps;
    const ulong4 into = (to.index + (ulong4)(OUT_SLICE ? 0 : offset, 0, 0, 0)) * out_steps;
    const bool exists = group + LINE() < slice_lines && in.index.x + offset < outer;
    const bool is_wanted = group + LAST_LINE() < slice_lines && to.index.x + offset < outer;
    source += in_first + from.x + from.y + from.z;
    out += out_first + into.x + into.y + into.z;

    cplx v[VALUES];
#if REAL_OUT && MIRRORED
    load_bins(v, source, in_steps.w, pair_twiddles, t, exists, in.pair);
#elif REAL_OUT
    load_bins(v, tile.now, source, in_steps.w, pair_twiddles, t, exists);
#else
#pragma unroll
    for (int held = 0; held < HELD_LINES; held++) {
        const uint l = pair_line(in.pair, held);
        const ulong first = LINE_PAIRS ? l / inner * in_steps.y + l % inner * in_steps.z : 0;
        load_line(v + held * HELD_VALUES(RADIX_1), source + first, in_steps.w, t, exists);
    }
#endif
    transform(v, &tile, twiddles, t, MIRRORED_AS(to.pair));
#if REAL_IN
    store_bins((sink){out, out_steps.w, pair_twiddles, scale}, v, &tile, LAST_ITEM(), is_wanted,
               to.pair);
#else
#pragma unroll
    for (int held = 0; held < HELD_LINES; held++) {
        const uint l = LINE_PAIRS ? pair_line(to.pair, held) : to.index.z;
        const ulong first = LINE_PAIRS ? l * out_steps.z : 0;
        if (is_wanted)
            store_line(out + first, out_steps.w, v + held * HELD_VALUES(RADIX_LAST),
                       column_twiddles, LAST_ITEM(), l, scale, RADIX_LAST);
    }
#endif
}
