from dataclasses import replace

import numpy as np
import pytest

from spectrod.fft.stage import Lines
from spectrod.fft.transpose import DeviceTranspose, Transposer, tile_shape
from spectrod.lib.errors import ConfigError

GUARD = 0xABCD1234
WAYS = {
    "local": {"in_registers": False},
    "registers": {"in_registers": True},
}
SHAPES = [(1, 1, 1), (1, 31, 33), (3, 32, 64), (2, 65, 1), (70, 1, 65), (2, 100, 257)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("value_bytes", [4, 8, 16])
@pytest.mark.parametrize("way", WAYS)
def test_odd_shapes_are_exact_and_stay_in_their_places(context, shape, value_bytes, way):
    """Each value of odd shapes is written exactly, and no word around the results is."""
    batch, rows, columns = shape
    words, first, gap = value_bytes // 4, 37, 5
    rng = np.random.default_rng(3)
    matrices = rng.integers(0, 2**32, (*shape, words), dtype=np.uint32)
    pitch = rows * columns + gap
    whole = np.full((first + batch * pitch, words), GUARD, np.uint32)
    source = Lines(context.table(spread(whole, matrices, first, pitch)), pitch, first)
    out = Lines(context.table(whole), pitch, first)
    DeviceTranspose(context, value_bytes, **WAYS[way]).launch(out, source, batch, rows, columns)
    result = np.empty_like(whole)
    context.download(result, out.buffer)
    expected = spread(whole, matrices.transpose(0, 2, 1, 3), first, pitch)
    np.testing.assert_array_equal(result, expected)


def spread(whole, matrices, first, pitch):
    """Put each matrix to its place in a copy of the whole."""
    filled = whole.copy()
    for b, matrix in enumerate(matrices):
        place = slice(first + b * pitch, first + b * pitch + matrix.shape[0] * matrix.shape[1])
        filled[place] = matrix.reshape(-1, matrix.shape[-1])
    return filled


@pytest.mark.parametrize(
    ("limits", "value_bytes", "shape"),
    [
        ({}, 4, (32, 8)),
        ({}, 16, (32, 8)),
        ({"max_work_group_size": 100}, 8, (32, 2)),
        ({"max_work_group_size": 16}, 8, (16, 1)),
        ({"max_work_group_size": 1}, 4, (1, 1)),
        ({"local_mem_bytes": 16384}, 16, (16, 16)),
    ],
)
def test_tiles_fit_small_devices(context, limits, value_bytes, shape):
    """A group never exceeds the device's items, nor a tile its local memory."""
    roomy = {"max_work_group_size": 1024, "local_mem_bytes": 49152}
    assert tile_shape(replace(context.device, **(roomy | limits)), value_bytes) == shape


def test_tiles_of_small_devices_transpose(context, monkeypatch):
    """The transpose is right with the smallest tiles as well."""
    small = replace(context.device, kind="gpu", max_work_group_size=2)
    monkeypatch.setattr(context, "device", small)
    matrix = np.arange(15, dtype=np.float32).reshape(3, 5)
    np.testing.assert_array_equal(Transposer(context).transpose(matrix), matrix.T)


def test_unknown_values_are_refused(context):
    """A value of an unsupported size is one clear error."""
    with pytest.raises(ConfigError, match=r"value_bytes=2: must be 4, 8 or 16"):
        DeviceTranspose(context, 2)


@pytest.mark.parametrize("shape", [(1, 1000), (1000, 1), (7, 100), (100, 7), (33, 35)])
@pytest.mark.parametrize("block_values", [64, 100, 1 << 12])
def test_blocks_of_any_size_make_the_whole(context, shape, block_values):
    """A matrix larger than the buffers is transposed in blocks."""
    matrix = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    result = Transposer(context, block_values).transpose(matrix)
    np.testing.assert_array_equal(result, matrix.T)
