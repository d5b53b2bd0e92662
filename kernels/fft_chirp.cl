// fft_chirp.cl - a transform of any length n as a convolution with a chirp, of a longer length m.
//
// j k = (j^2 + k^2 - (k - j)^2) / 2, so that the transform is: times the chirp, convolved with its
// conjugate, times the chirp. The convolution is two transforms of length m >= 2 n - 1 and a
// product; conjugation on the way out of the product and into the chirp makes the second one an
// inverse.
//
// Defines : DOUBLE.
// In      : chirp [n] cplx, exp(-+ pi i j^2 / n); spectrum [m] cplx, that of the conjugate chirp
//           around zero, over m.
// Out     : multiply_pad     work [lines][m], zeros from n on; in [lines][n] cplx.
//           multiply_spectrum  work [lines][m], in place.
//           multiply_crop    out [lines][n] cplx from work [lines][m].
//           Line l of in and out starts at value first + l * pitch.
// Scalars : lines, n, m, scale.
// NDRange : global (64 * any, any), local (64, 1): dimension 0 runs along a line, 1 along lines.
// Bounds  : nothing outside the lines is touched. work and in or out must not overlap.
// Source  : Bluestein 1970; Rabiner, Schafer and Rader 1969.
// Error   : with the transforms, less than 2.5 times that of one of length n; docs/fft.md.

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
multiply_pad(__global cplx *restrict work, __global const cplx *restrict in, const ulong in_first,
             const ulong in_pitch, __global const cplx *restrict chirp, const ulong lines,
             const ulong n, const ulong m) {
    for (size_t l = get_global_id(1); l < lines; l += get_global_size(1)) {
        __global const cplx *x = in + in_first + l * in_pitch;
        for (size_t j = get_global_id(0); j < m; j += get_global_size(0))
            work[l * m + j] = j < n ? cmul(x[j], chirp[j]) : (cplx){0, 0};
    }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
multiply_spectrum(__global cplx *restrict work, __global const cplx *restrict spectrum,
                  const ulong lines, const ulong m) {
    for (size_t l = get_global_id(1); l < lines; l += get_global_size(1))
        for (size_t k = get_global_id(0); k < m; k += get_global_size(0)) {
            const cplx product = cmul(work[l * m + k], spectrum[k]);
            work[l * m + k] = (cplx){product.re, -product.im};
        }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
multiply_crop(__global cplx *restrict out, const ulong out_first, const ulong out_pitch,
              __global const cplx *restrict work, __global const cplx *restrict chirp,
              const ulong lines, const ulong n, const ulong m, const real scale) {
    for (size_t l = get_global_id(1); l < lines; l += get_global_size(1)) {
        __global cplx *x = out + out_first + l * out_pitch;
        for (size_t k = get_global_id(0); k < n; k += get_global_size(0)) {
            const cplx y = work[l * m + k];
            x[k] = cscale(cmul((cplx){y.re, -y.im}, chirp[k]), scale);
        }
    }
}
