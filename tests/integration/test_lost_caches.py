"""Caches of kernels that are harmed under a process that computes, with the real driver."""

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.extended, pytest.mark.opencl]

PROGRAM = """
import logging, os, resource, shutil, sys
from pathlib import Path
import numpy as np
from spectrod.analysis.live_engine import LiveEngine
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec

def push(stream, n=1280):
    first = stream.next_index or 0
    samples = np.sin(np.arange(first, first + n, dtype=np.float32))[np.newaxis]
    batches = stream.push(Block(samples, first, 0, 0)) + stream.flush()
    assert all(np.isfinite(one.values).all() for one in batches)
    assert [one.gap_samples for one in batches] == [0] * len(batches)
    return batches[-1].engine.partition(":")[0]

def settle():
    for compilation in engine._compilations:
        assert compilation.wait(300.0)

logging.basicConfig(format="%(levelname)s %(message)s", stream=sys.stdout)
cache, harm = Path(os.environ["XDG_CACHE_HOME"]), sys.argv[1]
engine = LiveEngine("mic")
first = engine.open_stream(SpectrumSpec(8000.0, 1, win_length=128, hop=64), max_latency_s=np.inf)
print("first", push(first))
settle()
print("moved", push(first))
if harm in ("gone", "file"):
    shutil.rmtree(cache)
if harm == "file":
    cache.write_bytes(b"")
if harm == "full":
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
print("harmed", push(first))
second = engine.open_stream(SpectrumSpec(8000.0, 1, win_length=250, hop=64), max_latency_s=np.inf)
print("other", push(second))
settle()
print("other", push(second))
print("harmed", push(first))
engine.close()
others = [path.name for path in cache.glob("spectrod/programs/*") if path.suffix != ".bin"]
print("closed", others)
"""
BEFORE = ["first numpy", "moved opencl", "harmed opencl", "other numpy"]
AFTER = ["harmed opencl", "closed []"]


# Compilation beside a stream has a low priority: other tests hold it up, for 50 s at times.
@pytest.mark.alone
@pytest.mark.parametrize(
    ("harm", "reason"),
    [("gone", ""), ("file", "Not a directory"), ("full", "File too large")],
)
def test_a_running_device_outlives_its_caches(tmp_path, harm, reason):
    """What runs stays on the device; what is new is compiled, or NumPy's with one warning."""
    cache = tmp_path / "cache"
    cache.mkdir()
    environ = os.environ | {"XDG_CACHE_HOME": str(cache), "POCL_WORK_GROUP_SPECIALIZATION": "0"}
    environ.pop("POCL_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, harm],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    if reason:
        (warning,) = (line for line in lines if line.startswith("WARNING"))
        assert warning.startswith("WARNING cannot compile kernels: ")
        assert warning.endswith(f"PoCL's cache cannot be written: {reason}")
        lines.remove(warning)
        assert lines == [*BEFORE, "other numpy", *AFTER]
    else:
        assert lines == [*BEFORE, "other opencl", *AFTER]
