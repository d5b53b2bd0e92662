"""Rows of a running stream against float64: which are checked, with which error, how often."""

from dataclasses import replace

import numpy as np
import pytest

from spectrod.analysis.numpy_engine import Computed, NumpyEngine, NumpyPlan
from spectrod.analysis.self_check import ERROR_MAX, SelfCheck, can_check, row_error
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec

FS = 8000.0
SPEC = SpectrumSpec(FS, 2, win_length=255, hop=100)
NOISE = np.random.default_rng(3).uniform(-1, 1, (2, 40_000)).astype(np.float32)


class Plan(NumpyPlan):
    """A plan whose rows are a multiple of the right ones."""

    def __init__(self, spec, buffer, factor):
        super().__init__(spec, buffer)
        self._factor = factor

    def submit(self, launch, out=None):
        rows = super().submit(launch, out).collect()
        return Computed((rows * self._factor).astype(rows.dtype))


class Device(NumpyEngine):
    """A device that is wrong by a factor."""

    name = "opencl:P/D"

    def __init__(self, factor=1.0, fallback=None):
        self.factor, self.fallback = factor, fallback

    def plan(self, spec, buffer, _max_frames):
        return Plan(spec, buffer, self.factor)


def run(check, stream, samples=NOISE, n=500, first=0, **more):
    """Feed samples in blocks; return the errors of the checks."""
    errors = []
    for start in range(0, samples.shape[1], n):
        index = first + start
        block = Block(
            samples[:, start : start + n], index, 0, 0, fs=FS, **(more if not start else {})
        )
        check.take(block, stream)
        check.note(stream.push(block))
        if check.is_ready:
            errors.append(check.run(stream.layout))
    return errors


def make(factor=1.0, specs=SPEC, **more):
    return FrameStream(specs, Device(factor), **more)


@pytest.mark.parametrize("n", [64, 500, 40_000])
@pytest.mark.parametrize(
    "spec",
    [
        SPEC,
        replace(SPEC, hop=700),
        replace(SPEC, scaling="dbfs", product="", weighting="A"),
        replace(SPEC, win_length=256, nfft=1000, bands="third-octave", scaling="dbfs", product=""),
        replace(SPEC, rate_hz=7.3),
        SpectrumSpec(FS, 2, iq=True, win_length=256, hop=100),
    ],
    ids=["bins", "long-hop", "levels", "bands", "rate", "iq"],
)
def test_rows_of_a_right_device_have_no_error(spec, n):
    """Rows of any kind, in blocks of any size, are recomputed to the rounding of float32."""
    check = SelfCheck(FS, period_s=0.5, first_s=0.5)
    errors = run(check, make(specs=spec), n=n)
    # Levels are rounded to 1.5e-5 dB at most, which is 1.8e-6 of a power.
    assert all(error <= 1.8e-6 for error in errors)
    assert check.count == len(errors)
    assert bool(errors) == (n < 40_000)


def test_samples_of_integers_are_recomputed():
    """Interleaved 16-bit samples are recomputed in their own format."""
    samples = (NOISE * 32767).astype(np.int16)
    stream = make(sample_format="int16", interleaved=True)
    errors = run(SelfCheck(FS, 0.5, 0.5), stream, samples)
    assert errors
    assert max(errors) <= 1e-7


@pytest.mark.parametrize("scaling", ["density", "dbfs"])
def test_a_wrong_device_is_found(scaling):
    """Rows that are 0.1 % off have that error, which is above the bound."""
    factor = 1.001
    stream = make(factor, specs=replace(SPEC, scaling=scaling, product=""))
    check = SelfCheck(FS, 0.5, 0.5)
    errors = run(check, stream)
    assert min(errors) > ERROR_MAX
    if scaling == "density":
        assert errors == pytest.approx([factor - 1.0] * len(errors), rel=1e-3)
    assert check.largest_error == max(errors)


