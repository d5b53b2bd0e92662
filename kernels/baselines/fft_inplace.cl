// fft_inplace.cl - digit reversal and in-place stages of any radix: no memory beside the data.
//
// Defines : LENGTH (product of the stages' radices, 2 to 2^26), RADIX (of this stage, as dft.clh
//           has them), LOW (product of the first few radices), FINE (entries of the first table of
//           roots; LENGTH: there is no second), STRIDED (1: neighbouring items work on
//           neighbouring lines; 0: inner is 1), INVERSE (0 or 1), DOUBLE.
// In      : in, data  [outer][LENGTH][inner] cplx, value e of a line at first + o * pitch +
//                     e * inner + i.
//           digits    [LOW + LENGTH / LOW] uint: the digits of a place below LOW, reversed; then
//                     those of multiples of LOW. The reversed place is the sum of two entries.
//           roots     [FINE + LENGTH / FINE] cplx, exp(-2 pi i m / LENGTH), m = 0, 1, 2, ...; then
//                     m = 0, FINE, 2 FINE, ...
// Out     : out, data [outer][LENGTH][inner] cplx; out may not be the memory of in.
// Scalars : span (length of the transforms that are finished, the product of the radices before),
//           stride = LENGTH / (span * RADIX), scale (factor of what is stored), first_row and
//           n_rows (see NDRange).
// NDRange : rows along dimension 0, where STRIDED along 1, with the lines of inner along 0. A row
//           is one place of one outer index for reverse_digits, one butterfly of one for others;
//           first_row is the first of this launch.
// Bounds  : items past n_rows or inner leave. A cycle of places and a butterfly are one item's.
// Source  : decimation in time, Cooley and Tukey 1965; stages of any radix with their twiddles
//           folded in, G. Iodice 2016.
// Error   : relative L2 1.1e-7 (LENGTH 1024), 1.7e-7 (2^20), 1.9e-7 (2^24), in double 2.0e-16
//           (1024); products of two roots cost up to a tenth of it.

#include "dft.clh"

#if STRIDED
#define ROW     get_global_id(1)
#define LINE    get_global_id(0)
#define INNER   inner
#define OUTSIDE (row >= n_rows || LINE >= inner)
#else
#define ROW     get_global_id(0)
#define LINE    0
#define INNER   1
#define OUTSIDE (row >= n_rows)
#endif

// ---- Digit reversal -----------------------------------------------------------------------------

INLINE uint reversed(__global const uint *digits, const uint place) {
    return digits[place % LOW] + digits[LOW + place / LOW];
}

// The least place of a cycle stands for it: whoever starts there moves all of its values.
INLINE bool leads_cycle(__global const uint *digits, const uint place) {
    uint next = reversed(digits, place);
    const bool moves = next != place;
    while (next > place)
        next = reversed(digits, next);
    return moves && next == place;
}

__kernel void reverse_digits(__global cplx *data, const ulong first, const ulong pitch,
                             __global const uint *restrict digits, const ulong inner,
                             const ulong first_row, const ulong n_rows) {
    const ulong row = first_row + ROW;
    const uint leader = row % LENGTH;
    if (OUTSIDE || !leads_cycle(digits, leader))
        return;
    data += first + row / LENGTH * pitch + LINE;
    const cplx kept = data[leader * INNER];
    uint place = leader;
    for (uint from = reversed(digits, place); from != leader; from = reversed(digits, place)) {
        data[place * INNER] = data[from * INNER];
        place = from;
    }
    data[place * INNER] = kept;
}

// ---- Stages -------------------------------------------------------------------------------------

// An inverse transform is a forward one with its parts exchanged before and after.
INLINE void load(cplx *v, __global const cplx *in, const size_t step) {
#pragma unroll
    for (int r = 0; r < RADIX; r++) {
        v[r].re = INVERSE ? in[r * step].im : in[r * step].re;
        v[r].im = INVERSE ? in[r * step].re : in[r * step].im;
    }
}

INLINE void store(__global cplx *out, const cplx *v, const size_t step, const scalar scale) {
#pragma unroll
    for (int r = 0; r < RADIX; r++) {
        out[r * step].re = scale * (INVERSE ? v[r].im : v[r].re);
        out[r * step].im = scale * (INVERSE ? v[r].re : v[r].im);
    }
}

INLINE cplx root(__global const cplx *roots, const uint m) {
#if FINE == LENGTH
    return roots[m];
#else
    return cmul(roots[m % FINE], roots[FINE + m / FINE]);
#endif
}

// Out of place, the first stage reads in reversed order.
__kernel void first_stage(__global cplx *out, const ulong out_first, const ulong out_pitch,
                          __global const cplx *in, const ulong in_first, const ulong in_pitch,
                          __global const uint *restrict digits, const scalar scale,
                          const ulong inner, const ulong first_row, const ulong n_rows) {
    const ulong row = first_row + ROW;
    if (OUTSIDE)
        return;
    const uint count = LENGTH / RADIX, place = row % count * RADIX;
    const size_t outer = row / count, from = reversed(digits, place);
    cplx v[RADIX];
    load(v, in + in_first + outer * in_pitch + LINE + from * INNER, count * INNER);
    dft(v, 1, RADIX);
    store(out + out_first + outer * out_pitch + LINE + place * INNER, v, INNER, scale);
}

__kernel void stage(__global cplx *data, const ulong first, const ulong pitch,
                    __global const cplx *restrict roots, const uint span, const uint stride,
                    const scalar scale, const ulong inner, const ulong first_row,
                    const ulong n_rows) {
    const ulong row = first_row + ROW;
    if (OUTSIDE)
        return;
    const uint j = row % (LENGTH / RADIX), k = j % span;
    const size_t place = (size_t)(j - k) * RADIX + k;
    data += first + row / (LENGTH / RADIX) * pitch + LINE + place * INNER;
    cplx v[RADIX];
    load(v, data, span * INNER);
    if (span > 1) {
#pragma unroll
        for (uint r = 1; r < RADIX; r++)
            v[r] = cmul(v[r], root(roots, r * k * stride));
    }
    dft(v, 1, RADIX);
    store(data, v, span * INNER, scale);
}
