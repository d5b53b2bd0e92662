// fft_local.cl - transforms of many lines, each held in the registers of a few work-items, which
// exchange their values through local memory.
//
// Defines : N (length of the complex transform), N_PASSES (1 to 6), RADIX_1 to RADIX_6 (as dft.clh
//           has them; their product is N, those past N_PASSES are 1) and RADIX_LAST (of the last
//           pass), ITEMS (work-items a line), LINES (lines a work-group), VALUES (complex values an
//           item holds: the most that a pass needs), REAL_IN (1, R2C: 2 N reals to N + 1 bins),
//           REAL_OUT (1, C2R: back; both 0: C2C), INVERSE (1: the exponent's sign is plus, as of
//           C2R), SPLIT_EXCHANGE (1: real, then imaginary parts through the same local memory; 0:
//           both at once, twice the memory, half the barriers), SECTIONS (2: C2C, even radices:
//           each part in two halves, for half the memory again), PAIRED_TWIDDLES (1: a pass of
//           radix R loads log2 R factors and multiplies the others, 0: it loads all), MIRRORED (1:
//           R2C's last or C2R's first pass has two butterflies an item, which hold pairs of bins),
//           LOCAL_PAD (a gap of one value after so many, 0 for none), LINES_FIRST (1: neighbouring
//           items work on neighbouring lines), RANKS (1: lines are numbered by outer alone, 2: by
//           outer and inner, 3: by outer, middle and inner), IN_UNIT and OUT_UNIT (1: a line's
//           values are neighbours), IN_SLICE and OUT_SLICE (1: that side holds the lines of one
//           launch alone), TWIDDLE_LOW (0, or: result k of a line is multiplied by root k * inner
//           of a longer transform; entries of the first of its two tables).
// In      : source    lines of N cplx; R2C: of 2 N real; C2R: of N + 1 cplx.
//           twiddles  [N - 1] cplx [1], see pass_twiddles in spectrod/fft/twiddles.py.
//           outer_twiddles  R2C, C2R: [N / 2 + 1] cplx [1], see real_twiddles; TWIDDLE_LOW: see
//                     twiddle_tables, of TWIDDLE_LOW entries and the others.
// Out     : out       lines of N cplx; R2C: of N + 1 cplx; C2R: of 2 N real. May be the source.
// Scalars : *_first [values], *_steps = distances [values] of outer, middle, inner and of a line's
//           values; n_lines, middle, inner: counts, the line being (outer * middle + m) * inner +
//           i; scale [1], R2C: half of it.
// NDRange : global (ITEMS * LINES * ceil(n_lines / LINES)), local (ITEMS * LINES).
// Bounds  : lines past the last load zeros and store nothing; no item leaves before a barrier. All
//           of a line is loaded before any of it is stored.
// Source  : Stockham passes as Govindaraju et al. 2008; two passes for long transforms, Bailey
//           1990; even-length real transforms, Sorensen et al. 1987.
// Error   : relative L2 against float64: see README.md.

#include "dft.clh"

#define MIRRORS_FIRST (MIRRORED && REAL_OUT)
#define MIRRORS_LAST  (MIRRORED && REAL_IN)
#define STORES_PAIRS  REAL_IN
#define TILE_BUFFERS  1

// ---- Between global memory and registers --------------------------------------------------------

#if IN_UNIT
#define IN_STEP 1
#else
#define IN_STEP in_step
#endif
#if OUT_UNIT
#define OUT_STEP 1
#else
#define OUT_STEP out_step
#endif

// An inverse transform is a forward one of exchanged parts, its result exchanged again.
#if REAL_IN
typedef scalar in_value;
INLINE cplx load(__global const scalar *line, const ulong in_step, const int i) {
    return (cplx){line[2 * i * IN_STEP], line[(2 * i + 1) * IN_STEP]};
}
#else
typedef cplx in_value;
INLINE cplx load(__global const cplx *line, const ulong in_step, const int i) {
    const scalar re = line[i * IN_STEP].re, im = line[i * IN_STEP].im;
    return INVERSE ? (cplx){im, re} : (cplx){re, im};
}
#endif

#if REAL_OUT
typedef scalar out_value;
INLINE void store(__global scalar *line, const ulong out_step, const int i, const cplx a) {
    line[2 * i * OUT_STEP] = a.im;
    line[(2 * i + 1) * OUT_STEP] = a.re;
}
#else
typedef cplx out_value;
INLINE void store(__global cplx *line, const ulong out_step, const int i, const cplx a) {
    line[i * OUT_STEP].re = INVERSE ? a.im : a.re;
    line[i * OUT_STEP].im = INVERSE ? a.re : a.im;
}
#endif

