"""Memory and descriptors of a daemon over a run, and whether they stay flat."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spectrod.apps.bench import usage

WARM_UP_SHARE = 0.25
"""Share of the run after which memory must be flat [1]."""
RSS_MORE_BYTES = 24 << 20
"""Growth of resident memory from the warm-up to the end, by the fitted slope [bytes]."""
DESCRIPTORS_MORE = 12.0
"""The same of descriptors, of the medians at calm moments: a pyramid opens two files for each of
its coarser levels when their first cell begins, up to a day after the start."""
_PERIOD_S = 1.0


@dataclass(frozen=True, slots=True)
class ResourceSample:
    """What a daemon has at one moment."""

    t_s: float
    rss_bytes: int
    descriptors: int


class ResourceWatch(threading.Thread):
    """Measures a process each second.

    Parameters
    ----------
    pid : int
        The process.
    is_calm : callable
        Whether no fault is active: only such samples count.
    """

    def __init__(self, pid: int, is_calm: Callable[[], bool]) -> None:
        super().__init__(name="resources", daemon=True)
        self._pid, self._is_calm = pid, is_calm
        self._over = threading.Event()
        self.samples: list[ResourceSample] = []

    def run(self) -> None:
        """See the class."""
        while not self._over.wait(_PERIOD_S):
            if not self._is_calm():
                continue
            try:
                found = ResourceSample(
                    time.monotonic(),
                    usage.resident_bytes(self._pid),
                    usage.descriptors(self._pid),
                )
            except OSError:  # it has ended
                return
            self.samples.append(found)

    def stop(self) -> None:
        """End it."""
        self._over.set()
        self.join()


def growth(samples: Sequence[ResourceSample], share: float = WARM_UP_SHARE) -> dict[str, float]:
    """Fit the growth after the warm-up.

    Parameters
    ----------
    samples : sequence of ResourceSample
        In order.
    share : float
        Share of the samples that are the warm-up [1].

    Returns
    -------
    growth : dict
        ``rss_more_bytes``: Theil and Sen's slope, the median of the slopes of pairs, times the
        time; robust against single peaks. ``descriptors_more``: the median of the last third over
        that of the first. Both are 0 with fewer than 6 samples.

    References
    ----------
    .. [1] P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, Journal of the
       American Statistical Association 63 (1968).
    """
    kept = samples[round(len(samples) * share) :]
    n = len(kept)
    if n < 6:
        return {"rss_more_bytes": 0.0, "descriptors_more": 0.0}
    thinned = kept[:: max(1, n // 500)]  # half a million pairs at most
    t_s = np.array([one.t_s for one in thinned])
    rss = np.array([one.rss_bytes for one in thinned], np.float64)
    first, second = np.triu_indices(len(thinned), 1)
    slope = np.median((rss[second] - rss[first]) / (t_s[second] - t_s[first]))
    fds = np.array([one.descriptors for one in kept])
    more = np.median(fds[-n // 3 :]) - np.median(fds[: n // 3])
    return {
        "rss_more_bytes": float(slope * (t_s[-1] - t_s[0])),
        "descriptors_more": float(more),
    }
