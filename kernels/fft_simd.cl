// fft_simd.cl - Fourier transforms of lines with vectors for registers, for CPUs: no local memory,
// no barrier; a work-item computes whole lines, one after the other, in memory of its own.
//
// Defines : N (complex values of a line; of a real one every two values count as a complex one),
//           LANES (of a vector: 2, 4, 8 or 16), COLUMNS (1: the lanes are columns of one line, see
//           fft_simd_columns.clh; 0: they are lines, see fft_simd_lines.clh), REAL_IN, REAL_OUT and
//           INVERSE (0 or 1), SCRATCH (1: `scratch` is used, 0: private memory), RADIX_1 to RADIX_5
//           (2 to 16, or 1 for no pass) and RADIX_LAST (2 to 16); their product is ROWS = N, or N /
//           LANES where the lanes are columns. DOUBLE as in common.clh.
// In      : source    lines of N complex values, of 2 N real ones (REAL_IN), or of N + 1 complex
//                     ones, the half spectrum of a real line (REAL_OUT).
//           turns     [] cplx: of each pass in turn, at j (R - 1) + q - 1 the factor
//                     exp(-2 pi i j q / span), j < span / R, q = 1 to R - 1, where R is the pass's
//                     radix and span is ROWS over the product of the radices before.
//           lane_turns, real_turns   as the two layouts say; else not read.
//           scratch   OWN_VALUES cplx of LANES a work-item, if SCRATCH; else not read.
// Out     : out       lines of N complex values, of N + 1 (REAL_IN) or of 2 N real ones (REAL_OUT),
//                     each multiplied by `scale`. May be the source's memory if lines lie alike.
// Scalars : lines (count), inner (lines that lie interleaved, value by value; 1 where COLUMNS), of
//           out and source the first line's place and the pitch [scalars]: line l begins at
//           first + l / inner * pitch + 2 (l % inner), its values are 2 inner scalars apart;
//           chunk (lines a work-item computes, or groups of LANES lines where not COLUMNS).
// NDRange : global (items, 1, 1) with items * chunk covering all lines, local (1, 1, 1).
// Bounds  : no work-item reads or writes outside its own lines.
// Source  : decimation in frequency, in place (Gentleman and Sande 1966); the last pass puts the
//           bins in order. Real transforms as complex ones of half the length (Sorensen 1987).
// Error   : relative L2 1.1e-7 at N = 1024 in single precision; see README.md.

#include "dft.clh"
#include "fft_simd_shuffles.clh"

#if COLUMNS
#define ROWS (N / LANES)
#else
#define ROWS N
#endif
#if RADIX_1 * RADIX_2 * RADIX_3 * RADIX_4 * RADIX_5 * RADIX_LAST != ROWS
#error "fft_simd.cl: the radices must multiply to the number of rows"
#endif

// Memory of a work-item's own: its part of `scratch`, or private arrays.
#if SCRATCH
#define OWN __global
#else
#define OWN
#endif

#define VLOAD  JOIN(vload, LANES)
#define VSTORE JOIN(vstore, LANES)

// ---- Between interleaved values in memory and a pair of vectors ---------------------------------

INLINE cplx load_values(__global const scalar *p) {
    const real a = VLOAD(0, p), b = VLOAD(1, p);
    return (cplx){EVEN(a, b), ODD(a, b)};
}

INLINE void store_values(__global scalar *p, cplx v) {
    VSTORE(ZIP_LOW(v.re, v.im), 0, p);
    VSTORE(ZIP_HIGH(v.re, v.im), 1, p);
}

// ---- Transpose of LANES vectors -----------------------------------------------------------------

