// image_filter.cl - multiply spectra of real images by the gain of a filter around frequency zero.
//
// Defines : EDGE (0: ideal, 1: Gaussian, 2: Butterworth, 3: raised cosine), DOUBLE.
// In, out : spectra [planes][rows][bins] cplx, bins 0 to half of the columns; multiplied in place.
// Scalars : rows, bins, n_values = planes * rows * bins; row_step, bin_step: frequency of row 1 and
//           of bin 1 [cycles along the image's longer side]; inner, outer: radii between which the
//           filter passes, in the same unit (0: from zero on; INFINITY: to the end); shape: order
//           of a Butterworth edge, width of a cosine edge in the unit of the radii.
// NDRange : at least n_values along dimension 0.
// Bounds  : items past n_values leave.
// Source  : Gonzalez and Woods, "Digital Image Processing", ch. 4; all edges but the ideal one pass
//           half at their radius.   Error: a few ulp of the gain.

#ifndef EDGE
#error "image_filter.cl needs EDGE"
#endif

// What a low-pass of that radius lets through, at a frequency given by its square. An ideal edge
// is a little outside: frequencies that are the radius are in, however their squares are rounded.
INLINE scalar passed_below(const scalar square, const scalar radius, const scalar shape) {
#if EDGE == 0
    return square <= radius * radius * CONSTANT(1.000001);
#elif EDGE == 1
    return exp2(-square / (radius * radius));
#elif EDGE == 2
    return 1 / (1 + pow(square / (radius * radius), shape));
#else
    const scalar across = (sqrt(square) - radius) / shape + CONSTANT(0.5);
    return (1 + cospi(clamp(across, (scalar)0, (scalar)1))) / 2;
#endif
}

__kernel void filter_spectra(__global cplx *spectra, const ulong n_values, const ulong rows,
                             const ulong bins, const scalar row_step, const scalar bin_step,
                             const scalar inner, const scalar outer, const scalar shape) {
    const size_t number = get_global_id(0);
    if (number >= n_values)
        return;
    const ulong row = number / bins % rows;
    const scalar y = min(row, rows - row) * row_step, x = number % bins * bin_step;
    const scalar square = x * x + y * y;
    const scalar low = outer < INFINITY ? passed_below(square, outer, shape) : 1;
    const scalar lower = inner > 0 ? passed_below(square, inner, shape) : 0;
    spectra[number] = cscale(spectra[number], low - lower);
}
