"""Clocks of the recorder, which a simulation may run faster."""

import time
from typing import Final

from spectrod.dsp.units import NS_PER_S

SET_BACK_NS: Final = NS_PER_S
"""A larger backward step means that the clock was set back; a smaller one is jitter of the
times of blocks."""


class Clock:
    """The system's clocks."""

    def utc_ns(self) -> int:
        """UTC [ns since 1970]."""
        return time.time_ns()

    def monotonic_s(self) -> float:
        """Monotonic time, which cannot be set [s]."""
        return time.monotonic()
