"""SciPy's own tests of its FFTs, with spectrod as the backend."""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scipy_suite.py"
LINE = re.compile(r"([\w:]+)(\[.*\])?: (\w+), computed by (.+)")

# Three axes, long double, hfft2 and hfftn, arrays of no axes: docs/fft.md says why.
LEFT_TO_SCIPY = {
    *("TestFFT::test_array_like", "TestFFT::test_axes_non_standard", "TestFFT::test_axes_standard"),
    *("TestFFT::test_axes_subset_with_shape_non_standard", "TestFFT::test_dtypes_nonstandard"),
    *("TestFFT::test_fft_n", "TestFFT::test_hfft2", "TestFFT::test_hfftn"),
    *("TestFFT::test_ihfftn", "TestFFT::test_irfftn", "TestFFT::test_rfftn"),
    *("test_fft_with_order", "test_threaded_same"),
}


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.timeout(400)  # it compiles hundreds of kernels
def test_scipys_own_tests(opencl_device):
    """All tests pass except one that compares differently rounded zeros."""
    options = ["--device", opencl_device.number, "--list", "-k", "not identity_extensive"]
    done = subprocess.run(
        [sys.executable, SCRIPT, *options],
        capture_output=True,
        text=True,
        timeout=360,
        check=False,
    )
    tests = defaultdict(list)
    for line in filter(None, map(LINE.fullmatch, done.stdout.splitlines())):
        name, values, outcome, whose = line.groups(default="")
        tests[outcome, whose].append((name, values))
    failed = {
        test for (outcome, _), found in tests.items() if outcome == "failed" for test in found
    }
    assert failed <= {("test_multiprocess", "[irfft]")}
    assert {name for name, _ in tests["passed", "SciPy's alone"]} == LEFT_TO_SCIPY
    assert len(tests["passed", "ours alone"]) >= 130
