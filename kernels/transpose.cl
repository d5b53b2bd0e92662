// transpose.cl - transposes of a batch of matrices: through tiles in local memory, and plainly.
//
// Defines : VALUE_BYTES (4, 8 or 16: a real or complex value in single or double precision),
//           TILE (edge of a tile [values]), TILE_ROWS (rows of a tile that the group moves at
//           once; divides TILE).
// In      : in  [batch][rows][columns], matrix b from value in_first + b * in_pitch on.
// Out     : out [batch][columns][rows], from out_first + b * out_pitch on; the same bits. in and
//           out must not overlap.
// NDRange : transpose: global (TILE * batch * ceil(rows / TILE) * ceil(columns / TILE), TILE_ROWS),
//           local (TILE, TILE_ROWS). The tiles are numbered along one dimension because drivers
//           limit the others to 65535 groups.
//           transpose_naive: any; dimension 0 runs along columns, 1 along rows, 2 along the batch.
// Bounds  : items outside the matrix neither read nor write; no item leaves before the barrier.
// Source  : tile padded by a column, Ruetsch and Micikevicius 2009.   Error: none.

#ifndef VALUE_BYTES
#define VALUE_BYTES 4
#endif
#ifndef TILE
#define TILE 32
#endif
#ifndef TILE_ROWS
#define TILE_ROWS 8
#endif

// Integers: a value's bits stay, also those of a NaN.
#if VALUE_BYTES == 4
typedef uint value;
#elif VALUE_BYTES == 8
typedef uint2 value;
#else
typedef uint4 value;
#endif

__kernel __attribute__((reqd_work_group_size(TILE, TILE_ROWS, 1))) void
transpose(__global value *restrict out, const ulong out_first, const ulong out_pitch,
          __global const value *restrict in, const ulong in_first, const ulong in_pitch,
          const ulong rows, const ulong columns) {
    // One column more than needed: a tile's column then lies in TILE different banks.
    __local value tile[TILE][TILE + 1];
    const size_t tiles_across = (columns + TILE - 1) / TILE;
    const size_t tiles_down = (rows + TILE - 1) / TILE;
    const size_t matrix = get_group_id(0) / (tiles_across * tiles_down);
    const size_t first_row = get_group_id(0) / tiles_across % tiles_down * TILE;
    const size_t first_column = get_group_id(0) % tiles_across * TILE;
    const size_t x = get_local_id(0);
    in += in_first + matrix * in_pitch;
    out += out_first + matrix * out_pitch;

    for (size_t y = get_local_id(1); y < TILE; y += TILE_ROWS)
        if (first_row + y < rows && first_column + x < columns)
            tile[y][x] = in[(first_row + y) * columns + first_column + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t y = get_local_id(1); y < TILE; y += TILE_ROWS)
        if (first_column + y < columns && first_row + x < rows)
            out[(first_column + y) * rows + first_row + x] = tile[x][y];
}

// To compare: neighbours read one line of memory and write to as many lines as they are.
__kernel void transpose_naive(__global value *restrict out, const ulong out_first,
                              const ulong out_pitch, __global const value *restrict in,
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
