"""SciPy's own FFT tests with spectrod as the backend: what passes, and who computed it.

    python benchmarks/scipy_suite.py [--device NAME] [--always] [--list] [pytest's arguments]

The tests that call a function of spectrod with arguments that it leaves to SciPy are listed apart.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.fft

import spectrod.fft
from spectrod.fft import scipy_backend

_SEED = 1
MODULES = ("test_basic", "test_multithreading", "test_helper")


class Recorder:
    """The backend, and a pytest plugin that notes for each test who answered its calls."""

    __ua_domain__ = scipy_backend.__ua_domain__

    def __init__(self) -> None:
        self.left: Counter[str] = Counter()
        self.outcomes: dict[str, tuple[str, str]] = {}
        self._calls: Counter[bool] = Counter()

    def __ua_function__(
        self, method: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """Ask the backend."""
        result = scipy_backend.__ua_function__(method, args, kwargs)
        is_computed_here = result is not NotImplemented
        self._calls[is_computed_here] += 1
        if not is_computed_here:
            self.left[method.__name__] += 1
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Restart the count for each test, and the numbers that it draws.

        Some compare relative errors of a round trip, which a number near 0 does not pass.
        """
        self._calls.clear()
        np.random.seed(_SEED)  # noqa: NPY002 - it is the generator that SciPy's tests draw from
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome and who computed."""
        if report.when == "call" or report.skipped:
            whose = {
                (True, True): "ours and SciPy's",
                (True, False): "ours alone",
                (False, True): "SciPy's alone",
            }.get((self._calls[True] > 0, self._calls[False] > 0), "no transform")
            self.outcomes[report.nodeid] = report.outcome, whose


def main() -> int:
    """Run the tests and print the counts; pytest's exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="", help="part of PLATFORM/DEVICE")
    parser.add_argument("--list", action="store_true", help="every test, and who computed it")
    parser.add_argument(
        "--always", action="store_true", help="the device computes every call, also small ones"
    )
    options, rest = parser.parse_known_args()
    device = spectrod.fft.use_device(options.device, always=options.always)
    recorder = Recorder()
    scipy.fft.set_global_backend(recorder)
    scipy.fft.register_backend("scipy")  # what is left has to be somebody's
    modules = [f"scipy.fft.tests.{name}" for name in MODULES]
    # The configuration of a folder that this is started in is not SciPy's.
    options_here = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--pyargs"]
    status = pytest.main([*options_here, *modules, *rest], plugins=[recorder])
    print(f"\n{device.label}, SciPy {scipy.__version__}")
    if options.list:
        for name, (outcome, whose) in recorder.outcomes.items():
            print(f"{name.partition('::')[2]}: {outcome}, computed by {whose}")
    for (outcome, whose), count in sorted(Counter(recorder.outcomes.values()).items()):
        print(f"{count:5} {outcome}, computed by {whose}")
    print("left to SciPy:", ", ".join(f"{name} {n}" for name, n in recorder.left.most_common()))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
