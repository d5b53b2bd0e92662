"""Outputs of a recording, one in all or one for each period, and their failures."""

from pathlib import Path

import numpy as np
import pytest

from spectrod.cli.periods import Period
from spectrod.cli.record_files import RowFiles, finish_all
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.errors import ConfigError, InputError, StorageError
from spectrod.lib.output_formats import format_of, suffixes
from spectrod.recording.output_plan import check_outputs

FS, HOP = 1000.0, 100
SPEC = SpectrumSpec(FS, win_length=100, hop=HOP)
SECOND_NS = 10**9
BEGIN_NS = 1_777_609_800 * SECOND_NS


class Writer:
    """A writer that keeps its input and fails at a given point."""

    is_gone, size_bytes, cut_length = False, 0, 0

    def __init__(self, path, fails=""):
        self.path, self.fails = path, fails
        self.pieces, self.ends = [], []

    def fits(self, _piece):
        raise AssertionError("the analysis of a recording does not change")

    def write(self, piece):
        if self.fails == "write":
            raise StorageError(f"{self.path}: full")
        self.pieces.append(piece)

    def finish(self):
        if self.fails == "finish":
            raise StorageError(f"{self.path}: full")
        self.ends.append("finish")

    def abort(self):
        self.ends.append("abort")


class Making:
    """A factory that makes writers and keeps them by name."""

    def __init__(self, **fails):
        self.fails, self.made = fails, {}

    def __call__(self, path):
        self.made[path.name] = Writer(path, self.fails.get(path.name, ""))
        return self.made[path.name]


def second(begin_ns):
    return Path(f"s{(begin_ns - BEGIN_NS) // SECOND_NS}")


def rows(first, n, **settings):
    index = (first + np.arange(n, dtype=np.int64)) * HOP
    t_ns = BEGIN_NS + index * SECOND_NS // 1000
    values = index[:, np.newaxis, np.newaxis] + np.zeros((1, 1, SPEC.n_bins), np.float32)
    return SpectrumBatch(values, index, t_ns, t_ns, SPEC, "numpy", **settings)


def taken(writer):
    return [int(index) for batch in writer.pieces for index in batch.sample_index]


def test_a_clock_that_is_set_back_within_a_period_replaces_no_file():
    """If the clock is set back within a period, the period's file is continued, not replaced."""
    make = Making()
    files = RowFiles(lambda _: Path("x"), make, Period(60 * SECOND_NS))
    for first in (0, 300, 100):
        files.write(rows(first, 10))
    assert finish_all([files]) is None
    assert taken(make.made["x"])[::10] == [0, 30_000, 10_000]


def test_a_period_that_fails_leaves_the_others(caplog):
    """If one period's file fails, files before and after it are whole and the failure is logged."""
    make = Making(s1="finish")
    files = RowFiles(second, make, Period(SECOND_NS))
    for first in range(0, 30, 5):
        files.write(rows(first, 5))
    failure = finish_all([files])
    assert isinstance(failure, StorageError)
    assert "s1" in caplog.text
    assert not files.is_over
    assert [taken(make.made[name])[0] for name in ("s0", "s2")] == [0, 2000]
    assert all(make.made[name].ends == ["finish"] for name in ("s0", "s2"))
    assert make.made["s1"].ends == ["abort"]


def test_the_only_file_fails_at_once():
    """Without periods, a failure of the file is raised at once."""
    files = RowFiles(lambda _: Path("x"), Making(x="write"))
    with pytest.raises(StorageError, match="x: full") as caught:
        files.write(rows(0, 1))
    files.give_up(caught.value)
    assert files.is_over
    files.write(rows(1, 1))
    assert finish_all([files]) is caught.value


def test_one_failure_does_not_keep_others_from_their_end():
    """If one file fails at its end, the others are finished and that failure is raised."""

    class Empty(Writer):
        def finish(self):
            raise InputError("y: nothing to draw")

    broken, whole = Making(x="finish"), Making()
    several = [
        RowFiles(lambda _: Path("y"), Empty),
        RowFiles(lambda _: Path("x"), broken),
        RowFiles(lambda _: Path("z"), whole),
    ]
    for files in several:
        files.write(rows(0, 1))
    assert str(finish_all(several)) == "x: full"
    assert whole.made["z"].ends == ["finish"]
    assert broken.made["x"].ends == ["abort"]


def test_suffixes_select_formats():
    """Every suffix selects its format in any case; an unknown one is refused with a list."""
    assert [format_of(f"x{one}").content for one in (".PNG", ".nc", ".flac")] == [
        "picture",
        "rows",
        "samples",
    ]
    with pytest.raises(ConfigError, match=r"x\.bmp: suffix must be one of \.png, \.jpg") as caught:
        format_of("x.bmp")
    assert all(suffix in str(caught.value) for suffix in suffixes())


def test_no_file_is_named_twice():
    """Two outputs with the same name, in any spelling, are refused."""
    with pytest.raises(ConfigError, match=r"\./x\.png: must be named once"):
        check_outputs(["x.png", "y.png", "./x.png"])
