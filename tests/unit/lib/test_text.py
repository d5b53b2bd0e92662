"""Conversion of text from outside to one harmless line."""

import json
import os
import time
from pathlib import Path

import pytest

from spectrod.lib.events import EventLog
from spectrod.lib.stats import CaptureStats, Stats
from spectrod.lib.text import TEXT_MAX_CHARS, json_text, printable, printable_all


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("soundcard:\x1b[31mRED\x1b]0;pwned\x07", r"soundcard:\x1b[31mRED\x1b]0;pwned\x07"),
        ("a.wav\n2026-01-01 ERROR forged", r"a.wav\n2026-01-01 ERROR forged"),
        ("a\rb\tc\0d\x7f", r"a\rb\tc\x00d\x7f"),
        ("csi \x9b31m next line \x85", r"csi \u009b31m next line \u0085"),
        ("line \u2028 paragraph \u2029", r"line \u2028 paragraph \u2029"),
        ("song\u202e3pm.exe\u202c", r"song\u202e3pm.exe\u202c"),
        ("\u2066isolate\u2069", r"\u2066isolate\u2069"),
        ("zero\u200bwidth\ufeff soft\xad", r"zero\u200bwidth\ufeff soft\u00ad"),
        ("tag \U000e0041 private \ue000", r"tag \U000e0041 private \ue000"),
        ("no-break\xa0space", r"no-break\u00a0space"),
        (os.fsdecode(b"caf\xe9.wav"), r"caf\xe9.wav"),
        ("lone \ud83d \udc00 \udfff", r"lone \ud83d \udc00 \udfff"),
    ],
)
def test_control_sequences_are_escaped(text, shown):
    """Controls, line breaks, bidirectional overrides, invisible characters and bytes show."""
    assert printable(text) == shown


@pytest.mark.parametrize(
    "text", ["", "Café Müller µPa², 日本語 🎤.wav", "C:\\x1b", "a  b ' \" < &"]
)
def test_ordinary_text_stays_as_it_is(text):
    """Names in any script, quotes and backslashes stay unchanged."""
    assert printable(text) == text


def test_bytes_and_paths_are_taken_as_well():
    """Bytes are decoded as UTF-8, and an invalid byte is shown as a byte."""
    assert printable("Café".encode()) == "Café"
    assert printable(b"caf\xe9\n\xff") == r"caf\xe9\n\xff"
    assert printable(Path(os.fsdecode(b"/srv/\xff"))) == r"/srv/\xff"


@pytest.mark.parametrize("max_chars", [3, 10, 11, TEXT_MAX_CHARS])
@pytest.mark.parametrize("text", ["x" * 10_001, "é".encode() * 10_001, "🎤".encode() * 10_001])
def test_a_long_text_loses_its_middle(text, max_chars):
    """A long text is cut in the middle to exactly the limit, with both ends kept."""
    shown = printable(text, max_chars)
    first, dots, last = shown.partition("...")
    assert dots
    assert len(shown) == max_chars
    assert len(first) - len(last) in (0, 1)
    assert set(first + last) <= set(printable(text[:4], 10))


def test_the_bound_counts_escapes():
    """The limit counts escapes with their whole length and cuts none."""
    assert printable("\x1b" * 5, 20) == r"\x1b" * 5
    assert printable("\x1b" * 6, 20) == r"\x1b\x1b...\x1b\x1b"
    assert printable("x" * 20, 20) == "x" * 20
    assert printable("é".encode() * 20, 20) == "é" * 20


def test_a_huge_text_costs_no_more_than_its_ends():
    """A peer's hundred million bytes are cut before they are escaped."""
    huge = bytes(100_000_000)
    begin_s = time.process_time()
    assert len(printable(huge)) <= TEXT_MAX_CHARS
    assert time.process_time() - begin_s < 1.0  # an escape of all would take a minute


def test_a_bound_without_room_for_the_dots_is_refused():
    """A limit below three characters, the length of the dots, is refused."""
    with pytest.raises(ValueError, match="max_chars=2: must be at least 3"):
        printable("abc", 2)


def test_all_texts_of_a_value_are_made_printable():
    """All strings of a value, keys included, are escaped; numbers stay and tuples become lists."""
    value = {"a\x1b": ["b\n", 1, None, ("c\udce9", True)], 2: 0.5}
    assert printable_all(value) == {r"a\x1b": [r"b\n", 1, None, [r"c\xe9", True]], 2: 0.5}


def test_a_value_that_is_nested_without_end_is_cut_off():
    """A value of any depth is cut off without recursion."""
    value = "x"
    for _ in range(100_000):
        value = [value]
    shown = printable_all(value)
    assert str(shown) == 32 * "[" + "'...'" + 32 * "]"
    while value != "x":  # the interpreter would free the rest recursively
        (value,) = value


def test_json_keeps_texts_unless_they_are_not_unicode():
    """JSON is ASCII without lone surrogates, which strict readers refuse."""
    assert json.loads(json_text({"a": "é\x1b\u202e"})) == {"a": "é\x1b\u202e"}
    assert json_text(["é\x9b", 1.5]) == r'["\u00e9\u009b", 1.5]'
    assert json.loads(json_text({"a\udce9": "é\n\ud800"})) == {r"a\xe9": r"é\n\ud800"}
    assert json_text({"a": 1}, indent=2) == '{\n  "a": 1\n}'


def test_text_for_people_is_printable():
    """Text in events and statistics, for logs, messages and replies, is printable."""
    event = EventLog().add("record.deleted", "caf\udce9.wav\n", who="\x1b")
    assert (event.text, event.who) == (r"caf\xe9.wav\n", r"\x1b")
    assert CaptureStats(waiting_for="f\udcff").waiting_for == r"f\xff"
    stats = Stats("running", "a\n", "b\x1b", 1.0, 1, checks=("c\x07",))
    assert (stats.source, stats.engine, stats.checks) == (r"a\n", r"b\x1b", (r"c\x07",))
