"""The Python of docs/triggers.md runs as it is, and finds the call that it plants."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "triggers.md"


def test_the_fragment_finds_its_call(capsys):
    """The fragment prints one event, within a frame and a hop of the call and with its peak."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec(code, {})  # noqa: S102 - the page's own code
    begin_s, duration_s, text = capsys.readouterr().out.rstrip("\n").split(" ", 2)
    span_s = (4096 + 1024) / 48_000  # rows that hold a part of the call are in the event
    assert 0.5 - span_s <= float(begin_s) <= 0.5
    assert 1.0 <= float(begin_s) + float(duration_s) <= 1.0 + span_s
    assert text.startswith("bin at 3000 Hz, channel 0: ")
