import numpy as np
import pyopencl as cl
import pytest

from spectrod.analysis.numpy_engine import NumpyPowerPlan
from spectrod.errors import DeviceError, KernelBuildError
from spectrod.fft.stft_params import StftParams, choose_params
from spectrod.fft.stft_plan import StftPowerPlan
from spectrod.fft.twiddles import padded_window, stft_twiddles
from spectrod.opencl.context import event_seconds
from spectrod.types import SpectrumSpec

RELATIVE_L2_MAX = 3e-7  # see tests/contract/test_engine_contract.py
GUARD_BYTES = 4096  # a multiple of every device's alignment of sub-buffers
GUARD_VALUE = np.float32(-12345.5)

# Shapes that no device's default covers alone: each radix in each place, one and two buffers,
# gaps, and groups of frames that do not divide the number of frames.
SHAPES = [
    StftParams(64, 64, (8, 4), 8, 1, 1, 0),
    StftParams(64, 63, (4, 8), 8, 32, 1, 16),
    StftParams(64, 64, (2, 2, 8), 16, 3, 2, 4),
    StftParams(64, 33, (4, 4, 2), 4, 5, 1, 0),
    StftParams(128, 127, (8, 8), 16, 2, 1, 16),
    StftParams(256, 256, (2, 8, 8), 8, 4, 2, 0),
    StftParams(256, 200, (8, 2, 8), 8, 7, 1, 8),
    StftParams(256, 255, (8, 8, 2), 32, 1, 2, 32),
    StftParams(1024, 1023, (8, 4, 4, 4), 8, 2, 1, 16),
    StftParams(4096, 4096, (4, 8, 8, 8), 16, 1, 1, 16),
    StftParams(8192, 8192, (8, 8, 8, 8), 8, 1, 1, 0),
]


