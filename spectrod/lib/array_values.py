"""Objects whose values other libraries take as an array."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class ArrayValues:
    """Has ``values`` that NumPy, PyTorch and others take by NumPy's and DLPack's protocols.

    References
    ----------
    .. [1] NumPy, "Interoperability with NumPy": ``__array__``.
    .. [2] Python array API standard 2024.12: ``__dlpack__`` and ``__dlpack_device__``.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def values(self) -> NDArray[Any]:
            """The array."""

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001 - NumPy's protocol
        """Return the values, which are copied if that is asked for or another dtype needs it.

        Raises
        ------
        ValueError
            With NumPy 2, if ``copy`` is False and another dtype needs a copy; NumPy 1 copies.
        """
        return np.array(self.values, dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        """Return the values as a capsule of DLPack, with the options of NumPy's arrays."""
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's type and number of the device: this machine's memory."""
        return self.values.__dlpack_device__()
