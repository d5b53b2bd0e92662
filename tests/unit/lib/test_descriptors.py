"""The limit of open descriptors, in processes that set their own limit."""

import subprocess
import sys

import pytest

from spectrod.lib.descriptors import raise_limit

PROGRAM = """
import resource
from spectrod.lib.descriptors import current_limit, raise_limit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(current_limit(), raise_limit(), current_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("soft", "hard", "becomes"), [(200, 300, 300), (300, 300, 300), (201, 1024, 1024)]
)
def test_the_soft_limit_becomes_the_hard_one(soft, hard, becomes):
    """The soft limit is raised to the hard limit, which stays unchanged."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(soft=soft, hard=hard)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(n) for n in (soft, becomes, becomes, becomes, hard)]


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        ((1024, 1 << 20), (65536, 1 << 20)),
        ((1024, -1), (65536, -1)),
        ((100_000, 1 << 20), None),
        ((-1, -1), None),
    ],
)
def test_no_more_than_65536_is_asked_for(monkeypatch, limits, asked):
    """The limit is raised to 65536 at most, because kernels allocate a table of that size."""
    set_to = []
    monkeypatch.setattr("resource.getrlimit", lambda _: limits)
    monkeypatch.setattr("resource.setrlimit", lambda _, pair: set_to.append(pair))
    raise_limit()
    assert set_to == ([] if asked is None else [asked])
