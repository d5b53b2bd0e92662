// transpose_naive.cl - transpose of a batch of matrices, one value after the other.
// A baseline that transpose.cl is measured against.
//
// Defines : none.
// In      : in  [batch][rows][columns] complex64, matrix b from value in_first + b * in_pitch on.
// Out     : out [batch][columns][rows], from out_first + b * out_pitch on; the same bits. in and
//           out must not overlap.
// NDRange : any; dimension 0 runs along columns, 1 along rows, 2 along the batch.
// Bounds  : items beyond the columns leave.
// Source  : none.   Error: none.

// To compare: neighbours read one line of memory and write to as many lines as they are.
__kernel void transpose_naive(__global uint2 *restrict out, const ulong out_first,
                              const ulong out_pitch, __global const uint2 *restrict in,
                              const ulong in_first, const ulong in_pitch, const ulong rows,
                              const ulong columns, const ulong batch) {
    const size_t column = get_global_id(0);
    if (column >= columns)
        return;
    for (size_t matrix = get_global_id(2); matrix < batch; matrix += get_global_size(2))
        for (size_t row = get_global_id(1); row < rows; row += get_global_size(1))
            out[out_first + matrix * out_pitch + column * rows + row] =
                in[in_first + matrix * in_pitch + row * columns + column];
}