def shape_id(params):
    radices = ".".join(map(str, params.radices))
    return (
        f"{params.nfft}={radices}-win{params.win_length}-e{params.item_values}"
        f"-f{params.group_frames}-b{params.local_buffers}-p{params.local_pad}"
    )


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("params", SHAPES, ids=shape_id)
def test_every_shape_agrees_with_float64(context, rng, params):
    """Radices in any order, buffers, gaps and groups change the speed and not the result."""
    spec = SpectrumSpec(48e3, 2, "hann", params.win_length, params.nfft // 3, params.nfft)
    n_frames = 11
    samples = rng.standard_normal((2, 12 * params.nfft)).astype(np.float32)
    power = StftPowerPlan(context, spec, n_frames, params).execute(samples, n_frames)
    expected = NumpyPowerPlan(spec, n_frames).execute(samples, n_frames).astype(np.float64)
    assert np.linalg.norm(power - expected) <= RELATIVE_L2_MAX * np.linalg.norm(expected)


@pytest.mark.parametrize("params", SHAPES, ids=shape_id)
@pytest.mark.parametrize("n_frames", [1, 6])
def test_nothing_outside_the_buffers_is_touched_or_used(context, rng, params, n_frames):
    """Words before and after each buffer stay, and NaN in those around the samples stays out."""
    channels, hop = 2, params.nfft // 2 + 1
    row_length = (n_frames - 1) * hop + params.win_length
    n_bins = params.nfft // 2 + 1
    inputs = {
        "samples": rng.standard_normal(channels * row_length).astype(np.float32),
        "window": padded_window(np.ones(params.win_length), params.nfft),
        "twiddles": stft_twiddles(params.radices),
    }
    guarded = {name: Guarded(context, values, np.nan) for name, values in inputs.items()}
    empty = np.full(n_frames * channels * n_bins, GUARD_VALUE, np.float32)
    power = Guarded(context, empty, GUARD_VALUE)

    kernel = context.kernel("stft_power.cl", "stft_power", params.defines())
    kernel.set_args(
        power.buffer,
        guarded["samples"].buffer,
        guarded["window"].buffer,
        guarded["twiddles"].buffer,
        np.uint64(row_length),
        np.uint32(hop),
        np.uint32(n_frames),
        np.float32(0.25),
    )
    groups = -(-n_frames // params.group_frames)
    context.launch(
        kernel,
        (params.items * groups, params.group_frames, channels),
        (params.items, params.group_frames, 1),
    )
    for name, values in inputs.items():
        np.testing.assert_array_equal(guarded[name].read(), values)
    values = power.read()
    assert np.isfinite(values).all()
    assert (values >= 0.0).all()


class Guarded:
    """A buffer in the middle of a larger one whose ends hold a known value."""

    def __init__(self, context, values, guard):
        words = GUARD_BYTES // 4
        self._context = context
        self._like = values
        self._ends = np.full(words, guard, np.float32)
        self._image = np.concatenate([self._ends, values.view(np.float32), self._ends])
        self._whole = context.table(self._image)
        self.buffer = self._whole.get_sub_region(GUARD_BYTES, values.nbytes)

    def read(self):
        """Check the ends and return the middle."""
        image = np.empty_like(self._image)
        self._context.download(image, self._whole)
        words = len(self._ends)
        np.testing.assert_array_equal(image[:words], self._ends)
        np.testing.assert_array_equal(image[-words:], self._ends)
        return image[words:-words].view(self._like.dtype)


def test_the_choice_for_the_device_runs(context):
    """Each length has a shape that keeps the device's limits."""
    for nfft in (64, 128, 256, 512, 1024, 2048, 4096, 8192):
        choose_params(nfft, nfft, context.device).check(context.device)


def test_a_missing_define_is_a_build_error_with_the_log(context):
    """A program that does not compile names file, device, options and the compiler's complaint."""
    with pytest.raises(KernelBuildError, match=r"stft_power\.cl needs NFFT") as caught:
        context.kernel("stft_power.cl", "stft_power", (("NFFT", 64),))
    text = str(caught.value)
    assert context.device.label in text
    assert "-cl-std=CL1.2 -DNFFT=64" in text


def test_radices_that_do_not_fit_are_a_build_error(context):
    """The kernel itself refuses radices whose product is not half its length."""
    defines = dict(SHAPES[0].defines()) | {"RADIX_1": 4}
    with pytest.raises(KernelBuildError, match="the radices must multiply to NFFT / 2"):
        context.kernel("stft_power.cl", "stft_power", tuple(defines.items()))


def test_too_large_a_plan_says_its_size(context):
    """A plan beyond the device's memory is refused with the size it asked for."""
    spec = SpectrumSpec(48e3, 64, win_length=8192, hop=8192)
    with pytest.raises(DeviceError, match=r"cannot hold a buffer of 2097152\.0 MiB: its limit is"):
        StftPowerPlan(context, spec, 1 << 20)


def test_a_programs_second_kernel_needs_no_compiler(context, monkeypatch):
    """Plans of one shape share a program."""
    context.kernel("stft_power.cl", "stft_power", SHAPES[0].defines())
    monkeypatch.setattr("spectrod.opencl.program.Programs._named", None)
    context.kernel("stft_power.cl", "stft_power", SHAPES[0].defines())


def test_a_failing_launch_is_a_device_error(context):
    """The driver's refusal of a launch becomes one line that names device and kernel."""
    kernel = context.kernel("stft_power.cl", "stft_power", SHAPES[0].defines())
    with pytest.raises(DeviceError, match="cannot run stft_power"):
        context.launch(kernel, (3,), (3,))


def test_events_have_times(context):
    """With profiling on, a copy on the device takes some time."""
    source, destination = context.table(np.ones(1 << 16, np.float32)), context.allocate(1 << 18)
    assert event_seconds(context.copy(destination, source)) > 0.0
    out = np.zeros(1 << 16, np.float32)
    context.download(out, destination)
    assert (out == 1.0).all()


def test_new_buffers_are_zero(context):
    """What is allocated holds zeros."""
    out = np.ones(1001, np.float32)
    context.download(out, context.allocate(out.nbytes))
    assert not out.any()


def test_the_drivers_own_error_stays_as_the_cause(context):
    """A translated error keeps the driver's, for a report."""
    with pytest.raises(DeviceError) as caught:
        context.allocate(0)
    assert isinstance(caught.value.__cause__, cl.Error)