#if REAL_IN
// Where the bins of a real line go.
typedef struct {
    __global cplx *line;
    ulong out_step;
    __global const cplx *outer_twiddles;
    scalar scale;
} sink;

// Bins k and N - k of a real line, from values k and N - k of the complex one.
INLINE void store_pair(const sink to, const int k, const cplx a, const cplx b,
                       const bool may_be_first) {
    const cplx even = {a.re + b.re, a.im - b.im};
    const cplx odd = cmul(to.outer_twiddles[k], (cplx){a.im + b.im, b.re - a.re});
    const cplx sum = cscale(cadd(even, odd), to.scale);
    const cplx difference = cscale(csub(even, odd), to.scale);
    store(to.line, to.out_step, k, sum);
    store(to.line, to.out_step, N - k, (cplx){difference.re, -difference.im});
}
#endif

#include "fft_local_passes.clh"

// ---- Lines ------------------------------------------------------------------------------------

INLINE void load_line(cplx *v, __global const in_value *line, const ulong in_step, const int t,
                      const bool exists) {
#pragma unroll
    for (int b = 0; b < BUTTERFLIES(RADIX_1); b++) {
        const int j = t + b * ITEMS;
        const bool is_mine = exists && (IS_WHOLE(RADIX_1) || j < N / RADIX_1);
#pragma unroll
        for (int r = 0; r < RADIX_1; r++)
            v[b * RADIX_1 + r] =
                is_mine ? load(line, in_step, j + r * (N / RADIX_1)) : (cplx){0, 0};
    }
}

#if TWIDDLE_LOW > 0
// Root number k from two short tables: one long one would not stay in a cache.
INLINE cplx root(__global const cplx *outer_twiddles, const uint k) {
    return cmul(outer_twiddles[k % TWIDDLE_LOW], outer_twiddles[TWIDDLE_LOW + k / TWIDDLE_LOW]);
}

// Multiply result k = j + r N / R by root k * inner: one root for j, R - 1 for the r.
INLINE void apply_outer_twiddles(cplx *v, __global const cplx *outer_twiddles, const uint j,
                                 const uint inner_index, const int radix) {
    const cplx first = root(outer_twiddles, j * inner_index);
    const uint step = inner_index * (N / radix);
    cplx w[32];
    v[0] = cmul(v[0], first);
#pragma unroll
    for (int r = 1; r < radix; r++) {
        int high = 1;
#pragma unroll
        for (int power = 2; power <= 16; power *= 2)
            high = power <= r ? power : high;
        w[r] = r == high ? root(outer_twiddles, r * step) : cmul(w[high], w[r - high]);
        v[r] = cmul(v[r], cmul(first, w[r]));
    }
}
#endif

INLINE void store_line(__global out_value *line, const ulong out_step, const cplx *v,
                       __global const cplx *outer_twiddles, const int t, const uint inner_index,
                       const scalar scale, const int radix) {
#pragma unroll
    for (int b = 0; b < BUTTERFLIES(radix); b++) {
        const int j = t + b * ITEMS;
        if (IS_WHOLE(radix) || j < N / radix) {
#if TWIDDLE_LOW > 0
            apply_outer_twiddles(v + b * radix, outer_twiddles, j, inner_index, radix);
#endif
#pragma unroll
            for (int r = 0; r < radix; r++) {
                const int k = j + r * (N / radix);
                const cplx a = cscale(v[b * radix + r], scale);
                store(line, out_step, k, a);
            }
        }
    }
}

// ---- Half spectra to real lines -----------------------------------------------------------------

#if REAL_OUT
// Values k and N - k of the complex line, from the bins; exchanged parts, for the inverse.
INLINE void join_pair(cplx *low, cplx *high, const cplx a, const cplx b, const cplx w) {
    const cplx even = {a.re + b.re, a.im - b.im};
    const cplx odd = cmul((cplx){w.im, w.re}, (cplx){a.re - b.re, a.im + b.im});
    const cplx sum = cadd(even, odd), difference = csub(even, odd);
    *low = (cplx){sum.im, sum.re};
    *high = (cplx){-difference.im, difference.re};
}

