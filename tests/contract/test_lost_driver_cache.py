"""Binaries of a driver whose cache was removed meanwhile."""

import os
import re

import pyopencl as cl
import pytest

from spectrod.lib.errors import DeviceError
from spectrod.opencl.binaries import binary_of, has_program, sound_binary_of
from spectrod.opencl.driver_cache import POCL, driver_cache_folder

HASH = re.compile(rb"[A-P]{2}/[A-P]{37}")


@pytest.fixture
def build(opencl_device):
    """Return a function that builds the same program again, which no other test has."""
    if opencl_device.platform != POCL:
        pytest.skip("the driver keeps no files of programs")
    context = cl.Context([opencl_device.handle])
    source = f"__kernel void k(__global int *x) {{ x[0] = {os.getpid()}; }}"
    return lambda: cl.Program(context, source).build(cache_dir=False)


def test_a_program_that_the_driver_has_lost_is_not_stored(opencl_device, build):
    """PoCL gives a binary without code, which would end the process that loads it."""
    binary = sound_binary_of(opencl_device, build())
    assert has_program(binary)
    again = build()
    folder = driver_cache_folder() / HASH.search(binary).group().decode()
    (folder / "program.bc").unlink()
    with pytest.raises(DeviceError, match=r": its cache has lost a program$"):
        sound_binary_of(opencl_device, again)
    assert not has_program(binary_of(again))


@pytest.mark.parametrize(
    "binary",
    [
        b"",
        b"poclbin",
        b"/program.bc",
        b"/program.bc\1",
        b"/program.bc\0\0\0\0rest",
        b"/program.bc\5\0\0\0BC..",
    ],
)
def test_binaries_without_a_program_are_found(binary):
    """A binary that was cut, or whose program has no bytes, has no program."""
    assert not has_program(binary)
