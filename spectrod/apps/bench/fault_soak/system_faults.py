"""Faults of what the daemon runs on: its processor, caches, limits and clocks."""

import resource
import signal
import time
from contextlib import suppress
from random import Random
from typing import Final

from spectrod.apps.bench.fault_soak.capture_faults import CARD_BACK, CARD_WAITS, OF_CARD
from spectrod.apps.bench.fault_soak.fault import Fault
from spectrod.apps.bench.fault_soak.journal import Expected
from spectrod.apps.bench.fault_soak.site import SoakSite
from spectrod.apps.bench.usage import descriptors
from spectrod.lib.errors import SpectrodError

_EXTRA = "products.extra"
_EXPONENTS = range(6, 20)
"""Of the lengths that faults draw, as powers of two."""
_SPARE_BYTES = 32 << 20
_COMPILED = Expected(r"opencl|NumPy|numpy|kernels|compil|cache|device", 0, 10)
CANNOT_COMPILE: Final = Expected(r"^ cannot compile kernels: ", 0, 6)
"""A compiler whose cache was removed may fail after the next fault has started."""
_CHANGED = Expected(r"^control\.", 0, 6)


def _stopped(site: SoakSite, rng: Random) -> str:
    """Let the whole daemon stand still, as a suspended machine or a busy one does."""
    seconds = rng.uniform(0.3, 8.0)
    site.process.send_signal(signal.SIGSTOP)
    site.hold(seconds)
    site.process.send_signal(signal.SIGCONT)
    return f"{seconds:.1f} s"


def _add_product(site: SoakSite, win_length: int, window: str = "hann") -> None:
    table = {"sources": ["scratch"], "win_length": win_length, "hop": win_length, "window": window}
    site.ask("set", changes={_EXTRA: table})


def _cache_removed(site: SoakSite, rng: Random) -> str:
    """Delete the compiled kernels while others are compiled."""
    win_length = 1 << rng.randrange(8, 14)
    site.remove_cache()
    window = rng.choice(("hann", "flattop"))
    _add_product(site, win_length, window)
    for _ in range(rng.randrange(1, 8)):
        site.hold(rng.uniform(0.0, 0.6))
        site.remove_cache()
    site.ask("set", changes={_EXTRA: None})
    return f"while {win_length} samples were compiled"


def _cache_unusable(site: SoakSite, rng: Random) -> str:
    """Put a file in the place of the caches' folder."""
    win_length = 1 << rng.randrange(8, 14)
    site.remove_cache()
    site.cache.write_bytes(b"")
    _add_product(site, win_length)
    site.hold(rng.uniform(0.5, 4.0))
    site.cache.unlink()
    site.cache.mkdir()
    site.ask("set", changes={_EXTRA: None})
    return f"while {win_length} samples were compiled"


def _no_descriptors(site: SoakSite, rng: Random) -> str:
    """Leave the daemon no descriptor for anything new."""
    seconds = rng.uniform(1.0, 5.0)
    before = resource.prlimit(site.pid, resource.RLIMIT_NOFILE)
    most = descriptors(site.pid) + rng.randrange(3)
    resource.prlimit(site.pid, resource.RLIMIT_NOFILE, (most, before[1]))
    with suppress(SpectrodError):  # a request needs one
        site.ask("status")
    site.hold(seconds)
    resource.prlimit(site.pid, resource.RLIMIT_NOFILE, before)
    return f"at most {most} for {seconds:.1f} s"


def _large(site: SoakSite, rng: Random) -> str:
    """Ask for an analysis that takes much memory, twice."""
    win_length = 1 << rng.randrange(16, 20)
    for _ in range(2):
        _add_product(site, win_length)
        site.hold(rng.uniform(0.2, 1.0))
        site.ask("set", changes={_EXTRA: None})
    return f"{win_length} samples"


def load_analyses(site: SoakSite, limit_s: float = 60.0) -> None:
    """Have each length analysed once, on the device where there is one.

    A driver keeps memory for each kernel that it has loaded, and is flat when it has loaded all.

    Parameters
    ----------
    site : SoakSite
        The running daemon.
    limit_s : float
        Time for each length [s]; one that takes longer is loaded by a fault.
    """
    for exponent in _EXPONENTS:
        end_s = time.monotonic() + limit_s
        _add_product(site, 1 << exponent)
        while _computes_with_numpy(site) and time.monotonic() < end_s and not site.has_ended:
            site.hold(0.2)
        site.ask("set", changes={_EXTRA: None})


def _computes_with_numpy(site: SoakSite) -> bool:
    sources = {one["name"]: one for one in site.ask("status")["sources"]}
    return str(sources["scratch"]["engine"]) == "numpy"


def _clock_set(site: SoakSite, rng: Random) -> str:
    """Set the wall clock forward and back."""
    offset_s = rng.choice((-7200, -3, -1, 1, 3, 61, 3600, 86400))
    site.set_clock(offset_s)
    site.hold(rng.uniform(1.5, 4.0))
    site.set_clock(0)
    site.hold(2.0)
    return f"by {offset_s:+d} s and back"


def _nothing_is_compiled(site: SoakSite) -> str:
    return "NumPy compiles nothing" if site.engine == "numpy" else ""


FAULTS: Final = (
    Fault(
        "device.stopped",
        _stopped,
        (
            Expected(CARD_WAITS.pattern, 0, 3),
            Expected(CARD_BACK.pattern, 0, 1),
            *OF_CARD,
            Expected(r"overwritten before they were analysed \(overrun", 0, 3),
        ),
    ),
    Fault(
        "device.cache_removed",
        _cache_removed,
        (_COMPILED, _CHANGED),
        why_not=_nothing_is_compiled,
        recovers_s=60.0,
    ),
    Fault(
        "device.cache_unusable",
        _cache_unusable,
        (_COMPILED, _CHANGED),
        why_not=_nothing_is_compiled,
        recovers_s=60.0,
    ),
    Fault(
        "memory.no_descriptors",
        _no_descriptors,
        (Expected(r"Too many open files|descriptor|it is tried again|resumed", 0, 20),),
        recovers_s=45.0,
    ),
    Fault("memory.large", _large, (_COMPILED, _CHANGED), recovers_s=60.0),
    Fault("clock.set", _clock_set, (Expected(r"wall clock was set by", 1, 6),)),
)
"""Faults of the system."""
