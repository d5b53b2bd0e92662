"""The folder of a pyramid: sizes, ages, damage, and exclusive writing."""

import errno
import json
import os
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidReader, PyramidWriter
from spectrod.formats.pyramid.cell import FLOOR_DB, to_codes, to_levels, to_power
from spectrod.formats.pyramid.ladder import CELLS_NS, file_cells, levels, name_of
from spectrod.formats.pyramid.pyramid_reader import TIME_MAX_NS
from spectrod.lib.errors import BusyError, ConfigError, InputError, StorageError

DAY_NS = 86400 * 10**9
DAY = 20_575
"""2026-05-02."""
SPEC = SpectrumSpec(fs=1000.0, win_length=64, hop=500, nfft=64)


def about_of(spec=SPEC, **settings):
    return Description(spec, "test", ("left",), "spectrod 1", **settings)


def batch_of(power, begin_ns, spec=SPEC, **settings):
    """Make rows of constant spectra, half a second apart."""
    power = np.asarray(power, np.float32)
    index = np.arange(len(power), dtype=np.int64) * spec.hop
    t_ns = begin_ns + index * 10**6
    values = np.repeat(power[:, None, None], spec.n_values, axis=2)
    return SpectrumBatch(values, index, t_ns, t_ns, spec, "numpy", **settings)


def cells_in(folder, cell_ns):
    return sorted(path.name for path in (folder / name_of(cell_ns)).iterdir())


def test_each_length_divides_the_next_and_a_day():
    """Cell lengths divide the next one and a day, so levels align, and they grow in small steps."""
    for shorter, longer in pairwise(CELLS_NS):
        assert longer % shorter == 0
        assert 3 <= longer // shorter <= 6
    for cell_ns in CELLS_NS:
        assert DAY_NS % cell_ns == 0
        assert (cell_ns * file_cells(cell_ns)) % DAY_NS == 0


@pytest.mark.parametrize(
    ("finest_s", "row_s", "first"),
    [(1.0, 0.02, "1s"), (0.01, 0.02, "50ms"), (0.01, 0.01, "10ms"), (1.1, 0.1, "5s")],
)
def test_no_cell_is_shorter_than_a_row(finest_s, row_s, first):
    """The finest level has the next available length that is not shorter than a row."""
    found = levels(finest_s, row_s)
    assert name_of(found[0]) == first
    assert found[-1] == DAY_NS


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"finest_s": 0.0}, "finest_s=0: must be a positive number"),
        ({"finest_s": 1e5}, "finest_s 100000 s: must be at most a day"),
        ({"values_max": -1}, "values_max=-1: must be at least 1, or 0"),
    ],
)
def test_options_are_checked(tmp_path, options, text):
    """An invalid option is refused by name before a pyramid is created."""
    with pytest.raises(ConfigError, match=text):
        PyramidWriter(tmp_path, about_of(), PyramidOptions(**options))
    assert list(tmp_path.iterdir()) == []


def test_rows_need_power(tmp_path):
    """Complex spectra are refused, as they have no minimum and maximum."""
    spec = SpectrumSpec(fs=1000.0, win_length=64, hop=500, output="complex")
    with pytest.raises(ConfigError, match="a pyramid is made of power"):
        PyramidWriter(tmp_path, about_of(spec))


def test_levels_are_stored_to_half_a_hundredth_of_a_decibel():
    """Stored levels have steps of 0.01 dB, zero power is the floor, and a round trip is stable."""
    levels_db = np.random.default_rng(1).uniform(-320.0, 320.0, 1001)
    codes = to_codes(10.0 ** (levels_db / 10.0))
    assert np.abs(to_levels(codes) - levels_db).max() <= 0.005 + 2e-5
    assert np.array_equal(to_codes(to_power(codes)), codes)
    ends = to_levels(to_codes(np.array([0.0, 1e-200, 1e200, np.inf, np.nan])))
    assert ends == pytest.approx([FLOOR_DB] * 2 + [-FLOOR_DB] * 3)


@pytest.mark.slow
def test_a_day_takes_as_much_room_as_documented(tmp_path):
    """All levels take a third more than the finest, and a file takes no more than its cells."""
    writer = PyramidWriter(tmp_path, about_of(), PyramidOptions(finest_s=60.0))
    for hour in range(24):
        batch = batch_of(np.full(7200, 1e-6), DAY * DAY_NS + hour * 3600 * 10**9)
        writer.write(batch)
    writer.finish()
    cell_bytes = 16 + 3 * 2 * SPEC.n_values
    total = 0
    for cell_ns in writer.about.cells_ns:
        (path,) = (tmp_path / name_of(cell_ns)).iterdir()
        reaches = DAY * DAY_NS // cell_ns % file_cells(cell_ns) + DAY_NS // cell_ns
        assert path.stat().st_size == 64 + cell_bytes * reaches
        total += cell_bytes * DAY_NS // cell_ns
    assert total == pytest.approx(cell_bytes * 1440 * (1 + 1 / 5 + 1 / 15 + 1 / 60), rel=0.01)


