"""The Python of docs/triggers.md runs as it is, and finds the call that it plants."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "triggers.md"


def test_the_fragment_finds_its_call(capsys):
    """The page's fragment prints the begin and the end of one event, whose peak is at 3 kHz."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec(code, {})  # noqa: S102 - the page's own code
    begun, ended = capsys.readouterr().out.splitlines()
    assert begun.startswith("begun bin at ")
    assert ended.startswith("ended bin at 3000 Hz, channel 0: ")
    assert "released after" in ended
