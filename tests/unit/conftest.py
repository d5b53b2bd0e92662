"""Helpers that the tests of several sources share."""

import codecs
import re

import numpy as np
import pytest

from spectrod.analysis.samples import to_float32
from spectrod.source.ring import SampleRing


@pytest.fixture
def collect():
    """Read a source, through a ring if it has one, and join its blocks between gaps.

    The run stops at the end of the source or after a given number of samples. Returns a list of
    (sample index, (channels, n) samples, monotonic ns, UTC ns), one entry for each stretch without
    a gap.
    """

    def run(source, n_samples=None, capacity=None):
        ring = source.open_reader()
        if capacity and isinstance(ring, SampleRing):
            ring.release()
            ring = SampleRing(source.fs, source.channels, capacity)
        source.start(ring)
        stretches = []
        n_left = float("inf") if n_samples is None else n_samples
        while not ring.exhausted and n_left > 0:
            block = ring.read(int(min(1 << 17, n_left)))
            if block is None:
                assert ring.wait(10.0), "the source delivers nothing"
                continue
            if block.discontinuity or not stretches:
                stretches.append((block.sample_index, [], block.t_mono_ns, block.t_utc_ns))
            stretches[-1][1].append(to_float32(block.samples, ring.layout.sample_format))
            n_left -= block.n_samples
        source.stop()
        ring.release()
        if source.failure:
            raise source.failure
        return [
            (index, np.concatenate(parts, axis=1), *times) for index, parts, *times in stretches
        ]

    return run


class ScreenModel:
    """What a terminal shows: the sequences that pictures use, by ECMA-48 and xterm's manual.

    Any other sequence is an error, so that a picture cannot depend on one that is not modelled.
    """

    _TOKEN = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b(.)|([\x00-\x1f])|([^\x1b\x00-\x1f]+)")

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.modes = set()
        self.overflowed = False
        """Whether there was text beyond the last column."""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = ""
        self._clear()
        self._region = 0, rows

    def _clear(self):
        self.cells = [[(" ", "")] * self.columns for _ in range(self.rows)]
        self.row = self.column = 0
        self.pen = ""

    def lines(self):
        return ["".join(cell[0] for cell in row).rstrip() for row in self.cells]

    def feed(self, data):
        # CAN ends what was being sent, in the middle of a character or of a sequence.
        for k, part in enumerate(data.split(b"\x18")):
            if k:
                self._decoder.reset()
                self._rest = ""
            self._feed(part)

    def _feed(self, data):
        text = self._rest + self._decoder.decode(data)
        end = text.rfind("\x1b")
        whole = end < 0 or re.match(r"\x1b\[[?0-9;]*[A-Za-z]|\x1b[^\[]", text[end:])
        text, self._rest = (text, "") if whole else (text[:end], text[end:])
        at = 0
        while at < len(text):
            token = self._TOKEN.match(text, at)
            assert token, f"unknown sequence {text[at : at + 20]!r}"
            parameters, final, escape, control, plain = token.groups()
            assert escape in (None, "M"), f"unknown escape {escape!r}"
            if escape:
                self._reverse_feed()
            elif final:
                self._control(parameters, final)
            elif control in ("\r", "\n"):
                self._move((self.row, 0) if control == "\r" else (self.row + 1, self.column))
            elif plain:
                self._write(plain)
            at = token.end()

    def _move(self, place):
        self.row, self.column = min(place[0], self.rows - 1), min(place[1], self.columns - 1)

    def _reverse_feed(self):
        """Move the cursor up, or at the top of the scrolling region its lines down."""
        first, last = self._region
        if self.row == first:
            empty = [(" ", self.pen)] * self.columns
            self.cells[first:last] = [empty, *self.cells[first : last - 1]]
        else:
            self.row = max(0, self.row - 1)

    def _write(self, text):
        for character in text:
            if self.column < self.columns:
                self.cells[self.row][self.column] = character, self.pen
            else:
                self.overflowed = True
            self.column += 1

    def _control(self, parameters, final):
        if final == "c":
            return  # a question, which a pseudo-terminal does not answer
        if final in "hl":
            (self.modes.add if final == "h" else self.modes.discard)(parameters)
            if parameters == "?1049":
                self._clear()
            return
        numbers = [int(one or 0) for one in parameters.split(";")] if parameters else []
        first, last = self._region
        if final == "H":
            row, column = numbers or (1, 1)
            self._move((row - 1, column - 1))
        elif final == "m":
            self.pen = "" if numbers in ([], [0]) else f"{self.pen};{parameters}"
        elif final == "J":
            assert numbers == [2]
            place = self.row, self.column
            self._clear()
            self._move(place)
        elif final == "r":
            self._region = (numbers[0] - 1, numbers[1]) if numbers else (0, self.rows)
            self._move((0, 0))
        elif final == "L":
            assert first <= self.row < last
            empty = [[(" ", self.pen)] * self.columns for _ in range(numbers[0])]
            self.cells[self.row : last] = (empty + self.cells[self.row : last])[: last - self.row]
        else:
            raise AssertionError(f"unknown control {parameters}{final}")


@pytest.fixture
def screen_model():
    """Make a model of a terminal of a number of columns and rows."""
    return ScreenModel


class _Overtaken(np.ndarray):
    """Calls a function once something is stored in it or in a slice of it."""

    def __array_finalize__(self, whole):
        self.calls = getattr(whole, "calls", [])

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if self.calls:
            self.calls.pop()()


@pytest.fixture
def overtaken():
    """Return a view of an array that calls a function once, when samples are copied into it."""

    def view_of(samples, meanwhile):
        view = samples.view(_Overtaken)
        view.calls.append(meanwhile)
        return view

    return view_of
