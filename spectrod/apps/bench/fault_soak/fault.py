"""What a fault is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from spectrod.apps.bench.fault_soak.journal import Expected
from spectrod.apps.bench.fault_soak.site import SoakSite


@dataclass(frozen=True)
class Fault:
    """A fault that can be injected.

    Attributes
    ----------
    name : str
        GROUP.WHAT.
    inject : callable
        Injects it, lets it last and ends it. Returns a text with the numbers that it drew.
    expected : tuple of Expected
        Lines that the daemon must log; other warnings are problems.
    why_not : callable
        Why it cannot be injected here; "" if it can.
    recovers_s : float
        How long after its end everything must be well again [s].
    """

    name: str
    inject: Callable[[SoakSite, Random], str]
    expected: tuple[Expected, ...] = ()
    why_not: Callable[[SoakSite], str] = field(default=lambda _: "")
    recovers_s: float = 15.0

    @property
    def group(self) -> str:
        """What it belongs to: capture, disk, subscribers, ..."""
        return self.name.partition(".")[0]
