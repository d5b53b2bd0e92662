"""Width of the vectors of a processor, and the shapes of kernels that follow from it."""

from dataclasses import replace

import pytest

from spectrod.analysis.stft.stft_simd import SIMD as STFT_SIMD
from spectrod.analysis.stft.stft_stage import StftSpec
from spectrod.fft.choice import untuned
from spectrod.fft.simd import SIMD
from spectrod.fft.stage import TransformSpec
from spectrod.opencl.devices import vector_bytes

AVX512 = "processor\t: 0\nflags\t\t: fpu avx2 avx512f avx512bw\nbugs\t\t: none\n"


@pytest.fixture(autouse=True)
def _forget():
    vector_bytes.cache_clear()
    yield
    vector_bytes.cache_clear()


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("processor\t: 0\nflags\t\t: fpu sse avx2\n\nprocessor\t: 1\n", 32),
        (AVX512, 64),
        ("processor\t: 0\nflags\t\t: fpu avx512\nbugs\t\t: avx512f\n", 32),
        ("processor\t: 0\nFeatures\t: fp asimd\n", 32),
        ("", 32),
    ],
)
def test_the_width_follows_from_the_features(tmp_path, text, width):
    """Vectors have 64 bytes where the first processor has AVX-512, else 32."""
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    assert vector_bytes("OpenCL 3.0 WINTEL", path) == width


@pytest.mark.parametrize(
    ("target", "width"),
    [
        ("pthread-x86_64-pc-linux-gnu-skylake-avx512", 64),
        ("cpu-x86_64-pc-linux-gnu-znver4", 64),
        ("pthread-x86_64-unknown-linux-gnu-znver3", 32),
        ("pthread-x86_64-unknown-linux-gnu-generic", 32),
        ("", 32),
    ],
)
def test_the_width_is_that_of_the_drivers_target(tmp_path, target, width):
    """A processor has AVX-512, but PoCL compiles for one without: vectors have 32 bytes."""
    path = tmp_path / "cpuinfo"
    path.write_text(AVX512)
    assert vector_bytes(f"OpenCL 3.0 PoCL HSTR: {target} ", path) == width


def test_without_a_list_of_processors(tmp_path):
    """Without the list, which only Linux has, vectors have 32 bytes."""
    assert vector_bytes("OpenCL 3.0 PoCL HSTR: cpu-x86_64-znver4", tmp_path / "cpuinfo") == 32


@pytest.mark.parametrize("family", [SIMD, STFT_SIMD])
@pytest.mark.parametrize(("width", "lanes"), [(32, {8}), (64, {8, 16})])
def test_the_untuned_choice_has_the_width_of_the_processor(opencl_device, family, width, lanes):
    """Without tuning, lanes fill a register; the tuner tries narrower vectors too, none wider."""
    device = replace(opencl_device, kind="cpu", vector_bytes=width)
    spec = TransformSpec(1024) if family is SIMD else StftSpec(1024, 1024)
    assert untuned(family, spec, device).lanes == max(lanes)
    assert {shape.lanes for shape in family.candidates(spec, device)} == lanes
