"""All forms of the local-memory kernel compute the same frames, bit for bit where possible."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from spectrod.analysis.stft.stft_local import LOCAL, StftLocalShape
from spectrod.analysis.stft.stft_reference import ReferenceStft
from spectrod.analysis.stft.stft_stage import (
    Average,
    BandRows,
    Samples,
    StftLaunch,
    StftSpec,
    StftTables,
)
from spectrod.fft.choice import untuned
from spectrod.fft.local import LocalShape
from spectrod.lib.errors import DeviceError, KernelBuildError
from spectrod.opencl import program

MIRRORED = LocalShape((8, 4, 4), 16, 2, local_pad=8, paired_twiddles=True, mirrored=True)
SPLIT = LocalShape((8, 16), 16, 1, split_exchange=True, local_pad=8)
SHAPES = [MIRRORED, replace(MIRRORED, mirrored=False), SPLIT]
POWER_L2 = 3e-7
N_FRAMES, CHANNELS = 11, 2


def rows(context, spec, params, hop, average=None):
    """Compute the rows of a launch over seeded noise, and those of the reference."""
    tables = StftTables(np.hanning(spec.win_length), bands=bands(spec), smoothing=0.3)
    n = 3 + (N_FRAMES - 1) * hop + spec.win_length
    samples = np.random.default_rng(3).uniform(-1, 1, (CHANNELS * spec.parts, n))
    samples = samples.astype(np.float32)
    n_rows = average.rows(N_FRAMES) if average else N_FRAMES
    out = np.zeros((n_rows, CHANNELS, spec.n_values), np.float32)
    buffer = context.table(out)
    stage = LOCAL.build(context, spec, tables, params)
    place = Samples(context.table(samples), n, 2)
    stage.launch(buffer, StftLaunch(place, hop, N_FRAMES, CHANNELS, average))
    context.download(out, buffer)
    reference = ReferenceStft(spec, tables)
    average = reference.average(average.frames) if average else None
    return out, reference.rows(samples, 2, hop, N_FRAMES, average)


def bands(spec):
    """Make overlapping bands, one of them longer than a piece."""
    if not spec.n_bands:
        return None
    count = np.array([1, 40, 7])
    return BandRows(np.array([0, 1, 39]), count, np.linspace(0.1, 1.0, count.sum()))


def set_compute_units(context, n, monkeypatch):
    """Let the device have other compute units: with many, frames are not kept together."""
    monkeypatch.setattr(context, "device", replace(context.device, compute_units=n))


def assert_near(found, expected):
    assert np.linalg.norm(found - expected) <= POWER_L2 * np.linalg.norm(expected)


FORMS = [{}, {"held": True}, {"ahead": True}, {"held": True, "ahead": True, "buffers": 2}]


@pytest.mark.forms(1)
@pytest.mark.parametrize("hop", [64, 128, 96, 37])
@pytest.mark.parametrize("passes", SHAPES, ids=["mirrored", "whole", "split"])
def test_walking_over_frames_changes_no_bit(context, passes, hop, monkeypatch):
    """Values kept in registers from frame to frame change no bit of the results."""
    spec = StftSpec(256, 256)
    for form in FORMS[: 3 if passes.split_exchange else 4]:
        params = StftLocalShape(passes, run=4, **form)
        set_compute_units(context, N_FRAMES * CHANNELS, monkeypatch)
        alone, expected = rows(context, spec, params, hop)
        assert_near(alone, expected)
        set_compute_units(context, 0, monkeypatch)
        walked, _ = rows(context, spec, params, hop)
        np.testing.assert_array_equal(walked, alone)


@pytest.mark.forms(1)
@pytest.mark.slow
@pytest.mark.parametrize("averaging", ["mean", "exponential"])
@pytest.mark.parametrize("n_bands", [0, 3])
def test_averages_with_two_buffers_are_right(context, averaging, n_bands):
    """No exchange overwrites values that another item has yet to read."""
    spec = StftSpec(256, 200, n_bands=n_bands, averaging=averaging)
    for passes in SHAPES[:2]:
        state = context.allocate(4 * CHANNELS * spec.state_values)
        params = StftLocalShape(passes, ahead=True, buffers=2)
        found, expected = rows(context, spec, params, 100, Average(state, 3))
        assert_near(found, expected)


def test_two_sided_frames_may_walk(context, monkeypatch):
    """Frames of I/Q share samples in registers, too."""
    set_compute_units(context, 0, monkeypatch)
    spec = StftSpec(128, 128, iq=True)
    passes = replace(MIRRORED, mirrored=False)
    for params in (
        StftLocalShape(passes),
        StftLocalShape(passes, held=True, ahead=True, buffers=2, run=4),
    ):
        assert_near(*rows(context, spec, params, 32))


@pytest.mark.slow
def test_every_choice_fits_the_device(context):
    """Every choice for a device compiles and is right."""
    for nfft in (16, 60, 512):
        spec = StftSpec(nfft, nfft)
        for params in islice(LOCAL.candidates(spec, context.device), 2):
            assert_near(*rows(context, spec, params, nfft // 2))


def test_a_frame_that_is_too_long_is_refused(context):
    """A frame that is too long is refused with the limit before compilation."""
    small = replace(context.device, local_mem_bytes=1024)
    spec = StftSpec(1024, 1024)
    assert not LOCAL.supports(spec, small)
    passes = LocalShape((8, 8, 8), 64, 4096, local_pad=8)
    with pytest.raises(DeviceError, match=r"nfft=1024: .* has not got the local memory or the"):
        LOCAL.build(context, spec, StftTables(np.ones(1024)), StftLocalShape(passes))


def test_a_kernel_that_does_not_compile_makes_no_stage(context, monkeypatch):
    """A kernel that does not compile is an error when the stage is made."""
    monkeypatch.setattr(program, "program_source", lambda *_: "__kernel void broken( {")
    spec = StftSpec(96, 96)
    with pytest.raises(KernelBuildError, match=r"stft_local\.cl does not compile for"):
        LOCAL.build(context, spec, StftTables(np.ones(96)), untuned(LOCAL, spec, context.device))


def test_odd_frames_are_not_for_this_family(context):
    """Frames of odd length, which have no half, are refused by this family."""
    assert not LOCAL.supports(StftSpec(255, 255), context.device)
