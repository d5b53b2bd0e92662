"""CSV for spreadsheets: dates and numbers alone, the zone and units in the names of columns."""

import csv
import datetime as dt
import math
import re
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.formats.values.measurement_description import describe
from spectrod.formats.values.value_writer import open_writer
from spectrod.measure.levels import LevelMeter, LevelRow
from spectrod.measure.measurement_config import MeasuredSignals, MeasurementFacts

FS = 8000
NS = 10**9
NAMES = "LAeq,peak,rms,LUFS_M"
SHEET = ["--csv", "spreadsheet"]
FORMS = {"spreadsheet": (",", "."), "spreadsheet-comma": (";", ",")}


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(5).uniform(-0.3, 0.3, (20_001, 2)).astype(np.float32)
    soundfile.write("20261025T025959.5+0200.wav", x, FS, subtype="FLOAT")


def cells_of(path, form="spreadsheet"):
    text = Path(path).read_text("utf-8")
    return list(csv.reader(text.splitlines(), delimiter=FORMS[form][0]))


def moment(text, form="spreadsheet"):
    decimals = "%f" if len(text) > 19 else ""
    mark = FORMS[form][1] if decimals else ""
    local = dt.datetime.strptime(f"{text}+0000", f"%Y-%m-%d %H:%M:%S{mark}{decimals}%z")
    return local.replace(tzinfo=None)


@pytest.mark.parametrize("form", FORMS)
def test_cells_are_dates_and_numbers(form):
    """Each cell is a local time, a number or a flag, and has the value of the exact file."""
    source, zone = "20261025T025959.5+0200.wav", ["--time-zone", "Europe/Berlin"]
    command = ["levels", source, "--quantity", NAMES, "--bands", "octave", *zone]
    assert main([*command, "--csv", form, "-o", "s.csv"]) == 0
    assert main([*command, "-o", "e.csv"]) == 0
    names, *rows = cells_of("s.csv", form)
    assert names[:8] == [
        *("time (Europe/Berlin)", "offset from UTC [h]", "duration [s]", "flags@0", "flags@1"),
        *("LAeq@0 [dBFS]", "LAeq@1 [dBFS]", "peak@0 [dBFS]"),
    ]
    assert {"rms@1 [FS]", "LUFS_M [LUFS]", "LZeq_63Hz@1 [dBFS]"} <= set(names)
    lines = [one for one in Path("e.csv").read_text("utf-8").splitlines() if one[0] != "#"]
    exact = list(csv.reader(lines))[1:]
    assert len(rows) == len(exact) == 4
    for row, one in zip(rows, exact, strict=True):
        utc = dt.datetime.fromisoformat(one[0][:26] + one[0][29:])
        offset = dt.timedelta(hours=float(row[1].replace(",", ".")))
        assert moment(row[0], form) - offset == utc.astimezone(dt.UTC).replace(tzinfo=None)
        assert row[3:5] == one[2:4]
        for text, value in zip([row[2], *row[5:]], [one[1], *one[4:]], strict=True):
            if not math.isfinite(float(value)):
                assert text == ""
                continue
            number = float(text.replace(FORMS[form][1], "."))
            # Four decimals, or six digits.
            assert abs(number - float(value)) <= max(0.5e-4, 0.5e-5 * abs(float(value)))
    # The second hour that is called two is told apart by its offset.
    assert [(row[0][11:19], row[1]) for row in rows[:2]] == [("02:59:59", "2"), ("02:00:00", "1")]
    assert (moment(rows[0][0], form).microsecond, len(rows[1][0])) == (500_000, 19)


@pytest.mark.parametrize("form", FORMS)
def test_no_number_may_be_taken_for_thousands(form):
    """No number has three decimals, which a spreadsheet of another country takes for thousands."""
    about, rows = described(["LZeq", "rms"])
    with_values = [
        replace(rows[0], values=np.array([[value], [value]]), duration_s=value)
        for value in (1.234, 12.5, 0.123, 123.456, -23.1314, 1.234e-7, 1e-9, 100000.0, 1234.5678)
    ]
    writer = open_writer(Path("s.csv"), about, form)
    for row in with_values:
        writer.write(row)
    writer.finish()
    mark = FORMS[form][1]
    _, *found = cells_of("s.csv", form)
    numbers = [row[k] for row in found for k in (1, 3, 4)]
    decimals = [re.fullmatch(rf"-?\d+(?:\{mark}(\d+))?(?:e[+-]\d+)?", one)[1] for one in numbers]
    assert 3 not in [len(one or "") for one in decimals]
    digits = [[cell.replace(mark, ".") for cell in row[3:]] for row in found]
    assert [row[1] for row in digits[:4]] == ["1.2340", "12.5", "0.1230", "123.4560"]
    assert [row[0] for row in digits[3:6]] == ["123.4560", "-23.1314", "0.0000"]


