"""Arrays of xarray whose rows are read when they are used."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable
from xarray.backends import BackendArray
from xarray.core.indexing import (
    ExplicitIndexer,
    IndexingSupport,
    LazilyIndexedArray,
    explicit_indexing_adapter,
)

from spectrod.dsp.units import Int64Array

_CHUNK_BYTES = 1 << 25

RowsOf = Callable[[Int64Array, Callable[[slice, NDArray[Any]], None]], None]
"""Reads rows by their numbers, and gives parts of them, each with its places in the numbers."""


class RowArray(BackendArray):
    """An array of rows; an index along the other axes lets each read keep only what it selects.

    Parameters
    ----------
    shape : tuple of int
        Its shape, rows first.
    dtype : dtype
        Type of its elements.
    rows_of : RowsOf
        Reads rows; called by any thread.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], rows_of: RowsOf) -> None:
        self.shape, self.dtype, self._rows_of = shape, dtype, rows_of

    def __getitem__(self, key: ExplicitIndexer) -> Any:
        return explicit_indexing_adapter(key, self.shape, IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        rows, *others = key
        numbers = numbers_of(rows, self.shape[0])
        like = np.broadcast_to(np.zeros((), self.dtype), (1, *self.shape[1:]))
        found = np.empty((len(numbers), *_selected(like, others).shape[1:]), self.dtype)

        def put(places: slice, part: NDArray[Any]) -> None:
            found[places] = _selected(part, others)

        self._rows_of(numbers, put)
        return found if isinstance(rows, slice | np.ndarray) else found[0]


def numbers_of(key: Any, n: int) -> Int64Array:
    """Return the row numbers that an integer, a slice or a vector selects of n rows.

    Raises
    ------
    IndexError
        If a number is out of range.
    """
    if isinstance(key, slice):
        return np.arange(*key.indices(n), dtype=np.int64)
    numbers = np.atleast_1d(np.asarray(key, np.int64))
    outside = numbers[(numbers < -n) | (numbers >= n)]
    if outside.size:
        raise IndexError(f"row {outside[0]}: must be -{n} to {n - 1}")
    return np.where(numbers < 0, numbers + n, numbers)


def variable_of(dims: tuple[str, ...], data: Any, attributes: dict[str, Any]) -> Variable:
    """Return a variable of xarray; one of rows reads them when they are needed.

    With Dask, chunks of rows are about 32 MiB of neighbouring ones.
    """
    if isinstance(data, RowArray):
        row_bytes = data.dtype.itemsize * int(np.prod(data.shape[1:]))
        n_rows = min(data.shape[0], max(1, _CHUNK_BYTES // row_bytes))
        chunks = dict(zip(dims, (n_rows, *data.shape[1:]), strict=True))
        return Variable(dims, LazilyIndexedArray(data), attributes, {"preferred_chunks": chunks})
    # Dask chooses no chunks (``chunks="auto"``) for arrays of Python's objects.
    is_text = isinstance(data, np.ndarray) and data.dtype == object
    return Variable(dims, data.astype(str) if is_text else data, attributes)


def _selected(rows: NDArray[Any], keys: list[Any]) -> NDArray[Any]:
    """Index each axis after the first by a key of its own."""
    for axis in range(len(keys), 0, -1):  # an integer removes an axis, those before it stay
        rows = rows[(*(slice(None),) * axis, keys[axis - 1])]
    return rows
