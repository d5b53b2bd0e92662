// fft_real.cl - between the half spectrum of n real values and the spectrum of n / 2 complex ones.
//
// n real values, taken in pairs for complex ones, are transformed at half the length; the spectra
// of the even and of the odd values come apart by symmetry.
//
// Defines : DOUBLE.
// In      : in  [lines][n_half] cplx (split_spectrum) or [lines][n_half + 1] (join_spectrum) with
//           n_half = n / 2; line l from value in_first + l * in_pitch on.
//           twiddles [n_half / 2 + 1] cplx, exp(-2 pi i k / n).
// Out     : out [lines][n_half + 1] (split) or [lines][n_half] (join), likewise.
// Scalars : lines, n_half.
// NDRange : global (64 * any, any), local (64, 1): dimension 0 runs over the pairs of bins k and
//           n_half - k, 1 over lines.
// Bounds  : out may be in, at the same places: who reads a pair writes it. Nothing outside the
//           lines is touched.
// Source  : Sorensen et al. 1987.   Error: with the transform, that of one pass more.

// E and O are the spectra of the even and the odd values; X[k] = E[k] + exp(-2 pi i k / n) O[k].
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
split_spectrum(__global cplx *out, const ulong out_first, const ulong out_pitch,
               __global const cplx *in, const ulong in_first, const ulong in_pitch,
               __global const cplx *restrict twiddles, const ulong lines, const ulong n_half) {
    const real h = CONSTANT(0.5);
    for (size_t l = get_global_id(1); l < lines; l += get_global_size(1)) {
        __global const cplx *z = in + in_first + l * in_pitch;
        __global cplx *x = out + out_first + l * out_pitch;
        for (size_t k = get_global_id(0); k <= n_half / 2; k += get_global_size(0)) {
            const cplx a = z[k], b = z[k == 0 ? 0 : n_half - k];
            const cplx even = {h * (a.re + b.re), h * (a.im - b.im)};
            const cplx odd = {h * (a.im + b.im), h * (b.re - a.re)};
            const cplx product = cmul(twiddles[k], odd);
            x[k] = cadd(even, product);
            x[n_half - k] = (cplx){even.re - product.re, product.im - even.im};
        }
    }
}

// Z[k] = E[k] + i O[k], of which the inverse transform has the even values for its real parts and
// the odd ones for its imaginary parts, both twice: as an unscaled inverse of length n has them.
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
join_spectrum(__global cplx *out, const ulong out_first, const ulong out_pitch,
              __global const cplx *in, const ulong in_first, const ulong in_pitch,
              __global const cplx *restrict twiddles, const ulong lines, const ulong n_half) {
    for (size_t l = get_global_id(1); l < lines; l += get_global_size(1)) {
        __global const cplx *x = in + in_first + l * in_pitch;
        __global cplx *z = out + out_first + l * out_pitch;
        for (size_t k = get_global_id(0); k <= n_half / 2; k += get_global_size(0)) {
            cplx a = x[k], b = x[n_half - k];
            if (k == 0)
                a.im = b.im = 0;
            const cplx even = {a.re + b.re, a.im - b.im};
            const cplx w = {twiddles[k].re, -twiddles[k].im};
            const cplx odd = cmul(w, (cplx){a.re - b.re, a.im + b.im});
            z[k] = (cplx){even.re - odd.im, even.im + odd.re};
            if (k != 0)
                z[n_half - k] = (cplx){even.re + odd.im, odd.re - even.im};
        }
    }
}