INLINE void load_pair(cplx *low, cplx *high, __global const cplx *line, const ulong in_step,
                      const int k, __global const cplx *outer_twiddles, const bool exists) {
    const cplx nothing = {0, 0};
    cplx a = exists ? line[k * IN_STEP] : nothing, b = exists ? line[(N - k) * IN_STEP] : nothing;
    if (k == 0)
        a.im = b.im = 0; // a real signal has nothing there
    join_pair(low, high, a, b, outer_twiddles[k]);
}

#if MIRRORED
INLINE void load_bins(cplx *v, __global const cplx *line, const ulong in_step,
                      __global const cplx *outer_twiddles, const int t, const bool exists,
                      const int radix) {
    const int step = N / radix, s = butterfly(t, 1, radix, true);
    cplx first[16], second[16], middle, same;
#pragma unroll
    for (int r = 0; r < radix / 2; r++) {
        load_pair(v + r, first + r, line, in_step, t + r * step, outer_twiddles, exists);
        load_pair(v + radix + r, second + r, line, in_step, s + r * step, outer_twiddles, exists);
    }
    load_pair(&middle, &same, line, in_step, N / 2, outer_twiddles, exists && t == 0);
#pragma unroll
    for (int r = 0; r < radix / 2; r++) {
        v[2 * radix - 1 - r] = t == 0 ? second[r] : first[r];
        v[radix - 1 - r] = t != 0 ? second[r] : r + 1 < radix / 2 ? first[(r + 1) % 16] : middle;
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
                      const ulong in_step, __global const cplx *outer_twiddles, const int t,
                      const bool exists) {
    cplx low[ITEM_PAIRS], high[ITEM_PAIRS];
#pragma unroll
    for (int p = 0; p < ITEM_PAIRS; p++) {
        if (IS_PAIR(t, p))
            load_pair(low + p, high + p, line, in_step, t + p * ITEMS, outer_twiddles, exists);
    }
#if SPLIT_EXCHANGE
    put_pairs(tile, low, high, t, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    get(v, tile, t, RADIX_1, false, 0, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    put_pairs(tile, low, high, t, 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    get(v, tile, t, RADIX_1, false, 1, 0);
#else
    put_pairs(tile, low, high, t);
    barrier(CLK_LOCAL_MEM_FENCE);
    get_whole(v, tile, t, RADIX_1, false);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
}
#endif
#endif

// ---- The kernel ---------------------------------------------------------------------------------

__kernel __attribute__((reqd_work_group_size(ITEMS * LINES, 1, 1))) void
fft_local(__global out_value *out, __global const in_value *source,
          __global const cplx *restrict twiddles, __global const cplx *restrict outer_twiddles,
          const ulong out_first, const ulong4 out_steps, const ulong in_first,
          const ulong4 in_steps, const uint slice_lines, const uint outer, const uint middle,
          const uint inner, const scalar scale) {
    __local exchanged tiles[TILES];
    buffers tile = {tiles + TILE_START, 0};
    const int t = ITEM();
    const uint line = get_group_id(0) * LINES + LINE();
#if RANKS == 1
    const ulong4 index = (ulong4)(line, 0, 0, 0);
#elif RANKS == 2
    const ulong4 index = (ulong4)(line / inner, 0, line % inner, 0);
#else
    const uint rest = line / inner;
    const ulong4 index = (ulong4)(rest / middle, rest % middle, line % inner, 0);
#endif
    const ulong4 whole = index + (ulong4)(get_global_offset(0), 0, 0, 0);
    const ulong4 from = (IN_SLICE ? index : whole) * in_steps;
    const ulong4 to = (OUT_SLICE ? index : whole) * out_steps;
    const bool exists = line < slice_lines && whole.x < outer;
    source += in_first + from.x + from.y + from.z;
    out += out_first + to.x + to.y + to.z;

    cplx v[VALUES];
#if REAL_OUT && MIRRORED
    load_bins(v, source, in_steps.w, outer_twiddles, t, exists, RADIX_1);
#elif REAL_OUT
    load_bins(v, tile.now, source, in_steps.w, outer_twiddles, t, exists);
#else
    load_line(v, source, in_steps.w, t, exists);
#endif
    transform(v, &tile, twiddles, t);
#if REAL_IN
    store_bins((sink){out, out_steps.w, outer_twiddles, scale}, v, &tile, t, exists);
#else
    if (exists)
        store_line(out, out_steps.w, v, outer_twiddles, t, index.z, scale, RADIX_LAST);
#endif
}
