"""The code of docs/coming-from.md: SciPy's and librosa's spectra beside ours."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/coming-from.md"
_FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PRELUDE, *BLOCKS = _FENCE.findall(PAGE.read_text("utf-8"))


def is_of_librosa(block):
    return "import librosa" in block


def run(block):
    exec(compile(PRELUDE + block, PAGE, "exec"), {})  # noqa: S102  # of our own page


@pytest.mark.parametrize("block", [one for one in BLOCKS if not is_of_librosa(one)])
def test_blocks_of_scipy(block):
    """They hold what they assert."""
    assert "assert" in block
    run(block)


@pytest.mark.extended
@pytest.mark.parametrize("block", [one for one in BLOCKS if is_of_librosa(one)])
def test_blocks_of_librosa(block):
    """They hold what they assert."""
    pytest.importorskip("librosa", reason="is of the group reference")
    assert "assert" in block
    run(block)


def test_the_page_has_both_kinds_of_blocks():
    """What is not found is not run."""
    assert [is_of_librosa(block) for block in BLOCKS] == [False, False, False, True, True, True]
