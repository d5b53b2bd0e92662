"""What of a source somebody wants: who asks, from any thread, and what follows for the analysis."""

import threading
import time
from collections.abc import Collection


class Demand:
    """Which products are to be computed; any thread may change it, the analysis reads it.

    A product is computed until it is proven, which its first row does, and from there on while it
    is named, leased or used. It outlives a pipeline that has to be made again.

    Parameters
    ----------
    products : frozenset of str or None
        Those that are named until ``want`` names others; None: all.
    """

    def __init__(self, products: frozenset[str] | None = None) -> None:
        self._lock = threading.Lock()
        self._named = products
        self._is_of_all = False
        self._leases: dict[str, float] = {}
        self._is_paused = False
        self._changed = threading.Event()

    @property
    def is_paused(self) -> bool:
        """Whether nothing is to be computed, whoever wants it."""
        return self._is_paused

    def want(self, products: frozenset[str] | None) -> None:
        """Name what is wanted; None: all."""
        self._named = products
        self._changed.set()

    def compute_all(self, *, is_of_all: bool) -> None:
        """Compute all products whatever is named, or no longer so."""
        self._is_of_all = is_of_all
        self._changed.set()

    def pause(self, *, is_paused: bool) -> None:
        """Begin or end a pause."""
        self._is_paused = is_paused
        self._changed.set()

    def lease(self, product: str, seconds: float) -> None:
        """Want a product for a while [s], whatever else is said."""
        end_s = time.monotonic() + seconds
        with self._lock:
            # Whoever asks for less does not shorten what another was given.
            self._leases[product] = max(end_s, self._leases.get(product, end_s))
        self._changed.set()

    def touch(self) -> None:
        """Say that something has changed for which the analysis should look up."""
        self._changed.set()

    # ---- the analysis's side

    def wait(self, timeout_s: float) -> None:
        """Wait for a change that was not taken yet."""
        self._changed.wait(timeout_s)

    @property
    def has_changed(self) -> bool:
        """Whether there is a change that was not taken yet."""
        return self._changed.is_set()

    def take_change(self) -> bool:
        """Say whether anything has changed since the last call; the end of a lease counts."""
        has_changed = self._changed.is_set()
        if has_changed:  # or one that comes just now would be cleared away unseen
            self._changed.clear()  # before it is read, or a change would be slept over
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
        """Work out what is to be computed; None: all.

        Parameters
        ----------
        unproven : collection of str
            Products of which no row was computed yet.
        used : collection of str
            Products that are being used beside those who ask: by recordings.
        """
        if self._is_paused:
            return frozenset()
        named = self._named
        if named is None or self._is_of_all:
            return None
        with self._lock:
            return named.union(unproven, used, self._leases)
