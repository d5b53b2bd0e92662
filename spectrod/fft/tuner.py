"""The search for the fastest kernel and parameters of a transform, or of frames, on one device.

Every candidate is built, checked against a reference in higher precision and only then timed, by
the device's own clock. What does not compile, exceeds a limit or computes wrongly cannot win.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from math import inf
from typing import Any, Protocol

from spectrod.fft.stage import Family, Params, Spec
from spectrod.fft.timing import median_seconds
from spectrod.fft.wisdom import Result, kernel_version
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

# A family whose own choice is that much slower than the best is not searched further.
_HOPELESS = 3.0
# What is that close to the best after one run is in the final.
_CLOSE = 1.25
_FINALISTS_MAX = 6
_FINAL_ROUNDS = 15
# Less than this gain over the untuned choice may be chance.
_GAIN_MIN = 1.02
# Share of the time that the search for finalists may take.
_SEARCH_SHARE = 0.8

_GPU_POINTS, _CPU_POINTS = 1 << 25, 1 << 18


class TuningArena(Protocol):
    """Where candidates run: ``fft.arena.Arena`` or ``analysis.stft.stft_arena.StftArena``."""

    @property
    def context(self) -> Context:
        """The device, with profiling."""
        ...

    def build(self, family: Any, spec: Any, params: Params) -> Any:
        """Compile a family's stage."""
        ...

    def twins(self, spec: Any) -> Sequence[Any]:
        """Return other specs of the same key, for which the winner must be right as well."""
        ...

    def error(self, stage: Any) -> float:
        """Relative L2 error of a result [1]."""
        ...

    def error_limit(self, spec: Any) -> float:
        """Largest error of a right result [1]."""
        ...

    def device_seconds(self, stage: Any) -> float:
        """Time of the whole batch [s]."""
        ...

    def n_bytes(self, spec: Any) -> int:
        """Bytes that a batch reads and writes once."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel family with its parameters."""

    family: str
    params: Params

    def __str__(self) -> str:
        return f"{self.family} {self.params}"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the search is: candidates so far, and the time of the best of them [s]."""

    spec: Spec
    n_tried: int
    best_seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search found.

    Attributes
    ----------
    spec : Spec
        What was searched for.
    result : Result or None
        The winner; None where nothing works.
    n_tried : int
        Candidates that were built and checked.
    n_refused : int
        Candidates that did not compile or exceeded a limit of the device.
    dropped : tuple of str
        Candidates with a larger error than allowed: wrong ones, and those with too much rounding.
    """

    spec: Spec
    result: Result | None
    n_tried: int
    n_refused: int
    dropped: tuple[str, ...]


@dataclass(slots=True, eq=False)
class _Entry:
    """A candidate that computes rightly."""

    candidate: Candidate
    stage: Any
    error: float
    seconds: float


def default_points(device: DeviceInfo) -> int:
    """Complex values a batch: far more than a GPU's caches hold, about 2 MiB on others."""
    return _GPU_POINTS if device.kind == "gpu" else _CPU_POINTS


