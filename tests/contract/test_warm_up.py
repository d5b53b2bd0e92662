"""Compilation before the first samples."""

from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.opencl_engine import OpenCLEngine
from spectrod.analysis.stream import FrameStream
from spectrod.analysis.warm_up import CompilerJob, CompilerProcess, warm_up, warm_up_in_process
from spectrod.dsp.blocks import Block
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import DeviceError
from spectrod.opencl.binaries import binary_of


@pytest.mark.slow
@pytest.mark.parametrize(("sample_format", "dtype"), [("float32", np.float32), ("int16", np.int16)])
def test_compiled_programs_are_stored_before_the_first_samples(
    opencl_device, tmp_path, monkeypatch, sample_format, dtype
):
    """After the warm-up, the cache holds all programs and neither frames nor the end add one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine = OpenCLEngine(opencl_device)
    spec = SpectrumSpec(48000.0, 2, win_length=250, hop=100)
    warm_up(engine, [spec], SampleLayout(sample_format, 2))
    kept = sorted(tmp_path.rglob("*"))
    assert len(kept) > 1
    stream = FrameStream(spec, engine, sample_format=sample_format)
    assert stream.push(Block(np.ones((2, 2000), dtype), 0, 0, 0))
    engine.close()
    assert sorted(tmp_path.rglob("*")) == kept


def test_a_binary_is_the_one_that_pyopencl_has(opencl_device):
    """Binaries read without pyopencl, which would block all threads, equal those of pyopencl."""
    context = cl.Context([opencl_device.handle])
    built = cl.Program(context, "__kernel void f(__global int *x) { x[0] = 1; }").build()
    assert binary_of(built) == built.get_info(cl.program_info.BINARIES)[0]
    with pytest.raises(DeviceError, match=r"no binary of a program: OpenCL error -44$"):
        binary_of(SimpleNamespace(int_ptr=0))


@pytest.mark.slow
def test_a_failed_compilation_in_advance_is_logged(caplog):
    """A failed compilation in the warm-up is logged and no error, and NumPy needs none."""
    spec = SpectrumSpec(48000.0, 2, win_length=250, hop=100)
    layout = SampleLayout(channels=2)
    warm_up_in_process(NumpyEngine(), [spec], layout)
    assert caplog.messages == []
    warm_up_in_process(SimpleNamespace(name="opencl:Nobody/Nothing"), [spec], layout)
    (message,) = caplog.messages
    assert message.startswith("could not compile kernels in advance; spectra may be late: ")
    assert "device='Nobody/Nothing': no OpenCL device fits" in message or (
        "no OpenCL platform has a device" in message
    )


@pytest.mark.parametrize("number", ["ABRT", "SEGV"])
def test_a_driver_that_crashes_is_an_error(monkeypatch, number):
    """A crash in the process that compiles is a DeviceError, so that nobody compiles here."""
    command = ["sh", "-c", f"echo 'LLVM ERROR: no space' >&2; kill -{number} $$"]
    monkeypatch.setattr(CompilerJob, "command", property(lambda _: command))
    job = CompilerJob.of([SpectrumSpec(48000.0, 1)], SampleLayout())
    with pytest.raises(DeviceError) as caught:
        CompilerProcess().run(job)
    assert str(caught.value) == (f"the OpenCL driver crashed (SIG{number}): LLVM ERROR: no space")


@pytest.mark.parametrize("hop", [1, 1 << 20])
def test_hops_of_any_length_are_warmed_up(hop):
    """The warm-up of long hops takes no memory for many frames."""
    warm_up(NumpyEngine(), [SpectrumSpec(48000.0, 3, win_length=17, hop=hop)], SampleLayout())
