"""Positions of keys in TOML, in documents that are written together with them."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectrod.config.toml_text import Position, parse_toml
from spectrod.lib.errors import ConfigError

_KEYS = st.one_of(
    st.from_regex(r"[a-z0-9_-]{1,6}", fullmatch=True).map(lambda key: (key, key)),
    st.from_regex(r"[a-z .=#\[\]]{0,6}", fullmatch=True).map(lambda key: (key, f'"{key}"')),
    st.from_regex(r"[a-z .=#\[\]\"]{0,6}", fullmatch=True).map(lambda key: (key, f"'{key}'")),
)
_SCALARS = st.sampled_from(
    [
        *("0", "-1", "+1_000", "0xff", "1.5e-3", "-inf", "nan", "true", "false"),
        *("1979-05-27T07:32:00Z", "1979-05-27 07:32:00", "1979-05-27", "07:32:00"),
        *('""', "''", '"a # b"', "'a = \"b\"'", '"\\"]"', '"ü\\u00e9"'),
        *("'''\n[x]\na = 1'''", "''''a'''", '"""\nb = "" 2\n"""'),
        *('"""x\\\\"""', '"""a""""', '"""\\"""a"""'),
    ]
)
_BREAKS = st.sampled_from(["", " ", "\n", " # [x] = 'y\n", "\r\n\t"])


class _Writer:
    """Writes a document, and where each key and item begins."""

    def __init__(self, draw):
        self.draw, self.text, self.expected = draw, "", {}

    def write(self, text):
        self.text += text

    def mark(self, path):
        line = self.text.count("\n") + 1
        column = len(self.text) - (self.text.rfind("\n") + 1) + 1
        self.expected.setdefault(path, Position(line, column))

    def key(self, path, written):
        """Write a key, with its parts already chosen."""
        for k, (_, text) in enumerate(written):
            self.mark(path + tuple(key for key, _ in written[: k + 1]))
            self.write(text)
            if k < len(written) - 1:
                self.write(self.draw(st.sampled_from([".", " . "])))

    def value(self, path, depth):
        kind = self.draw(st.sampled_from(["scalar", "scalar", "array", "table"]))
        if kind == "array" and depth < 2:
            self.array(path, depth)
        elif kind == "table" and depth < 2:
            self.inline_table(path, depth)
        else:
            self.write(self.draw(_SCALARS))

    def array(self, path, depth):
        n = self.draw(st.integers(0, 3))
        self.write("[")
        for k in range(n):
            self.write(self.draw(_BREAKS))
            self.mark((*path, k))
            self.value((*path, k), depth + 1)
            self.write(self.draw(_BREAKS))
            if k < n - 1 or self.draw(st.booleans()):
                self.write(",")
        self.write(self.draw(_BREAKS) + "]")

    def inline_table(self, path, depth):
        keys = self.draw(st.lists(_KEYS, max_size=3, unique_by=lambda key: key[0]))
        self.write("{")
        for k, key in enumerate(keys):
            self.write(", " if k else " ")
            self.key(path, [key])
            self.write(" = ")
            self.value((*path, key[0]), depth + 1)
        self.write(" }")


@st.composite
def documents(draw):
    """Draw a document and the expected positions."""
    writer = _Writer(draw)
    names = draw(st.lists(_KEYS, min_size=1, max_size=6, unique_by=lambda key: key[0]))
    table, arrays = (), {}
    for name in names:
        writer.write(draw(st.sampled_from(["", "\n", "  # note = 1\n", "\t"])))
        kind = draw(st.sampled_from(["key", "key", "dotted", "header", "array"]))
        if kind in ("key", "dotted"):
            written = [name, draw(_KEYS)] if kind == "dotted" else [name]
            writer.key(table, written)
            writer.write(draw(st.sampled_from(["=", " =\t"])))
            writer.value((*table, *(key for key, _ in written)), 0)
        elif kind == "header":
            writer.write("[ ")
            writer.key((), [name])
            writer.write("]")
            table = (name[0],)
        else:
            writer.write("[[")
            writer.mark((name[0], 0))
            writer.key((), [name])
            writer.write(" ]]")
            arrays[name[0]] = table = (name[0], 0)
        writer.write(draw(st.sampled_from(["\n", " # [end]\n", "\r\n"])))
    return writer.text, writer.expected


@given(documents())
def test_every_key_and_item_has_its_position(document):
    """Each key, table and item stands where the writer put it; nothing else has a position."""
    text, expected = document
    # NB: CR LF counts as the end of a line, so that columns are not moved.
    parsed = parse_toml(text, "c.toml")
    assert repr(parsed.data) == repr(tomllib.loads(text))
    assert dict(parsed.positions) == expected


@given(documents())
def test_a_broken_line_is_named(document):
    """A line that is no statement is named with its place, after any valid text."""
    text, _ = document
    whole = f"{text}= 2\n{text}"
    line = text.count("\n") + 1
    with pytest.raises(ConfigError, match=rf"^c\.toml:{line}:1: not valid TOML: "):
        parse_toml(whole, "c.toml")
