"""Arbitrary text from outside becomes harmless."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectrod.lib.text import TEXT_MAX_CHARS, printable

code_points = st.integers(0, 0x10FFFF).map(chr)  # all of them, unlike st.characters()
controls = st.sampled_from("\0\n\r\x1b\x7f\x85\x9b\u061c\u200e\u202e\u2028\u2066\ud800\udce9\udfff")
texts = st.text(code_points | controls | st.characters()) | st.binary() | st.text(controls)
bounds = st.integers(3, 60) | st.just(TEXT_MAX_CHARS)


@pytest.mark.slow
@given(texts, bounds)
def test_any_text_becomes_a_harmless_line(text, max_chars):
    """Escaped text can be encoded, is bounded, has no control characters, and is stable."""
    shown = printable(text, max_chars)
    assert shown.encode().decode() == shown
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}
    assert len(shown) <= max_chars
    assert printable(shown, max_chars) == shown


@pytest.mark.slow
@given(st.text() | st.binary(), st.integers(3, 60), st.integers(1, 100))
def test_a_long_text_is_bounded_as_well(text, max_chars, times):
    """A short text repeated many times becomes printable and stays within the limit."""
    shown = printable(text * times, max_chars)
    assert shown.isprintable()
    assert len(shown) <= max_chars


@given(st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" ")))
def test_printable_text_is_not_changed(text):
    """A short text without characters to escape is unchanged."""
    assert printable(text, max(len(text), 3)) == text


@given(st.binary(max_size=50))
def test_bytes_and_their_surrogates_are_shown_alike(name):
    """A file name gives the same text as bytes and as ``str`` with surrogates."""
    assert printable(name) == printable(name.decode("utf-8", "surrogateescape"))
