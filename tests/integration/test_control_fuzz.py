"""A seeded part of ``benchmarks/control_fuzz.py`` against a daemon."""

import importlib.util
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def fuzz():
    """Load the script as a module."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location(
            "control_fuzz", BENCHMARKS / "control_fuzz.py"
        )
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


def test_the_same_seed_makes_the_same_requests(fuzz):
    """The same seed gives the same requests, so a failure can be reproduced."""
    first, second = (iter(fuzz.Requests(1)) for _ in range(2))
    made = [next(first) for _ in range(1000)]
    assert made == [next(second) for _ in range(1000)]
    assert len({len(parts) for parts in made}) > 2


@pytest.mark.extended
@pytest.mark.slow
def test_20_000_requests_of_all_sorts_are_answered_and_leave_nothing_behind(fuzz, tmp_path):
    """The daemon answers 20 000 requests beside raw garbage and releases all resources."""
    rng = random.Random(1)  # noqa: S311 - no secrets
    codes = Counter()
    requests = fuzz.Requests(1)
    with fuzz.DaemonProcess(tmp_path) as daemon:
        codes += fuzz.bombard(daemon.endpoint, requests, 1000)
        before = daemon.vitals()
        for _ in range(4):
            codes += fuzz.bombard(daemon.endpoint, requests, 5000)
            for port in (daemon.control_port, daemon.publish_port):
                for _ in range(25):
                    fuzz.throw_garbage(port, rng)
        daemon.check_alive()
        after = daemon.vitals()
    assert codes.total() >= 20_000
    assert {"ok", "bad_request", "bad_params", "not_found", "refused"} <= set(codes)
    assert "internal" not in codes
    assert daemon.process.returncode == 0
    assert "Traceback" not in daemon.log
    assert after["threads"] <= before["threads"] + 3  # pyzmq's own, from the first large reply on
    assert after["rss_kb"] < before["rss_kb"] + 50_000
