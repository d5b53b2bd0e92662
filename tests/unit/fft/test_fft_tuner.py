from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.fft import reference
from spectrod.fft.arena import Arena
from spectrod.fft.stage import TransformSpec
from spectrod.fft.timing import median_seconds
from spectrod.fft.tuner import default_points, tune
from spectrod.lib.errors import KernelBuildError

SPEC = TransformSpec(64)
PLENTY_S = 1.0


@dataclass(frozen=True)
class FakeParams:
    """A candidate with a preset time and preset faults."""

    ms: float
    fault: str = ""


@dataclass(frozen=True)
class FakeStage:
    """A stage that a fake family built."""

    spec: TransformSpec
    params: FakeParams


class FakeFamily:
    """A family whose stages behave as their parameters say."""

    def __init__(self, *candidates):
        self._candidates = candidates
        self.built = Counter()

    def supports(self, *_):
        return bool(self._candidates)

    def candidates(self, *_):
        return iter(self._candidates)

    def build(self, _, spec, params):
        self.built[params] += 1
        if params.fault == "build":
            raise KernelBuildError("no")
        return FakeStage(spec, params)


class FakeArena:
    """A benchmark that returns the time and the error of a stage's parameters."""

    context = SimpleNamespace(device=None)
    twins = Arena.twins

    def build(self, family, spec, params):
        return family.build(self.context, spec, params)

    def error_limit(self, spec):
        return reference.error_limit(spec)

    def error(self, stage):
        is_wrong = stage.params.fault == ("inverse" if stage.spec.inverse else "forward")
        return 0.1 if is_wrong else np.nan if stage.params.fault == "nan" else 1e-7

    def device_seconds(self, stage):
        return stage.params.ms * 1e-3

    def n_bytes(self, _):
        return 1e6


def run(*, seconds=PLENTY_S, spec=SPEC, on_progress=lambda _: None, **families):
    return tune(FakeArena(), families, spec, seconds, on_progress)


def test_the_fastest_of_all_families_wins():
    """The fastest candidate of all families wins, and rates are bytes over time."""
    outcome = run(
        a=FakeFamily(FakeParams(2.0), FakeParams(1.5)),
        b=FakeFamily(FakeParams(4.0), FakeParams(1.0)),
    )
    result = outcome.result
    assert (result.family, result.params) == ("b", {"ms": 1.0, "fault": ""})
    assert result.gb_per_s == pytest.approx(1.0)
    assert result.untuned_gb_per_s == pytest.approx(0.5)
    assert (result.n, result.kind, result.precision) == (64, "c2c", "single")
    assert (outcome.n_tried, outcome.n_refused, outcome.dropped) == (4, 0, ())


@pytest.mark.parametrize("fault", ["forward", "inverse", "nan"])
def test_a_wrong_result_cannot_win(fault):
    """A candidate that is wrong in either direction is excluded and reported with the limit."""
    outcome = run(a=FakeFamily(FakeParams(2.0), FakeParams(1.8, fault), FakeParams(1.9)))
    assert outcome.result.params["ms"] == 1.9
    (dropped,) = outcome.dropped
    assert dropped.startswith(f"a FakeParams(ms=1.8, fault='{fault}'): ")
    error = "nan" if fault == "nan" else "0.1"
    assert dropped.endswith(f"relative L2 error {error}, must be at most 1.51e-07")


def test_candidates_that_do_not_compile_are_counted():
    """Candidates that do not compile are dropped and counted, even the untuned choice.

    The untuned choice is then the next family's.
    """
    outcome = run(
        a=FakeFamily(FakeParams(1.0, "build"), FakeParams(1.0)),
        b=FakeFamily(FakeParams(2.0), FakeParams(1.0, "build")),
    )
    assert outcome.n_refused == 2
    assert outcome.result.untuned_gb_per_s == pytest.approx(0.5)


def test_without_a_working_candidate_there_is_no_result():
    """If no candidate works, there is no result."""
    assert run(a=FakeFamily(), b=FakeFamily(FakeParams(1.0, "forward"))).result is None
    assert run().result is None