def test_old_files_go_level_by_level_and_coarser_ones_answer(tmp_path):
    """Where the finest level has expired, the next coarser one answers, and gaps stay gaps."""
    writer = PyramidWriter(tmp_path, about_of(), PyramidOptions(finest_s=1.0))
    rows = np.full(240, 1e-6)
    begin = DAY * DAY_NS + 3600 * 10**9
    for day in range(3):
        writer.write(batch_of(rows * 10.0**day, begin + day * DAY_NS))
    writer.flush()
    finest = writer.about.cells_ns[0]
    assert cells_in(tmp_path, finest) == ["20260502.cells", "20260503.cells", "20260504.cells"]
    assert writer.expire((DAY + 1) * DAY_NS - 1, 0) == 0
    size = writer.size_bytes
    freed = writer.expire((DAY + 2) * DAY_NS, 0)
    assert 0 < freed == size - writer.size_bytes
    assert cells_in(tmp_path, finest) == ["20260504.cells"]
    writer.write(batch_of(rows, begin + 2 * DAY_NS + 120 * 10**9))
    writer.finish()
    reader = PyramidReader(tmp_path)
    assert reader.level_names[:2] == ("1s", "5s")
    for day, cell_ns in ((0, 5 * finest), (2, finest)):
        t0_ns = begin + day * DAY_NS - 60 * 10**9
        columns = reader.columns(t0_ns, t0_ns + 120 * 10**9, 60)
        assert set(columns.cell_ns) == {cell_ns}
        # With few exceptions at the edge, a column is empty before and full afterwards.
        assert not columns.effort_s[:27].any()
        assert (columns.effort_s[33:] > 0.0).all()
        assert columns.mean[40] == pytest.approx(-60.0 + 10.0 * day, abs=0.02)
    reader.close()


def test_a_damaged_cell_is_a_gap(tmp_path):
    """A cell with a wrong checksum is a gap; its neighbours and the coarser level stay."""
    writer = PyramidWriter(tmp_path, about_of())
    writer.write(batch_of(np.full(20, 1e-6), DAY * DAY_NS))
    writer.finish()
    path = tmp_path / "1s" / "20260502.cells"
    content = bytearray(path.read_bytes())
    content[64 + 4 * (16 + 6 * SPEC.n_values) + 30] ^= 1
    path.write_bytes(content)
    reader = PyramidReader(tmp_path)
    columns = reader.columns(DAY * DAY_NS, DAY * DAY_NS + 10 * 10**9, 10)
    assert np.flatnonzero(columns.effort_s == 0.0).tolist() == [4]
    assert reader.columns(DAY * DAY_NS, DAY * DAY_NS + 10 * 10**9, 2).effort_s.tolist() == [5, 5]
    reader.close()


def test_a_file_of_something_else_is_an_error(tmp_path):
    """A file with a wrong header or an unreadable description is an error."""
    writer = PyramidWriter(tmp_path, about_of())
    writer.write(batch_of(np.full(20, 1e-6), DAY * DAY_NS))
    writer.finish()
    path = tmp_path / "1s" / "20260502.cells"
    path.write_bytes(b"x" * 1000)
    reader = PyramidReader(tmp_path)
    with pytest.raises(StorageError, match="damaged, or not of this pyramid"):
        reader.columns(DAY * DAY_NS, DAY * DAY_NS + 10 * 10**9, 10)
    reader.close()
    (tmp_path / "pyramid.json").write_text("{")
    with pytest.raises(StorageError, match=r"pyramid\.json: damaged"):
        PyramidReader(tmp_path)
    (tmp_path / "pyramid.json").unlink()
    with pytest.raises(InputError, match="holds no pyramid"):
        PyramidReader(tmp_path)


