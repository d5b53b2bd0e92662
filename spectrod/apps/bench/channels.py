"""Number of channels that a device can process in real time, found by measurement."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from spectrod.apps.bench.live import LiveRun, run_pipeline
from spectrod.apps.bench.transforms import Row
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_rules import CHANNELS_MAX
from spectrod.dsp.units import Float64Array
from spectrod.opencl.devices import DeviceInfo

_FIRST = 256
_RESOLUTION = 16  # the last step is a 16th of the result
_GROWTH_MAX = 0.01


def measure(device: DeviceInfo, spec: SpectrumSpec, seconds: float) -> Iterator[Row]:
    """Search for the largest number of channels in real time.

    Parameters
    ----------
    device : DeviceInfo
        Device to measure.
    spec : SpectrumSpec
        Spectrum to compute; its number of channels does not matter.
    seconds : float
        Duration of each run [s].

    Yields
    ------
    row : Row
        Result of each run, see ``spectrod.apps.bench.tables.CHANNELS``.
    """

    def run(channels: int) -> Row:
        live = run_pipeline(device, replace(spec, channels=channels), seconds)
        growth = backlog_growth(live.latencies, spec.hop / spec.fs)
        return live.row | {"growth": growth, "keeps_up": keeps_up(live, growth)}

    yield from search(run)


def search(run: Callable[[int], Row]) -> Iterator[Row]:
    """Double the channels until they no longer keep up, then halve the interval.

    Parameters
    ----------
    run : callable
        Maps channels to a row with ``keeps_up``.
    """
    good, bad, channels = 0, CHANNELS_MAX + 1, min(_FIRST, CHANNELS_MAX)
    while good < channels < bad:
        row = run(channels)
        yield row
        if row["keeps_up"]:
            good = channels
        else:
            bad = channels
        channels = _next(good, bad)


def largest(rows: list[Row]) -> int:
    """Return the largest number of channels that kept up; 0 for none."""
    return max((row["channels"] for row in rows if row["keeps_up"]), default=0)


def keeps_up(live: LiveRun, growth: float) -> bool:
    """Return True if nothing was lost or overrun, and the latency did not grow."""
    return live.row["lost"] == 0 and live.row["overruns"] == 0 and growth <= _GROWTH_MAX


def backlog_growth(latencies: Float64Array, hop_s: float) -> float:
    """Return the growth of the latency from the first quarter to the last, per elapsed time.

    Parameters
    ----------
    latencies : (frames,) float64
        Latencies in order [s].
    hop_s : float
        Time from frame to frame [s].

    Returns
    -------
    growth : float
        Growth of the medians: 0 if the analysis is as fast as the source, 1 if it stands still
        [1]. Infinity for fewer than four frames.
    """
    quarter = len(latencies) // 4
    if quarter == 0:
        return np.inf
    later = np.median(latencies[-quarter:]) - np.median(latencies[:quarter])
    return float(later / ((len(latencies) - quarter) * hop_s))


def _next(good: int, bad: int) -> int:
    if bad > CHANNELS_MAX and 2 * good <= CHANNELS_MAX:
        return 2 * good
    step = max(1, good // _RESOLUTION)
    return good if bad - good <= step else (good + bad) // 2
