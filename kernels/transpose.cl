// transpose.cl - transpose of a matrix through tiles in local memory.
//
// Defines : TILE (edge of a tile [values]), TILE_ROWS (rows of a tile that the group moves at
//           once; divides TILE).
// In      : in  [rows][columns] real.
// Out     : out [columns][rows] real, the same bits. in and out must not overlap.
// NDRange : global (TILE * ceil(rows / TILE) * ceil(columns / TILE), TILE_ROWS),
//           local (TILE, TILE_ROWS). The tiles are numbered along one dimension because drivers
//           limit the others to 65535 groups.
// Bounds  : items outside the matrix neither read nor write; no item leaves before the barrier.

#ifndef TILE
#define TILE 32
#endif
#ifndef TILE_ROWS
#define TILE_ROWS 8
#endif

__kernel __attribute__((reqd_work_group_size(TILE, TILE_ROWS, 1))) void
transpose(__global real *restrict out, __global const real *restrict in, const ulong rows,
          const ulong columns) {
    // One column more than needed: a tile's column then lies in TILE different banks.
    __local real tile[TILE][TILE + 1];
    const size_t tiles_across = (columns + TILE - 1) / TILE;
    const size_t first_row = get_group_id(0) / tiles_across * TILE;
    const size_t first_column = get_group_id(0) % tiles_across * TILE;
    const size_t x = get_local_id(0);

    for (size_t y = get_local_id(1); y < TILE; y += TILE_ROWS)
        if (first_row + y < rows && first_column + x < columns)
            tile[y][x] = in[(first_row + y) * columns + first_column + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t y = get_local_id(1); y < TILE; y += TILE_ROWS)
        if (first_column + y < columns && first_row + x < rows)
            out[(first_column + y) * rows + first_row + x] = tile[x][y];
}
