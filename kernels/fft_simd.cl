// fft_simd.cl - Fourier transforms of lines with vectors for registers, for CPUs: no local memory,
// no barrier; a work-item computes whole lines, one after the other, in memory of its own.
//
// Defines : N (complex values of a line; of a real one every two values count as a complex one),
//           LANES (of a vector: 2, 4, 8 or 16), COLUMNS (1: the lanes are columns of one line, see
//           fft_simd_columns.clh; 0: they are lines, see fft_simd_lines.clh), REAL_IN, REAL_OUT and
//           INVERSE (0 or 1), SCRATCH (1: `scratch` is used, 0: private memory), N_PASSES, RADIX_1
//           to RADIX_6 and RADIX_LAST as in fft_local.cl (2 to 16, or 1 alone; their product is
//           ROWS = N, or N / LANES where the lanes are columns). DOUBLE as in common.clh.
// In      : source    lines of N complex values, of 2 N real ones (REAL_IN), or of N + 1 complex
//                     ones, the half spectrum of a real line (REAL_OUT).
//           twiddles  [] cplx: of each pass in turn, at j (R - 1) + q - 1 the factor
//                     exp(-2 pi i j q / span), j < span / R, q = 1 to R - 1, where R is the pass's
//                     radix and span is ROWS over the product of the radices before.
//           lane_twiddles, real_twiddles   as the two layouts say; else not read.
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
#include "fft_simd_passes.clh"

// ---- The two layouts, each with its kernel ------------------------------------------------------

#if COLUMNS
#include "fft_simd_columns.clh"
#else
#include "fft_simd_lines.clh"
#endif