def tune(
    arena: TuningArena,
    families: Mapping[str, Family[Any]],
    spec: Spec,
    seconds: float,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Outcome:
    """Search for the fastest way to compute a transform, or the power of frames.

    Parameters
    ----------
    arena : TuningArena
        Where candidates run; of the precision of what is computed.
    families : mapping of str to Family
        Kernel families by their names, the one that is preferred untuned first.
    spec : Spec
        What to compute.
    seconds : float
        Budget; the choices that the families make untuned are tried even beyond it [s].
    on_progress : callable, optional
        Called after each candidate that was built.

    Returns
    -------
    outcome : Outcome
    """
    return _Search(arena, families, spec, on_progress).run(seconds)


class _Search:
    """The search for one spec."""

    def __init__(
        self,
        arena: TuningArena,
        families: Mapping[str, Family[Any]],
        spec: Spec,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._arena, self._families, self._spec = arena, families, spec
        self._device = arena.context.device
        self._on_progress = on_progress
        self._entries: list[_Entry] = []
        self._untuned: _Entry | None = None
        self._n_tried = self._n_refused = 0
        self._dropped: list[str] = []

    def run(self, seconds: float) -> Outcome:
        deadline = time.perf_counter() + _SEARCH_SHARE * seconds
        for candidate in self._rest(self._first_choices()):
            if time.perf_counter() >= deadline:
                break
            self._try(candidate)
        winner = self._final((1.0 - _SEARCH_SHARE) * seconds)
        return Outcome(
            self._spec,
            self._result(winner) if winner else None,
            self._n_tried,
            self._n_refused,
            tuple(self._dropped),
        )

    def _first_choices(self) -> dict[str, Iterator[Params]]:
        """Try what each family would choose untuned; return the rest of those worth a search."""
        rest: dict[str, Iterator[Params]] = {}
        firsts: dict[str, float] = {}
        for name, family in self._families.items():
            if not family.supports(self._spec, self._device):
                continue
            rest[name] = iter(family.candidates(self._spec, self._device))
            first = next(rest[name], None)
            entry = self._try(Candidate(name, first)) if first is not None else None
            self._untuned = self._untuned or entry
            firsts[name] = entry.seconds if entry else inf
        best = min(firsts.values(), default=inf)
        return {name: rest[name] for name, first in firsts.items() if first <= _HOPELESS * best}

    @staticmethod
    def _rest(rest: Mapping[str, Iterator[Params]]) -> Iterator[Candidate]:
        """All other candidates, in turns, so that a short budget treats the families alike."""
        named = ([Candidate(name, params) for params in left] for name, left in rest.items())
        for turn in zip_longest(*named):
            yield from filter(None, turn)

    def _try(self, candidate: Candidate) -> _Entry | None:
        """Build, check and time a candidate; None if it cannot win."""
        try:
            entry = self._entry(candidate)
        except (ConfigError, DeviceError):
            self._n_refused += 1
            return None
        self._n_tried += 1
        if entry is not None:
            self._keep(entry)
        self._on_progress(Progress(self._spec, self._n_tried, self._best_seconds()))
        return entry

    def _entry(self, candidate: Candidate) -> _Entry | None:
        stage, error = self._checked(candidate, self._spec)
        if stage is None:
            return None
        self._arena.device_seconds(stage)  # warms up
        seconds = min(self._arena.device_seconds(stage) for _ in range(2))
        return _Entry(candidate, stage, error, seconds)

    def _checked(self, candidate: Candidate, spec: Spec) -> tuple[Any, float]:
        """Build a stage and compare its result with the reference; None above the error limit."""
        stage = self._arena.build(self._families[candidate.family], spec, candidate.params)
        error, limit = self._arena.error(stage), self._arena.error_limit(spec)
        if error <= limit:
            return stage, error
        other = "" if spec == self._spec else "other direction: "
        self._dropped.append(
            f"{candidate}: {other}relative L2 error {error:.4g}, must be at most {limit:.4g}"
        )
        return None, error

    def _keep(self, entry: _Entry) -> None:
        """Add to the finalists, without those that are now too slow for it: they hold memory."""
        best = min(entry.seconds, self._best_seconds())
        self._entries = [e for e in (*self._entries, entry) if e.seconds <= _CLOSE * best]

    def _best_seconds(self) -> float:
        return min((entry.seconds for entry in self._entries), default=inf)

    def _final(self, seconds: float) -> _Entry | None:
        """Time the fastest again, in turns, and return the first whose twins are right."""
        finalists = sorted(self._entries, key=lambda entry: entry.seconds)[:_FINALISTS_MAX]
        if self._untuned and self._untuned not in finalists:
            finalists.append(self._untuned)
        timers = [self._timer(entry.stage) for entry in finalists]
        for entry, median in zip(
            finalists, median_seconds(timers, _FINAL_ROUNDS, seconds), strict=True
        ):
            entry.seconds = median
        order = sorted(finalists, key=self._handicapped)
        return next((entry for entry in order if self._has_right_twins(entry)), None)

    def _timer(self, stage: Any) -> Callable[[], float]:
        return lambda: self._arena.device_seconds(stage)

    def _handicapped(self, entry: _Entry) -> float:
        return entry.seconds * (1.0 if entry is self._untuned else _GAIN_MIN)

    def _has_right_twins(self, entry: _Entry) -> bool:
        """Whether what shares the result, the other direction of a transform, is right as well."""
        try:
            return all(
                self._checked(entry.candidate, twin)[0] is not None
                for twin in self._arena.twins(self._spec)
            )
        except (ConfigError, DeviceError):
            return False

    def _result(self, winner: _Entry) -> Result:
        n, kind, precision = self._spec.key
        gigabytes = self._arena.n_bytes(self._spec) / 1e9
        return Result(
            n=n,
            kind=kind,
            precision=precision,
            family=winner.candidate.family,
            params=_values(winner.candidate.params),
            gb_per_s=_figures(gigabytes / winner.seconds),
            untuned_gb_per_s=_figures(gigabytes / self._untuned.seconds if self._untuned else 0.0),
            relative_l2=_figures(winner.error),
            kernels=kernel_version(winner.candidate.family),
        )


def _figures(value: float) -> float:
    """Round to what a measurement is worth."""
    return float(f"{value:.4g}")


def _values(params: Params) -> dict[str, Any]:
    """Names and values for a file; a tuple becomes a list there, and ``Family.load`` takes it."""
    values: dict[str, Any] = asdict(params)  # type: ignore[call-overload]
    return values
