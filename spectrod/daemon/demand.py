"""Demand for the products of a source: changed by any thread, read by the analysis."""

import threading
import time
from collections.abc import Callable, Collection


class Demand:
    """The products to compute; any thread may change it, the analysis reads it.

    A product is computed until it has produced its first row, which proves it, and later while it
    is named, leased or used. A ``Demand`` outlives a pipeline that is rebuilt.

    Parameters
    ----------
    products : frozenset of str or None
        Products that are named until the first ``want``; None: all.
    """

    def __init__(self, products: frozenset[str] | None = None) -> None:
        self._lock = threading.Lock()
        self._named = products
        self._is_of_all = False
        self._leases: dict[str, float] = {}
        self._is_paused = False
        self._changed = threading.Event()
        self._on_change: Callable[[], None] = lambda: None

    @property
    def is_paused(self) -> bool:
        """True if nothing is computed, even if it is wanted."""
        return self._is_paused

    def want(self, products: frozenset[str] | None) -> None:
        """Set the wanted products; None: all."""
        self._named = products
        self.touch()

    def compute_all(self, *, is_of_all: bool) -> None:
        """Start or stop computing all products, whatever is named."""
        self._is_of_all = is_of_all
        self.touch()

    def pause(self, *, is_paused: bool) -> None:
        """Start or end a pause."""
        self._is_paused = is_paused
        self.touch()

    def lease(self, product: str, seconds: float) -> None:
        """Want a product for a duration [s], in addition to all other demand."""
        end_s = time.monotonic() + seconds
        with self._lock:
            # A shorter lease does not end an earlier one sooner.
            self._leases[product] = max(end_s, self._leases.get(product, end_s))
        self.touch()

    def touch(self) -> None:
        """Signal a change, so the analysis computes the demand again."""
        self._changed.set()
        self._on_change()

    def call(self, on_change: Callable[[], None]) -> None:
        """Call a function after each change, from the thread that makes it."""
        self._on_change = on_change

    # ---- the analysis's side

    def wait(self, timeout_s: float) -> None:
        """Wait for a change that ``take_change`` has not returned yet."""
        self._changed.wait(timeout_s)

    @property
    def has_changed(self) -> bool:
        """True if there is a change that ``take_change`` has not returned yet."""
        return self._changed.is_set()

    def take_change(self) -> bool:
        """Return whether anything has changed since the last call; the end of a lease counts."""
        has_changed = self._changed.is_set()
        if has_changed:  # unconditionally, a change at this moment would be lost
            self._changed.clear()  # before the state is read, or a wake-up would be lost
        if self._leases:
            has_changed |= self._end_leases()
        return has_changed

    def _end_leases(self) -> bool:
        now_s = time.monotonic()
        with self._lock:
            ended = [product for product, end_s in self._leases.items() if end_s < now_s]
            for product in ended:
                del self._leases[product]
        return bool(ended)

    def wanted(self, unproven: Collection[str], used: Collection[str]) -> frozenset[str] | None:
        """Return the products to compute; None: all.

        Parameters
        ----------
        unproven : collection of str
            Products without any row so far.
        used : collection of str
            Products used by recordings, beside named and leased ones.
        """
        if self._is_paused:
            return frozenset()
        named = self._named
        if named is None or self._is_of_all:
            return None
        with self._lock:
            return named.union(unproven, used, self._leases)