DAMAGE = {
    "empty": lambda _: b"",
    "torn": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "other text": lambda _: b"{}",
    "numbers": lambda content: content.replace(b'"group": 1', b'"group": 0'),
    "too long": lambda content: content + b" " * (1 << 24),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_damaged_metadata_are_set_aside_and_made_again(tmp_path, damage, caplog):
    """A writer goes on with its cells beside damaged metadata, which it keeps and reports once."""
    begin = DAY * DAY_NS
    writer = PyramidWriter(tmp_path, about_of())
    writer.write(batch_of(np.full(20, 1e-6), begin))
    writer.finish()
    path = tmp_path / "pyramid.json"
    content = path.read_bytes()
    path.write_bytes(damage(content))
    for seconds in (10, 20):  # the second start finds nothing damaged
        writer = PyramidWriter(tmp_path, about_of())
        writer.write(batch_of(np.full(20, 1e-6), begin + seconds * 10**9))
        writer.finish()
    assert path.read_bytes() == content
    assert (tmp_path / "pyramid.json.damaged").read_bytes() == damage(content)
    (line,) = caplog.messages
    assert line.startswith(f"{path}: ")
    assert line.endswith("; renamed to pyramid.json.damaged, made again from the rows that come")
    reader = PyramidReader(tmp_path)
    columns = reader.columns(begin, begin + 30 * 10**9, 30)
    assert columns.effort_s.tolist() == [1.0] * 30
    reader.close()


def test_each_damage_has_a_name_of_its_own(tmp_path):
    """Metadata that are damaged again do not replace those that were set aside before."""
    for text in ("first", "second"):
        PyramidWriter(tmp_path, about_of()).abort()
        (tmp_path / "pyramid.json").write_text(text)
    PyramidWriter(tmp_path, about_of()).abort()
    found = sorted(tmp_path.glob("pyramid.json*.damaged")) + sorted(tmp_path.glob("*damaged_*"))
    assert sorted(path.read_text() for path in found) == ["first", "second"]


@pytest.mark.parametrize("level", ["1s", "1min", "1d"])
def test_a_damaged_file_of_cells_is_set_aside_and_made_again(tmp_path, level, caplog):
    """A writer replaces a file of cells whose header is damaged, keeps it, and reports it once."""
    begin = DAY * DAY_NS
    writer = PyramidWriter(tmp_path, about_of())
    writer.write(batch_of(np.full(20, 1e-6), begin))
    writer.finish()
    (path,) = (tmp_path / level).iterdir()
    path.write_bytes(bytes(100) + path.read_bytes()[100:])
    for seconds in (10, 20):
        writer = PyramidWriter(tmp_path, about_of())
        writer.write(batch_of(np.full(20, 1e-6), begin + seconds * 10**9))
        writer.finish()
    assert [path.name for path in (tmp_path / level).glob("*damaged*")] == [f"{path.name}.damaged"]
    (line,) = caplog.messages
    assert line == (
        f"{path}: damaged, or not of this pyramid; renamed to {path.name}.damaged, "
        "its cells are missing"
    )
    reader = PyramidReader(tmp_path)
    columns = reader.columns(begin, begin + 30 * 10**9, 30)
    # Coarser cells that are damaged are made again from the finer ones.
    assert columns.effort_s.tolist() == [float(level != "1s")] * 10 + [1.0] * 20
    assert reader.columns(begin, begin + DAY_NS, 1).effort_s.sum() == pytest.approx(30.0)
    reader.close()


def test_a_second_writer_and_other_rows_are_refused(tmp_path):
    """A second writer and rows of another kind are refused; another program version continues."""
    writer = PyramidWriter(tmp_path, about_of())
    with pytest.raises(BusyError, match="another program is writing it"):
        PyramidWriter(tmp_path, about_of())
    other = SpectrumSpec(fs=1000.0, win_length=64, hop=250, nfft=64)
    with pytest.raises(ConfigError, match="the analysis has changed"):
        writer.write(batch_of([1.0], DAY * DAY_NS, other))
    writer.abort()
    with pytest.raises(ConfigError, match="holds a pyramid of other rows"):
        PyramidWriter(tmp_path, about_of(other))
    later = Description(SPEC, "test", ("left",), "spectrod 2", settings={"a": 1})
    PyramidWriter(tmp_path, later).abort()


def test_bins_are_taken_together(tmp_path):
    """A merged value has the minimum, mean and maximum of its bins, at their centre."""
    writer = PyramidWriter(tmp_path, about_of(), PyramidOptions(values_max=4))
    assert (writer.about.group, writer.about.n_values) == (9, 4)
    batch = batch_of([1.0, 1.0], DAY * DAY_NS)
    batch.values[:] = 10.0 ** (np.arange(SPEC.n_values, dtype=np.float32) / 10.0)
    writer.write(batch)
    writer.finish()
    reader = PyramidReader(tmp_path)
    columns = reader.columns(DAY * DAY_NS, DAY * DAY_NS + 10**9, 1)
    assert columns.least[0, 0] == pytest.approx([0, 9, 18, 27], abs=0.006)
    assert columns.greatest[0, 0] == pytest.approx([8, 17, 26, 32], abs=0.006)
    means = [np.mean(10.0 ** (np.arange(lo, min(lo + 9, 33)) / 10.0)) for lo in range(0, 33, 9)]
    assert columns.mean[0, 0] == pytest.approx(10.0 * np.log10(means), abs=0.006)
    middles = [np.arange(lo, min(lo + 9, 33)).mean() * SPEC.delta_f for lo in range(0, 33, 9)]
    assert columns.f == pytest.approx(middles)
    assert columns.unit == "dB re FS^2/Hz"
    halves = reader.columns(DAY * DAY_NS, DAY * DAY_NS + 10**9, 1, values_max=2)
    assert halves.greatest[0, 0] == pytest.approx([17, 32], abs=0.006)
    reader.close()


def test_partial_rows_count_by_their_frames(tmp_path):
    """A row that was cut off adds effort by its frames."""
    spec = SpectrumSpec(
        fs=1000.0, win_length=64, hop=50, nfft=64, averaging="mean", averaging_frames=10
    )
    writer = PyramidWriter(tmp_path, about_of(spec))
    batch = batch_of([1.0], DAY * DAY_NS, spec, cut_frames=3)
    writer.write(batch)
    writer.finish()
    reader = PyramidReader(tmp_path)
    assert reader.columns(DAY * DAY_NS, DAY * DAY_NS + 10**9, 1).effort_s == pytest.approx(0.15)
    reader.close()


def test_a_full_disk_is_an_error_and_later_cells_come(tmp_path, monkeypatch):
    """A failed write is a gap in its level, while coarser cells keep all data before and after."""
    writer = PyramidWriter(tmp_path, about_of())
    begin = DAY * DAY_NS
    writer.write(batch_of(np.full(7, 1e-6), begin))
    real, full = os.pwrite, OSError(28, os.strerror(28))

    def refuse(fd, data, offset):
        raise full

    monkeypatch.setattr(os, "pwrite", refuse)
    for second in (4, 8, 17):
        with pytest.raises(StorageError, match=r"cells: No space left on device"):
            writer.write(batch_of(np.full(4, 1e-6), begin + second * 10**9))
    monkeypatch.setattr(os, "pwrite", real)
    writer.write(batch_of(np.full(10, 1e-6), begin + 3600 * 10**9))
    writer.finish()
    reader = PyramidReader(tmp_path)
    fine = reader.columns(begin, begin + 20 * 10**9, 20)
    # The fourth second was being filled when the disk was full.
    assert np.flatnonzero(fine.effort_s).tolist() == [0, 1, 2]
    for n_cells, width in ((3600, 1), (300, 1), (15, 1), (20, 4)):
        assert reader.columns(begin, begin + n_cells * 10**9, width).effort_s.sum() == 3.0
    reader.close()


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((5, 5, 10), "t1_utc_ns=5: must be after t0_utc_ns=5"),
        ((0, 5, 0), "width=0: must be 1 to 65536 columns"),
        ((0, 5, 1, -1), "values_max=-1: must be at least 1, or 0"),
        ((-(10**19), 5, 1), "t0_utc_ns=-10{19}: must be -40{18} to 40{18}"),
        ((0, 1 << 64, 1), "t1_utc_ns=18446744073709551616: must be -40{18} to 40{18}"),
    ],
)
def test_spans_that_make_no_sense_are_refused(tmp_path, args, text):
    """A span that makes no sense is refused with the value and the rule."""
    PyramidWriter(tmp_path, about_of()).finish()
    reader = PyramidReader(tmp_path)
    with pytest.raises(ConfigError, match=text):
        reader.columns(*args)
    reader.close()