def described(names, **changes):
    """Return a description and a row of a meter of one channel."""
    meter = LevelMeter(FS, quantities=names, interval_s=1.0)
    signals = MeasuredSignals("pond", FS, ("0",), (None,), **changes)
    about = describe(signals, MeasurementFacts("Sound levels", bands=meter.bands), meter)
    values = np.zeros((len(names), 1))
    row = LevelRow(0, FS, FS, 1_777_600_000 * NS, 1.0, values, np.zeros(1, np.uint8))
    return about, [row]


def test_values_that_are_none_are_empty():
    """NaN and the level of silence would be text among numbers."""
    about, (row,) = described(["LZeq", "peak"])
    writer = open_writer(Path("s.csv"), about, "spreadsheet")
    writer.write(replace(row, values=np.array([[math.nan], [-math.inf]])))
    writer.finish()
    assert cells_of("s.csv") == [
        ["time (UTC)", "duration [s]", "flags", "LZeq [dBFS]", "peak [dBFS]"],
        ["2026-05-01 01:46:40", "1", "", "", ""],
    ]


@pytest.mark.parametrize(
    ("utc_ns", "text"),
    [
        (1_777_600_000 * NS + 499_999, "2026-05-01 01:46:40"),
        (1_777_600_000 * NS + 500_000, "2026-05-01 01:46:40.001"),
        (1_777_600_000 * NS - 500_001, "2026-05-01 01:46:39.999"),
        (1_777_600_000 * NS - 1, "2026-05-01 01:46:40"),
    ],
)
def test_times_are_rounded_to_milliseconds(utc_ns, text):
    """Rounding carries over seconds."""
    about, (row,) = described(["LZeq"])
    writer = open_writer(Path("s.csv"), about, "spreadsheet")
    writer.write(replace(row, begin_utc_ns=utc_ns))
    writer.finish()
    assert cells_of("s.csv")[1][0] == text


def test_times_without_a_date_are_seconds():
    """They count from the first sample, as a number."""
    about, (row,) = described(["LZeq"], has_utc=False)
    writer = open_writer(Path("s.csv"), about, "spreadsheet")
    writer.write(replace(row, begin_utc_ns=None, first_sample=FS + 9))
    writer.finish()
    names, cells = cells_of("s.csv")
    assert (names[0], cells[0]) == ("elapsed [s]", "1.0010")


@pytest.mark.parametrize("command", ["features", "tones", "transfer"])
def test_all_kinds_have_the_form(command):
    """The offset of other zones may be a fraction of an hour."""
    flags = ["--interval", "1s", "--win-length", "256", "--time-zone", "Asia/Kathmandu"]
    source, others = "20261025T025959.5+0200.wav", {"transfer": ["--spectra", ""]}
    assert main([command, source, *flags, *others.get(command, []), *SHEET, "-o", "s.csv"]) == 0
    names, first, *_ = cells_of("s.csv")
    assert names[:2] == ["time (Asia/Kathmandu)", "offset from UTC [h]"]
    assert first[:2] == ["2026-10-25 06:44:59.500", "5.75"]
    begin = dt.datetime(2026, 10, 25, 0, 59, 59, 500_000, tzinfo=dt.UTC)
    assert moment(first[0]) == begin.astimezone(ZoneInfo("Asia/Kathmandu")).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["levels", *SHEET], "--csv spreadsheet: must be with -o NAME.csv"),
        (["levels", *SHEET, "-o", "a.nc"], "--csv spreadsheet: must be with -o NAME.csv"),
        (["levels", "--csv", "excel", "-o", "a.csv"], "argument --csv: invalid choice: 'excel'"),
        (["tones", *SHEET], "--csv spreadsheet: must be with --interval"),
        (["transfer", *SHEET, "-o", "a.csv"], "--csv spreadsheet: must be with --interval"),
        (
            ["features", *SHEET, "-o", "a.csv", "--spectra", "kurtosis"],
            "a.csv: kurtosis has a value for each bin: must be .nc, .h5 or .parquet",
        ),
    ],
)
def test_wrong_arguments(arguments, rule, capsys):
    """Each is one line of error, and leaves no file."""
    command, *more = arguments
    assert main([command, "20261025T025959.5+0200.wav", *more]) == 2
    error = capsys.readouterr().err
    assert rule in error
    assert error.count("\n") == 1
    assert [one.suffix for one in Path().iterdir()] == [".wav"]