#define EXCHANGE(v, d)                                                                             \
    _Pragma("unroll") for (int i = 0; i < LANES; i++) {                                            \
        if ((i & d) == 0) {                                                                        \
            const cplx a = v[i], b = v[i + d];                                                     \
            v[i] = (cplx){LOW_##d(a.re, b.re), LOW_##d(a.im, b.im)};                               \
            v[i + d] = (cplx){HIGH_##d(a.re, b.re), HIGH_##d(a.im, b.im)};                         \
        }                                                                                          \
    }

// Each exchange swaps a bit of the number of a value's vector with a bit of its lane's. Where LOW_1
// takes quarters, two vectors of every four then are in each other's place.
INLINE void transpose(cplx *v) {
    EXCHANGE(v, 1)
#if LANES > 2
    EXCHANGE(v, 2)
#endif
#if LANES == 16 || (LANES > 2 && !defined(DOUBLE))
#pragma unroll
    for (int i = 0; i < LANES; i += 4) {
        const cplx t = v[i + 1];
        v[i + 1] = v[i + 2];
        v[i + 2] = t;
    }
#endif
#if LANES > 4
    EXCHANGE(v, 4)
#endif
#if LANES > 8
    EXCHANGE(v, 8)
#endif
}

// ---- Passes over the rows -----------------------------------------------------------------------

// Loops over a radix that is a parameter count to the largest: compilers unroll before they inline.
#define RADIX_MAX 16

// One radix of every block of `span` rows, in place; returns the turns of the pass that follows.
INLINE __global const scalar *pass(OWN cplx *z, __global const scalar *turns, const int radix,
                                         const int span) {
    const int step = span / radix;
    if (radix == 1)
        return turns;
    for (int block = 0; block < ROWS; block += span) {
        for (int j = 0; j < step; j++) {
            cplx v[RADIX_MAX];
            __global const scalar *t = turns + 2 * j * (radix - 1);
#pragma unroll
            for (int r = 0; r < RADIX_MAX; r++)
                if (r < radix)
                    v[r] = z[block + j + r * step];
            dft(v, 1, radix);
            z[block + j] = v[0];
#pragma unroll
            for (int q = 1; q < RADIX_MAX; q++)
                if (q < radix)
                    z[block + j + q * step] = cmul(v[q], (cplx){t[2 * q - 2], t[2 * q - 1]});
        }
    }
    return turns + 2 * step * (radix - 1);
}

INLINE void passes(OWN cplx *z, __global const scalar *turns) {
    turns = pass(z, turns, RADIX_1, ROWS);
    turns = pass(z, turns, RADIX_2, ROWS / RADIX_1);
    turns = pass(z, turns, RADIX_3, ROWS / (RADIX_1 * RADIX_2));
    turns = pass(z, turns, RADIX_4, ROWS / (RADIX_1 * RADIX_2 * RADIX_3));
    pass(z, turns, RADIX_5, ROWS / (RADIX_1 * RADIX_2 * RADIX_3 * RADIX_4));
}

// Where the passes have left the block that the last one makes bin k and its like of: bins are
// written with the first radix as their lowest digit, places with it as their highest.
INLINE int place(int k) {
    int block = k % RADIX_1;
    k /= RADIX_1;
    block = block * RADIX_2 + k % RADIX_2;
    k /= RADIX_2;
    block = block * RADIX_3 + k % RADIX_3;
    k /= RADIX_3;
    block = block * RADIX_4 + k % RADIX_4;
    k /= RADIX_4;
    return block * RADIX_5 + k;
}

// Bins k + r ROWS / RADIX_LAST, r = 0 to RADIX_LAST - 1, for k below ROWS / RADIX_LAST.
INLINE void last_pass(cplx *v, OWN const cplx *z, const int k) {
    const int first = place(k) * RADIX_LAST;
#pragma unroll
    for (int r = 0; r < RADIX_LAST; r++)
        v[r] = z[first + r];
    dft(v, 1, RADIX_LAST);
}

// ---- Real lines ---------------------------------------------------------------------------------

// From values k and H - k of the transform Z of a real line taken for H complex values to twice
// those of its spectrum, with turn = exp(-pi i k / H); and from a spectrum to a Z, with the turn's
// negative conjugate.
INLINE void mirror(cplx *a, cplx *b, cplx turn) {
    const cplx even = {a->re + b->re, a->im - b->im};
    const cplx odd = cmul(turn, turn_back((cplx){a->re - b->re, a->im + b->im}));
    *a = cadd(even, odd);
    *b = (cplx){even.re - odd.re, odd.im - even.im};
}

// ---- The two layouts, each with its kernel ------------------------------------------------------

#if COLUMNS
#include "fft_simd_columns.clh"
#else
#include "fft_simd_lines.clh"
#endif
