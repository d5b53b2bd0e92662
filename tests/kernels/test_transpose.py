import numpy as np
import pytest

from spectrod.fft.transpose import Transposer

GUARD_WORDS = 1024


@pytest.mark.parametrize("shape", [(1, 1), (31, 33), (32, 64), (65, 1), (1, 65), (100, 257)])
@pytest.mark.parametrize(("tile", "tile_rows"), [(32, 8), (16, 16), (8, 1)])
def test_odd_shapes_are_exact_and_stay_in_their_buffers(context, shape, tile, tile_rows):
    """The kernel writes each value of the result and no word before or after it."""
    rows, columns = shape
    bits = np.random.default_rng(3).integers(0, 2**32, shape, dtype=np.uint32)
    guard = np.full(GUARD_WORDS, 0xABCD1234, np.uint32)
    whole = context.table(np.concatenate([guard, ~bits.ravel(), guard]))
    kernel = context.kernel("transpose.cl", "transpose", (("TILE", tile), ("TILE_ROWS", tile_rows)))
    # A kernel does not keep its buffers alive: these two names do.
    result, matrix = whole.get_sub_region(guard.nbytes, bits.nbytes), context.table(bits)
    kernel.set_args(result, matrix, np.uint64(rows), np.uint64(columns))
    n_tiles = -(-rows // tile) * -(-columns // tile)
    context.launch(kernel, (tile * n_tiles, tile_rows), (tile, tile_rows))
    image = np.empty(bits.size + 2 * GUARD_WORDS, np.uint32)
    context.download(image, whole)
    np.testing.assert_array_equal(image[:GUARD_WORDS], guard)
    np.testing.assert_array_equal(image[-GUARD_WORDS:], guard)
    np.testing.assert_array_equal(image[GUARD_WORDS:-GUARD_WORDS].reshape(columns, rows), bits.T)


@pytest.mark.parametrize("shape", [(1, 1000), (1000, 1), (7, 100), (100, 7), (33, 35)])
@pytest.mark.parametrize("block_values", [64, 100, 1 << 12])
def test_blocks_of_any_size_make_the_whole(context, shape, block_values):
    """A matrix larger than the buffers goes through them in blocks."""
    matrix = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    result = Transposer(context, block_values).transpose(matrix)
    np.testing.assert_array_equal(result, matrix.T)
