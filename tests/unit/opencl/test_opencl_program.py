from contextlib import nullcontext
from types import SimpleNamespace

import pyopencl as cl
import pytest

from spectrod.lib.errors import DeviceError, KernelBuildError
from spectrod.opencl import program
from spectrod.opencl.program import Programs
from spectrod.opencl.program_cache import BinaryCache

DEVICE = SimpleNamespace(
    platform="Portable", name="EPYC", label="Portable/EPYC", driver="3.0", handle=None
)


@pytest.fixture
def cache(tmp_path):
    return BinaryCache(tmp_path / "programs")


def refusal(log):
    """Return the error of a driver whose compiler refuses a program."""
    code = cl.status_code.BUILD_PROGRAM_FAILURE
    return cl.RuntimeError(cl._cl._ErrorRecord(msg=log, code=code, routine="clBuildProgram"))


def broken_compiler(*_):
    """Fail as PoCL does on an unknown processor."""
    raise refusal("\n\nBuild on <device>:\n\nerror: unknown target CPU 'generic'\nmore")


def test_a_compiler_that_refuses_everything_is_one_line(cache):
    """The error of a device that compiles nothing is one line with its name and a reason."""
    with pytest.raises(DeviceError, match="its compiler refuses every program") as caught:
        Programs(None, DEVICE, cache, compiler=broken_compiler).check_compiler()
    assert str(caught.value) == (
        "Portable/EPYC (driver 3.0): its compiler refuses every program: "
        "error: unknown target CPU 'generic'"
    )


@pytest.mark.parametrize(
    ("logs", "is_refused", "is_stored"),
    [
        (["", None], False, True),
        (["", ""], True, False),
        (["error: no space", "error: unknown target"], True, True),
    ],
)
def test_a_failure_of_the_driver_is_not_kept_as_a_refusal(
    cache, monkeypatch, logs, is_refused, is_stored
):
    """A build is tried twice; only what a compiler complains of stops later processes."""
    results = iter(logs)

    def build(*_):
        if (log := next(results)) is not None:
            raise refusal(f"failed\n{log}")

    monkeypatch.setattr(program, "sound_binary_of", lambda *_: b"binary")
    programs = Programs(None, DEVICE, cache, compiler=build)
    with pytest.raises(DeviceError, match="refuses every") if is_refused else nullcontext():
        programs.check_compiler()
    programs.store()
    key = program.cache_key(DEVICE, program._PROBE)
    assert (cache.load(key) is not None) == is_stored


def test_a_build_error_has_device_options_and_log(cache):
    """A build error has the device, the options and the compiler's log."""
    programs = Programs(None, DEVICE, cache, compiler=broken_compiler)
    with pytest.raises(KernelBuildError) as caught:
        programs.get("transpose.cl", (("TILE", 16),))
    text = str(caught.value)
    assert text.startswith(
        "transpose.cl does not compile for Portable/EPYC (driver 3.0) with -cl-std=CL1.2 -DTILE=16:"
    )
    assert "unknown target CPU" in text
