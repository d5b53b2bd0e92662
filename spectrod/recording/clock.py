"""The recorder's clocks, which a simulation may run faster."""

import time
from typing import Final

from spectrod.units import NS_PER_S

SET_BACK_NS: Final = NS_PER_S
"""A clock that goes back by more was set; by less, times of blocks are only not exact."""


class Clock:
    """The system's."""

    def utc_ns(self) -> int:
        """UTC [ns since 1970]."""
        return time.time_ns()

    def monotonic_s(self) -> float:
        """Time that nobody sets [s]."""
        return time.monotonic()
