"""Every kernel under oclgrind, which detects races and accesses out of bounds."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).with_name("checked_kernels.py")
NAMES = [
    *("local", "local-passes", "local-sections", "local-r2c", "local-c2r", "multipass", "real"),
    *("multipass-r2c", "multipass-c2r", "stft-multipass"),
    *("bluestein", "simd", "simd-r2c", "radix2", "inplace"),
    *("stft-general", "stft-endless", "stft-bands"),
    *("stft-local", "stft-local-bands", "stft-local-whole"),
    *("transpose", "transpose-registers", "transpose-naive", "image"),
]
# Its compiler counts its warnings there, which are no findings of the simulator.
COMPILER = re.compile(r"^\d+ warnings? generated\.\n", re.MULTILINE)

pytestmark = [
    pytest.mark.extended,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("oclgrind") is None, reason="oclgrind is not installed"),
]


@pytest.mark.parametrize("name", NAMES)
def test_no_races_and_nothing_out_of_bounds(tmp_path, name):
    """The result of each kernel is right, and the simulator reports nothing."""
    done = subprocess.run(
        ["oclgrind", "--data-races", sys.executable, KERNELS, name],
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    report = COMPILER.sub("", done.stdout + done.stderr)
    assert (done.returncode, report) == (0, "")
