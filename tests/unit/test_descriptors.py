"""The limit of open descriptors, in processes that have a limit of their own."""

import subprocess
import sys

import pytest

from spectrod.descriptors import raise_limit

PROGRAM = """
import resource
from spectrod.descriptors import current_limit, raise_limit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(current_limit(), raise_limit(), current_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("soft", "hard", "becomes"), [(200, 300, 300), (300, 300, 300), (201, 1024, 1024)]
)
def test_the_soft_limit_becomes_the_hard_one(soft, hard, becomes):
    """What the system allows is used; the hard limit stays."""
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
    """Some systems allow a thousand million, and the kernel makes a table of them."""
    set_to = []
    monkeypatch.setattr("resource.getrlimit", lambda _: limits)
    monkeypatch.setattr("resource.setrlimit", lambda _, wanted: set_to.append(wanted))
    raise_limit()
    assert set_to == ([] if asked is None else [asked])
