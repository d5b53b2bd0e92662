"""The recorder's clocks, which a simulation may run faster."""

import time


class Clock:
    """The system's."""

    def utc_ns(self) -> int:
        """UTC [ns since 1970]."""
        return time.time_ns()

    def monotonic_s(self) -> float:
        """Time that nobody sets [s]."""
        return time.monotonic()