def test_a_span_of_all_times_is_read(tmp_path):
    """The widest possible span returns all that the pyramid holds."""
    writer = PyramidWriter(tmp_path, about_of())
    writer.write(batch_of([1e-6, 1e-6], DAY * DAY_NS))
    writer.finish()
    reader = PyramidReader(tmp_path)
    columns = reader.columns(-TIME_MAX_NS, TIME_MAX_NS, 1001)
    assert columns.effort_s.sum() == 1.0
    assert np.isfinite(columns.mean).any(axis=(1, 2)).sum() == 1
    reader.close()


def test_an_empty_pyramid_has_no_rows(tmp_path):
    """Columns of an empty pyramid are empty and no error."""
    PyramidWriter(tmp_path, about_of()).finish()
    reader = PyramidReader(tmp_path)
    columns = reader.columns(0, DAY_NS, 7)
    assert np.isnan(columns.mean).all()
    assert columns.effort_s.tolist() == [0.0] * 7
    reader.close()


def test_a_reader_sees_cells_as_they_come(tmp_path):
    """A reader opened before the first cell sees each cell once it is complete."""
    writer = PyramidWriter(tmp_path, about_of())
    reader = PyramidReader(tmp_path)
    begin = DAY * DAY_NS
    for second in range(12):
        writer.write(batch_of([1e-6, 1e-6], begin + second * 10**9))
        columns = reader.columns(begin, begin + 12 * 10**9, 12)
        assert np.flatnonzero(columns.effort_s).tolist() == list(range(second))
        coarse = reader.columns(begin, begin + 15 * 10**9, 3)
        assert coarse.effort_s.sum() == second
    writer.finish()
    assert reader.columns(begin, begin + 15 * 10**9, 1).effort_s == [12.0]
    reader.close()