def test_rows_that_are_not_finite_have_an_infinite_error():
    """NaN in a row is an infinite error; equal silence is none."""
    one = np.ones((2, 5), np.float32)
    assert row_error(one, one, "FS^2") == 0.0
    assert row_error(one * np.float32("nan"), one, "FS^2") == float("inf")
    assert row_error(0 * one, 0 * one, "FS^2/Hz") == 0.0
    assert row_error(one, 0 * one, "FS^2/Hz") > 1.0


def test_checks_come_at_their_period():
    """The first check is after first_s of samples, the next ones period_s after the last."""
    check = SelfCheck(FS, period_s=1.0, first_s=0.5)
    # Of the 80 blocks of 62.5 ms each: the 9th, and then each 17th.
    assert len(run(check, make())) == 5
    assert check.count == 5


def test_products_take_turns():
    """Each product that is wanted and can be checked is checked in turn; a wrong one is found."""

    class OneIsWrong(Device):
        def plan(self, spec, buffer, _max_frames):
            return Plan(spec, buffer, 1.01 if spec.product == "b" else 1.0)

    specs = [replace(SPEC, product=name) for name in "abc"]
    stream = FrameStream(
        [*specs, replace(SPEC, product="m", averaging="mean", averaging_frames=3)], OneIsWrong()
    )
    errors = run(SelfCheck(FS, 0.5, 0.2), stream)
    assert [error > ERROR_MAX for error in errors[:6]] == [False, True, False] * 2
    stream.want(frozenset("ac"))
    assert not any(
        error > ERROR_MAX for error in run(SelfCheck(FS, 0.5, 0.2), stream, first=40_000)
    )


@pytest.mark.parametrize(
    "stream",
    [
        FrameStream(SPEC, NumpyEngine()),
        make(1.5, specs=replace(SPEC, averaging="mean", averaging_frames=3)),
        make(1.5, specs=replace(SPEC, output="complex", product="")),
    ],
    ids=["numpy", "mean", "complex"],
)
def test_other_rows_are_not_checked(stream):
    """Rows of NumPy, averages and complex spectra are not checked, and no samples are kept."""
    check = SelfCheck(FS, 0.5, 0.5)
    assert run(check, stream) == []
    assert check.largest_error is None
    assert check._blocks == []


def test_a_frame_that_takes_long_is_not_checked():
    """A frame of 2^20 points, or of many channels, would hold up the analysis."""
    assert can_check(SPEC)
    assert not can_check(SpectrumSpec(FS, 1, win_length=1 << 20, hop=1 << 19))
    assert not can_check(SpectrumSpec(FS, 512, win_length=4096, hop=1024))


def test_a_gap_makes_no_error():
    """Samples on both sides of a gap are never taken for one frame."""
    check, stream = SelfCheck(FS, 0.01, 0.0), make()
    errors = run(check, stream, NOISE[:, :300], n=150)
    for k in range(1, 40):
        first = k * 1000  # 700 samples are missing each time
        part = NOISE[:, first : first + 300]
        errors += run(check, stream, part, n=150, first=first, discontinuity=True, lost_samples=700)
    assert len(errors) > 10
    assert max(errors) <= 1e-7


def test_few_samples_are_kept_while_no_row_comes():
    """While rows are far apart, the copies hold two frames and two hops, and no more."""
    check, stream = SelfCheck(FS, 0.5, 0.0), make(specs=replace(SPEC, hop=1000))
    for start in range(0, 40_000, 100):
        check.take(Block(NOISE[:, start : start + 100], start, 0, 0, fs=FS), stream)
        assert sum(block.n_samples for block in check._blocks) <= 2 * 255 + 2 * 1000 + 100


def test_a_change_of_the_analysis_drops_the_row():
    """After a reset the old row is not recomputed, and the next check follows."""
    check, stream = SelfCheck(FS, 0.5, 0.0), make(2.0)
    block = Block(NOISE[:, :2000], 0, 0, 0, fs=FS)
    check.take(block, stream)
    check.note(stream.push(block))
    assert check.is_ready
    check.reset()
    assert not check.is_ready
    assert check.run(stream.layout) is None
    assert check.count == 0