def test_a_gain_that_may_be_chance_does_not_count():
    """A gain within 2 % may be chance, so the untuned choice stays."""
    assert run(a=FakeFamily(FakeParams(1.0), FakeParams(0.99))).result.params["ms"] == 1.0


def test_a_hopeless_family_is_not_searched():
    """A family whose own choice is three times slower than the best is not searched further."""
    slow = FakeFamily(FakeParams(3.1), FakeParams(0.1))
    run(a=FakeFamily(FakeParams(1.0)), b=slow)
    assert slow.built == {FakeParams(3.1): 1}


def test_without_time_the_untuned_choices_are_compared():
    """With a budget of zero, only each family's own choice is timed."""
    outcome = run(
        seconds=0.0,
        a=FakeFamily(FakeParams(2.0), FakeParams(0.1)),
        b=FakeFamily(FakeParams(1.0), FakeParams(0.2)),
    )
    assert outcome.result.params["ms"] == 1.0
    assert outcome.n_tried == 2


def test_progress_is_reported_after_each_candidate():
    """Progress is reported after each candidate, with rising counts and falling best times."""
    reported = []
    run(a=FakeFamily(*map(FakeParams, (3.0, 1.0, 2.0))), on_progress=reported.append)
    assert [(p.n_tried, p.best_seconds) for p in reported] == [(1, 3e-3), (2, 1e-3), (3, 1e-3)]


def test_a_batch_is_past_the_caches_of_a_gpu():
    """A batch exceeds the caches: 256 MiB of complex values on a GPU, 2 MiB on a CPU."""
    assert default_points(SimpleNamespace(kind="gpu")) * 8 == 256 << 20
    assert default_points(SimpleNamespace(kind="cpu")) * 8 == 2 << 20


def test_times_are_taken_in_turns():
    """Candidates run in turns; the time is the median over turns of the best run in each."""
    order = []

    def timer(name, times):
        values = iter(times)
        return lambda: order.append(name) or next(values)

    timers = [timer("a", [5, 1, 9, 8, 1, 9]), timer("b", [2] * 6)]
    medians = median_seconds(timers, 3, 1.0, turn_s=0.0, turn_runs=2)
    assert medians == [1, 2]
    assert "".join(order) == "aabbaabbaabb"


def test_a_timing_that_takes_too_long_ends_after_three_rounds():
    """A slow timing ends after three rounds, the fewest for a median."""
    assert median_seconds([iter(range(99)).__next__], 99, 0.0, turn_s=0.0, turn_runs=2) == [2]


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("n", [1, 2, 15, 64, 1009])
@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
def test_the_reference_is_the_definition(kind, n, precision):
    """The reference is the defining sum, without scaling, in more than its own precision."""
    spec = TransformSpec(n, kind=kind, inverse=kind == "c2r", precision=precision)
    rng = np.random.default_rng(n)
    x = rng.standard_normal((3, spec.n_in)).astype(reference.in_dtype(spec))
    if kind != "r2c":
        x = x + 1j * rng.standard_normal(x.shape).astype(x.real.dtype)
    found = reference.transform(spec, x)
    full = x
    if kind == "c2r":
        mirrored = np.conj(x[:, 1 : (n + 1) // 2])[:, ::-1]
        x[:, 0] = x[:, 0].real
        if n % 2 == 0:
            x[:, -1] = x[:, -1].real
        full = np.concatenate([x, mirrored], axis=1)
    k = np.arange(n)
    turns = np.exp((2j if spec.inverse else -2j) * np.pi * (np.outer(k, k) % n) / n)
    expected = (full.astype(np.complex128) @ turns)[:, : spec.n_out]
    assert reference.relative_l2(found, expected) < 1e-14
    assert found.dtype.itemsize >= 2 * reference.out_dtype(spec).itemsize or precision == "double"


def test_error_limits_grow_slowly():
    """Error limits of the tuner are those of the engine and grow slowly with the length."""
    assert reference.error_limit(TransformSpec(1024)) <= 2.0e-7
    assert reference.error_limit(TransformSpec(1 << 20)) <= 2.8e-7
    assert reference.error_limit(TransformSpec(100_000, precision="double")) <= 6e-16
    assert reference.error_limit(TransformSpec(1009)) > 2 * reference.error_limit(SPEC)