KILLED = """
    import os, signal, sys
    import numpy as np
    from spectrod.formats.pyramid import PyramidWriter
    from spectrod.formats.description import Description
    from spectrod.dsp.spectrum_batch import SpectrumBatch, SpectrumSpec

    spec = SpectrumSpec(fs=1000.0, win_length=64, hop=500, nfft=64)
    writer = PyramidWriter(sys.argv[1], Description(spec, "test", ("left",), "spectrod 1"))
    for second in range(int(sys.argv[3])):
        t_ns = int(sys.argv[2]) + np.array([0, 500_000_000]) + second * 10**9
        values = np.full((2, 1, spec.n_values), 1e-6, np.float32)
        index = np.arange(2) * 500 + second * 1000
        writer.write(SpectrumBatch(values, index, t_ns, t_ns, spec, "numpy"))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [2, 5, 6, 76, 301])
def test_a_killed_program_leaves_all_complete_cells(tmp_path, seconds):
    """After SIGKILL only the second in progress is missing, at any level."""
    begin = DAY * DAY_NS
    arguments = [tmp_path, str(begin), str(seconds)]
    command = [sys.executable, "-c", textwrap.dedent(KILLED), *arguments]
    assert subprocess.run(command, check=False).returncode == -9
    writer = PyramidWriter(tmp_path, about_of())
    reader = PyramidReader(tmp_path)
    for cell_ns in writer.about.cells_ns:
        span = -(-seconds * 10**9 // cell_ns) * cell_ns
        columns = reader.columns(begin, begin + span, span // cell_ns)
        assert set(columns.cell_ns) == {cell_ns}
        assert columns.effort_s.sum() == seconds - 1
    reader.close()
    writer.abort()


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("signals", ["a", "b"], "names of 2 signals: must be 1"),
        ("n_values", -1, "n_values=-1, group=1: must be all 33"),
        ("n_values", 1 << 40, "group=1: must be all 33"),
        ("group", 0, "group=0: must be all 33"),
        ("cells_ns", [], r"cells_ns=\[\]: must be levels"),
        ("cells_ns", [7, 86400 * 10**9], "must be levels"),
        ("spec", {"fs": 8000.0, "nan": 1}, "unknown field `nan`"),
        ("spec", {"fs": 0}, "fs=0"),
        ("source", "\ud800", "damaged"),
        ("settings", "nested", "damaged"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(tmp_path, field, value, text):
    """A description with impossible numbers is refused."""
    writer = PyramidWriter(tmp_path, about_of())
    writer.write(batch_of([1.0] * 4, DAY * DAY_NS))
    writer.finish()
    path = tmp_path / "pyramid.json"
    document = json.loads(path.read_text()) | {field: value}
    nested = '{"a":' * 50_000
    path.write_text(json.dumps(document).replace('"nested"', nested))
    with pytest.raises(StorageError, match=rf"pyramid\.json: .*{text}"):
        PyramidReader(tmp_path)


def test_a_writer_that_cannot_begin_leaves_no_file_open(tmp_path, monkeypatch):
    """A disk that fails while coarser cells are made up is tried again and again."""
    writer = PyramidWriter(tmp_path / "p", about_of())
    writer.write(batch_of(np.full(40, 1e-6), DAY * DAY_NS))
    writer.finish()
    real = os.pwrite

    def failing(fd, data, offset):
        if offset:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", failing)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(StorageError, match=r"Input/output error$"):
        PyramidWriter(tmp_path / "p", about_of())
    assert len(list(Path("/proc/self/fd").iterdir())) == before
