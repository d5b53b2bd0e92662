// transpose.cl - transposes of a batch of matrices: through tiles in local memory (GPUs) or through
// blocks in registers (CPUs).
//
// Defines : VALUE_BYTES (4, 8 or 16: a real or complex value in single or double precision),
//           TILE (edge of a tile [values]), TILE_ROWS (rows of a tile that the group moves at
//           once; divides TILE), BLOCK (edge of a block in registers [values]).
// In      : in  [batch][rows][columns], matrix b from value in_first + b * in_pitch on.
// Out     : out [batch][columns][rows], from out_first + b * out_pitch on; the same bits. in and
//           out must not overlap.
// NDRange : transpose: global (TILE * batch * ceil(rows / TILE) * ceil(columns / TILE), TILE_ROWS),
//           local (TILE, TILE_ROWS). The tiles are numbered along one dimension because drivers
//           limit the others to 65535 groups.
//           transpose_blocks: global (batch * ceil(rows / BLOCK) * ceil(columns / BLOCK)).
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
#ifndef BLOCK
#define BLOCK 8
#endif

// Integers: a value's bits stay, also those of a NaN.
#if VALUE_BYTES == 4
typedef uint value;
#elif VALUE_BYTES == 8
typedef uint2 value;
#else
typedef uint4 value;
#endif

// The tiles of a batch of matrices, numbered along one dimension.
typedef struct {
    size_t matrix, row, column;
} place;

INLINE place tile_place(const size_t number, const size_t edge, const size_t rows,
                        const size_t columns) {
    const size_t across = (columns + edge - 1) / edge, down = (rows + edge - 1) / edge;
    return (place){number / (across * down), number / across % down * edge, number % across * edge};
}

__kernel __attribute__((reqd_work_group_size(TILE, TILE_ROWS, 1))) void
transpose(__global value *restrict out, const ulong out_first, const ulong out_pitch,
          __global const value *restrict in, const ulong in_first, const ulong in_pitch,
          const ulong rows, const ulong columns) {
    // One column more than needed: a tile's column then lies in TILE different banks.
    __local value tile[TILE][TILE + 1];
    const place first = tile_place(get_group_id(0), TILE, rows, columns);
    const size_t x = get_local_id(0);
    in += in_first + first.matrix * in_pitch;
    out += out_first + first.matrix * out_pitch;

    for (size_t y = get_local_id(1); y < TILE; y += TILE_ROWS)
        if (first.row + y < rows && first.column + x < columns)
            tile[y][x] = in[(first.row + y) * columns + first.column + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t y = get_local_id(1); y < TILE; y += TILE_ROWS)
        if (first.column + y < columns && first.row + x < rows)
            out[(first.column + y) * rows + first.row + x] = tile[x][y];
}

INLINE void transpose_whole_block(__global value *out, __global const value *in, const size_t rows,
                                  const size_t columns) {
    value block[BLOCK][BLOCK];
#pragma unroll
    for (int y = 0; y < BLOCK; y++) {
#pragma unroll
        for (int x = 0; x < BLOCK; x++)
            block[x][y] = in[y * columns + x];
    }
#pragma unroll
    for (int x = 0; x < BLOCK; x++) {
#pragma unroll
        for (int y = 0; y < BLOCK; y++)
            out[x * rows + y] = block[x][y];
    }
}

// One item a block: what it reads and writes are whole cache lines or large parts of them.
__kernel void transpose_blocks(__global value *restrict out, const ulong out_first,
                               const ulong out_pitch, __global const value *restrict in,
                               const ulong in_first, const ulong in_pitch, const ulong rows,
                               const ulong columns) {
    const place first = tile_place(get_global_id(0), BLOCK, rows, columns);
    in += in_first + first.matrix * in_pitch + first.row * columns + first.column;
    out += out_first + first.matrix * out_pitch + first.column * rows + first.row;
    if (first.row + BLOCK <= rows && first.column + BLOCK <= columns) {
        transpose_whole_block(out, in, rows, columns);
        return;
    }
    for (size_t y = 0; y < min((size_t)BLOCK, rows - first.row); y++)
        for (size_t x = 0; x < min((size_t)BLOCK, columns - first.column); x++)
            out[x * rows + y] = in[y * columns + x];
}
