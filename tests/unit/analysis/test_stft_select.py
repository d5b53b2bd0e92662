"""The choice among families of spectra: the tuner's result, else the first that is able."""

import logging
from dataclasses import asdict

import numpy as np
import pytest

from spectrod.analysis.stft.stft_arena import StftArena, tuned_spec
from spectrod.analysis.stft.stft_general import GENERAL, GeneralParams
from spectrod.analysis.stft.stft_local import LOCAL, StftLocalShape, StftLocalStage
from spectrod.analysis.stft.stft_select import all_families, make_stft_stage
from spectrod.analysis.stft.stft_stage import StftSpec, StftTables
from spectrod.fft import wisdom
from spectrod.fft.local import LocalShape
from spectrod.fft.simd_shape import SimdShape
from spectrod.fft.stage import load_params
from spectrod.lib.errors import ConfigError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

SPEC = StftSpec(256, 256)
SHAPE = SimdShape(8, (16,), columns=True, staged=False)


@pytest.fixture(scope="module")
def context(opencl_device):
    opened = Context(opencl_device)
    yield opened
    opened.close()


@pytest.fixture
def saved(monkeypatch):
    """Save one tuning result, for frames of 256 samples."""

    def save(name, values):
        monkeypatch.setattr(
            wisdom, "lookup", lambda _, spec: (name, values) if spec.key[0] == 256 else None
        )

    return save


def make(context, spec=SPEC):
    return make_stft_stage(context, spec, StftTables(np.ones(spec.win_length)))


def test_every_family_has_its_own_name():
    """Each family has a unique name, by which a saved result finds and loads it."""
    cpu = DeviceInfo(
        "P", "D", (0, 0), "cpu", "1", 8, 1024, 1 << 16, 1 << 33, 1 << 31, has_fp64=True, handle=None
    )
    families = {family.name: family for family in all_families()}
    assert families.keys() == {"stft-simd", "stft-local", "stft-multipass", "stft-general"}
    for family in families.values():
        candidates = list(family.candidates(SPEC, cpu))
        assert len(set(candidates)) == len(candidates) > 0
        assert [
            load_params(family.params_type, asdict(params)) for params in candidates
        ] == candidates


def test_a_saved_result_is_taken(context, saved):
    """The saved family and parameters take precedence over the untuned choice."""
    saved("stft-general", {"slice_bytes": 4096})
    assert make(context).params == GeneralParams(4096)


def test_a_saved_result_serves_all_that_is_made_of_frames(context, saved):
    """A shape tuned for contiguous samples stages the samples of interleaved channels."""
    saved("stft-simd", asdict(SHAPE))
    assert make(context).shape == SHAPE
    spec = StftSpec(256, 256, interleaved=True)
    assert make(context, spec).shape == SimdShape(8, (16,), columns=True, staged=True)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("stft-general", {"slice_bytes": 0}, "slice_bytes=0: must be at least 1"),
        ("stft-general", {}, "must be ['slice_bytes']"),
        ("stft-simd", asdict(SHAPE) | {"radices": [8]}, "must make the complex length 128"),
        ("stft-local", asdict(StftLocalShape(LocalShape((8, 8), 8))), "must multiply to 128"),
    ],
)
def test_a_saved_result_that_breaks_a_rule_is_passed_over(
    context, saved, caplog, name, values, reason
):
    """An invalid saved result is ignored with a log line, and the untuned choice is used."""
    saved(name, values)
    make(context)
    assert "the tuned parameters of n=256 are ignored" in caplog.text
    assert reason in caplog.text


def test_a_saved_result_without_room_is_passed_over_in_silence(context, saved, caplog):
    """A saved result that leaves no local memory for bands and averages is skipped silently."""
    shape = StftLocalShape(LocalShape((16, 8), 8, 1 << 16))
    saved("stft-local", asdict(shape))
    with caplog.at_level(logging.INFO):
        assert not isinstance(make(context), StftLocalStage)
    assert not caplog.records


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"passes": LocalShape((8, 8), 8, sections=2)}, "sections=2: must be 1 for frames"),
        ({"buffers": 3}, "buffers=3: must be 1 or 2"),
        ({"run": 0}, "run=0: must be at least 1"),
    ],
)
def test_a_broken_rule_is_named(values, rule):
    """Each rule of a shape is checked before compilation."""
    with pytest.raises(ConfigError, match=rule):
        StftLocalShape(**({"passes": LocalShape((8, 8), 8)} | values))


def test_a_gpu_without_results_gets_those_of_another():
    """An untuned GPU gets, for each length and format, a shape that was fast on another one."""
    gpu = DeviceInfo(
        "P", "D", (0, 0), "gpu", "1", 8, 1024, 49152, 1 << 33, 1 << 31, has_fp64=True, handle=None
    )
    first = {n: next(LOCAL.candidates(StftSpec(n, n), gpu)) for n in (512, 1024, 8192, 1200)}
    forms = {n: (p.held, p.ahead, p.buffers, p.run) for n, p in first.items()}
    assert forms == {
        512: (True, True, 1, 4),
        1024: (False, False, 1, 1),
        8192: (False, False, 1, 1),
        1200: (False, False, 1, 4),
    }
    of_iq = next(LOCAL.candidates(StftSpec(1024, 1024, iq=True), gpu))
    assert (of_iq.held, of_iq.ahead, of_iq.buffers, of_iq.run) == (False, False, 1, 4)


def test_the_package_has_results_for_frames_of_a_known_gpu():
    """Streaming uses the results measured on an NVIDIA H200 with any driver version."""
    device = DeviceInfo(
        *("NVIDIA CUDA", "NVIDIA H200", (0, 0), "gpu", "999", 132, 1024, 49152, 1 << 37, 1 << 35),
        has_fp64=True,
        handle=None,
    )
    for n in (256, 512, 1024, 2048, 4096, 8192):
        name, values = wisdom.lookup(device, StftSpec(n, n, "int16", decibels=True))
        params = load_params(LOCAL.params_type, values)
        assert (name, params.passes.length) == (LOCAL.name, n // 2)
        assert wisdom.lookup(device, StftSpec(n, n, iq=True)) is None


@pytest.mark.slow
@pytest.mark.parametrize("iq", [False, True])
def test_the_tuner_compares_power_with_a_reference(context, iq):
    """The tuner accepts right results and rejects those of another window."""
    spec = tuned_spec(90, iq=iq)
    arena = StftArena(context, 1 << 12, 90)
    right = arena.build(GENERAL, spec, GeneralParams(1 << 16))
    assert arena.error(right) <= arena.error_limit(spec)
    wrong = GENERAL.build(context, spec, StftTables(np.ones(90)), GeneralParams(1 << 16))
    assert arena.error(wrong) > 0.1
    values = 90 if iq else 46
    frames = ((1 << 12) // spec.parts - 90) // 45 + 1
    assert arena.n_bytes(spec) == 4 * ((1 << 12) + frames * values)
    assert arena.twins(spec) == ()
