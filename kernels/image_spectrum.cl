// image_spectrum.cl - pictures of spectra: logarithm of the magnitude, frequency zero in the
// middle.
//
// Defines : DOUBLE.
// In      : spectra  [planes][rows][bins] cplx, bins 0 to half of the columns, of real images.
// Out     : pictures [planes][rows][columns] real, log(1 + |value|); row and column number n / 2 of
//           n are frequency zero.
// Scalars : rows, columns, n_values = planes * rows * columns.
// NDRange : at least n_values along dimension 0.
// Bounds  : items past n_values leave.
// Source  : the other half of a real image's spectrum is the conjugate, mirrored at zero.
// Error   : 3 ulp of the logarithm and of the magnitude.

__kernel void draw_spectra(__global real *restrict pictures, __global const cplx *restrict spectra,
                           const ulong n_values, const ulong rows, const ulong columns) {
    const size_t number = get_global_id(0);
    if (number >= n_values)
        return;
    const ulong plane = number / columns / rows, bins = columns / 2 + 1;
    ulong row = (number / columns % rows + rows - rows / 2) % rows;
    ulong column = (number % columns + columns - columns / 2) % columns;
    if (column >= bins) {
        row = (rows - row) % rows;
        column = columns - column;
    }
    const cplx value = spectra[(plane * rows + row) * bins + column];
    pictures[number] = log1p(hypot(value.re, value.im));
}
