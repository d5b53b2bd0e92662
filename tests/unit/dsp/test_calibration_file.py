"""Calibration files: levels of full scale, references, responses, channels, and what is refused."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from spectrod.dsp.calibration import (
    Calibration,
    ChannelCalibration,
    load_calibration,
    parse_reference,
)
from spectrod.dsp.calibration.file import FILE_BYTES_MAX
from spectrod.dsp.calibration.response import ROWS_MAX
from spectrod.dsp.calibration.response_text import parse_response
from spectrod.lib.errors import ConfigError

MIC = 'reference = "20 uPa"\nsensitivity = "50 mV/Pa"\ngain_db = 20\nfull_scale_v = 2.0\n'
END_TO_END = 'reference = "1 uPa"\nfull_scale_db = 171.0\nfull_scale = "rms"\n'


@pytest.fixture
def load(tmp_path: Path):
    """Write a calibration file and read it."""

    def read(text: str) -> Calibration:
        path = tmp_path / "mic.toml"
        path.write_text(text)
        return load_calibration(path)

    return read


def base(calibration: Calibration) -> ChannelCalibration:
    """Return the calibration of all channels."""
    assert calibration.base is not None
    return calibration.base


@pytest.mark.parametrize(
    ("text", "full_scale_db", "unit", "linear_unit"),
    [
        (MIC, 106.0206, "dB SPL", "Pa"),
        (MIC.replace("50 mV", "0.05 V"), 106.0206, "dB SPL", "Pa"),
        (MIC.replace("50 mV/Pa", "-26.0206 dB re 1 V/Pa"), 106.0206, "dB SPL", "Pa"),
        (MIC.replace("20 uPa", "0.00002 Pa"), 106.0206, "dB SPL", "Pa"),
        (MIC.replace("20 uPa", "20 µPa"), 106.0206, "dB SPL", "Pa"),
        (
            'reference = "1 uPa"\nsensitivity = "-165 dB re 1 V/uPa"\nfull_scale_v = 2\n',
            171.0206,
            "dB re 1 uPa",
            "uPa",
        ),
        (
            (
                'reference = "1 uPa"\nsensitivity = "-165 dB re 1 V/µPa"\nfull_scale_v = 2\n'
                "gain_db = 20\n"
            ),
            151.0206,
            "dB re 1 uPa",
            "uPa",
        ),
        (
            'reference = "1 m/s2"\nsensitivity = "100 mV/g"\nfull_scale_v = 1\n',
            20 * math.log10(98.0665),
            "dB re 1 m/s2",
            "m/s2",
        ),
        (
            'reference = "1 um/s2"\nsensitivity = "10.1972 mV/(m/s2)"\nfull_scale_v = 1\n',
            120 + 20 * math.log10(98.0665),
            "dB re 1 um/s2",
            "um/s2",
        ),
        ('reference = "1 V"\nsensitivity = "1 V/V"\nfull_scale_v = 2\n', 6.0206, "dBV", "V"),
        (END_TO_END, 171.0, "dB re 1 uPa", "uPa"),
        (END_TO_END.replace("rms", "sine"), 174.0103, "dB re 1 uPa", "uPa"),
        ('reference = "20 uPa"\nlevel_db = 94\nreads_dbfs = -9.0103\n', 106.0206, "dB SPL", "Pa"),
        (
            'reference = "5e-8 m/s"\nfull_scale_db = 100\nfull_scale = "rms"\n',
            100.0,
            "dB re 5e-08 m/s",
            "m/s",
        ),
    ],
)
def test_full_scale_levels(load, text, full_scale_db, unit, linear_unit) -> None:
    """Each way to state a sensitivity gives the level of digital 1.0 rms, and its units."""
    found = base(load(text))
    assert found.full_scale_db == pytest.approx(full_scale_db, abs=1e-4)
    assert (found.unit, found.linear_unit) == (unit, linear_unit)


def test_full_scale_in_the_linear_unit(load) -> None:
    """50 mV/Pa, 20 dB and 2 V make digital 1.0 4 Pa."""
    assert base(load(MIC)).full_scale == pytest.approx(4.0, rel=1e-12)


@pytest.mark.parametrize("name", ["20 uPa", "1 uPa", "1 V", "1 m/s2", "1 um/s2", "3 mPa"])
def test_reference_names_are_read_back(name) -> None:
    """A reference's name states the reference."""
    reference = parse_reference(name)
    assert parse_reference(reference.name) == reference


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "reference: is missing"),
        ('reference = "20 uPa"', "no level of full scale: must be exactly one of sensitivity"),
        (MIC.replace("20 uPa", "20"), "reference='20': must be a value with a unit"),
        (MIC.replace("20 uPa", "20 uBar"), "must be a value with a unit"),
        (MIC.replace("20 uPa", "nan Pa"), "must be a value with a unit"),
        (MIC.replace("20 uPa", "-20 uPa"), "must be 1e-15 to 1e"),
        (MIC.replace("20 uPa", "0 Pa"), "must be 1e-15 to 1e"),
        (MIC.replace("20 uPa", "1 V"), "must be per V, the unit of reference='1 V'"),
        (MIC.replace("50 mV/Pa", "50"), "must be a number with a unit"),
        (MIC.replace("50 mV/Pa", "inf V/Pa"), "must be a number with a unit"),
        (MIC.replace("50 mV/Pa", "0 mV/Pa"), "must be 1e-09 to 1e"),
        (MIC.replace("50 mV/Pa", "-50 mV/Pa"), "must be 1e-09 to 1e"),
        (MIC.replace("50 mV/Pa", "1e300 V/Pa"), "must be 1e-09 to 1e"),
        (
            MIC.replace("50 mV/Pa", "165 dB re 1 V/uPa"),
            "must be at most -80 dB re 1 V/uPa; has it lost its sign",
        ),
        (MIC.replace("50 mV/Pa", "-79 dB re 1 V/uPa"), "must be at most -80 dB re 1 V/uPa$"),
        (MIC.replace("full_scale_v = 2.0", ""), "full_scale_v: is missing"),
        (MIC.replace("= 2.0", "= 0"), "full_scale_v: Expected `float` >= 1e-06"),
        (MIC.replace("= 2.0", "= nan"), "full_scale_v: Expected `float` >= 1e-06"),
        (MIC.replace("= 20\n", "= inf\n"), "gain_db: Expected `float`"),
        (MIC.replace("= 20\n", "= -190\n"), "must be -200 to 300"),
        (MIC + END_TO_END.split("\n", 1)[1], "sensitivity and full_scale_db: must be exactly one"),
        (END_TO_END.replace('"rms"', '""'), "full_scale: is missing; must be 'rms' or 'sine'"),
        (END_TO_END.replace('"rms"', '"peak"'), "full_scale: Invalid enum value 'peak'"),
        (END_TO_END + "gain_db = 1", "gain_db: belongs to sensitivity, not to full_scale_db"),
        (END_TO_END.replace("171.0", "inf"), "must be -200 to 300"),
        ('reference = "20 uPa"\nlevel_db = 94', "reads_dbfs: is missing"),
        (MIC + "gain = 3", "unknown field `gain`"),
        (MIC + 'serial = "a b"', "serial: Expected"),
        (
            MIC + 'valid_from = "2026"',
            "valid_from='2026': must be a date, of UTC, or a time with a",
        ),
        (MIC + "valid_from = 1e99", r"valid_from='1e\+99': must be a date"),
        (MIC + "valid_until = 12:00:00", "valid_until='12:00:00': must be a date"),
        (MIC + "valid_until = 2026-05-01T12:00:00", "'2026-05-01 12:00:00': must be a date"),
        (MIC + "valid_from = 1969-12-31", "valid_from=1969-12-31: must be from 1970 to 2199"),
        (MIC + "valid_until = 9999-12-31", "valid_until=9999-12-31: must be from 1970 to 2199"),
        (
            MIC + "valid_from = 2026-05-02\nvalid_until = 2026-05-01",
            "valid_until=2026-05-01: must be after valid_from=2026-05-02",
        ),
        (
            MIC + "[channels.0]\nvalid_from = 3",
            r"channels.0: valid_from='3': must be a date",
        ),
        (MIC + "reference", "is no TOML"),
        ("level_db = " + "9" * 5000, "is no TOML"),
        (MIC + "channels = 3", r"channels: must be tables \[channels.NAME\]"),
        (MIC + '[channels."a b"]', "must be 1 to 64 of A-Z"),
        (MIC + "[channels.0]\nfull_scale_v = -1", "channels.0: full_scale_v: Expected"),
        (MIC + '[response]\nfile = "none.txt"', "none.txt: there is no such file"),
        (MIC + "[response]", "response: must have either table or file"),
        (MIC + "[response]\ntable = [[10, 0]]", "response: 1 rows: must be 2 to"),
        (MIC + "[response]\ntable = [[20, 0], [10, 0]]", "row 2: 10 Hz after 20 Hz"),
        (MIC + "[response]\ntable = [[10, 0], [20, nan]]", "row 2: must be two finite"),
        (MIC + "[response]\ntable = [[0, 0], [20, 0]]", "row 1: 0 Hz: must be above 0"),
        (MIC + "[response]\ntable = [[10, 0], [20, 300]]", "row 2: 300 dB: must be within"),
        (MIC + "[response]\ntable = [[10, 0], [20, 0]]", "at_hz=1000: must be within the table"),
        (MIC + '[response]\ntable = [[10, 0]]\nkind = "x"', "response.kind: Invalid enum"),
    ],
)
def test_refused_files(load, text, message) -> None:
    """Absurd and missing fields are one line with the file, the value and the rule."""
    with pytest.raises(ConfigError, match=message) as caught:
        load(text)
    assert "mic.toml: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_skipped(load) -> None:
    """A file that an editor saved with a byte order mark is read as without it."""
    assert base(load("\ufeff" + END_TO_END)) == base(load(END_TO_END))


def test_size_of_files_is_bounded(tmp_path) -> None:
    """A huge file, a folder and a missing file are refused before they are parsed."""
    huge = tmp_path / "huge.toml"
    huge.write_bytes(b"#" * (FILE_BYTES_MAX + 1))
    with pytest.raises(ConfigError, match=f"must have at most {FILE_BYTES_MAX} bytes"):
        load_calibration(huge)
    for path, rule in (
        (tmp_path, "is a folder"),
        (tmp_path / "none.toml", "there is no such file"),
    ):
        with pytest.raises(ConfigError, match=f"^{re.escape(str(path))}: {rule}"):
            load_calibration(path)
    with pytest.raises(ConfigError, match=r"null (byte|character)"):
        load_calibration("a\0b")


def test_channels_have_calibrations_of_their_own(load) -> None:
    """Tables of channels, by name and by number, come before the keys of the file."""
    found = load(
        MIC + '[channels.left]\nsensitivity = "25 mV/Pa"\n'
        '[channels.2]\nfull_scale_db = 100\nfull_scale = "rms"\n'
    )
    levels = [one.full_scale_db for one in found.channels(3, ("left", "right", "top")) if one]
    assert levels == pytest.approx([112.0412, 106.0206, 100.0], abs=1e-4)
    levels = [one.full_scale_db for one in found.channels(2, ("right", "left"), (2, 0)) if one]
    assert levels == pytest.approx([100.0, 112.0412], abs=1e-4)


def test_channels_without_calibration(load) -> None:
    """Without keys for all channels, only those with tables are calibrated."""
    found = load("[channels.1]\n" + MIC)
    assert [one is None for one in found.channels(3)] == [True, False, True]
    with pytest.raises(ConfigError, match=r"channels\.1: there is no such channel; 0"):
        found.channels(1)
    with pytest.raises(ConfigError, match="calibrates none of the 2 channels"):
        found.channels(2, (), (4, 5))
    with pytest.raises(ConfigError, match=r"channels\.left: there is no such channel; a, 0"):
        load(MIC + "[channels.left]").channels(1, ("a",))


def test_identity_follows_the_values(load) -> None:
    """The identity has the serial number; it changes with values only, not with notes."""
    one = base(load(MIC + 'serial = "A-1"')).cal_id
    assert one.startswith("A-1-")
    assert base(load(MIC + 'serial = "A-1"\nnotes = "x"')).cal_id == one
    assert base(load(MIC.replace("= 20\n", "= 21\n") + 'serial = "A-1"')).cal_id != one
    curve = "\n[response]\nat_hz = 0\ntable = [[10, 0], [20, 1]]"
    assert base(load(MIC + 'serial = "A-1"' + curve)).cal_id != one


def test_response_is_interpolated_and_not_extrapolated(load) -> None:
    """Levels are linear over the logarithm of frequency, relative to at_hz, unknown outside."""
    response = base(
        load(MIC + "[response]\ntable = [[100, -3.0], [1000, 1.0], [10000, 5.0]]")
    ).response
    assert response is not None
    at = response.at(np.array([99.0, 100.0, 10**2.5, -1000.0, 10000.0, 10001.0, 0.0]))
    assert at[1:5] == pytest.approx([-4.0, -2.0, 0.0, 4.0])
    assert np.isnan(at[[0, 5, 6]]).all()
    assert response.power_factors(np.array([99.0, 100.0])) == pytest.approx([1.0, 10**0.4])
    assert response.range_hz == (100.0, 10000.0)


def test_correction_is_the_negated_response(load) -> None:
    """A correction of +4 dB is a response of -4 dB."""
    found = base(
        load(MIC + '[response]\nkind = "correction"\ntable = [[100, 4], [1000, 0]]')
    ).response
    assert found is not None
    assert found.levels_db == (-4.0, 0.0)


@pytest.mark.parametrize(
    "text",
    [
        "20 -0.7\n1000 -.6383\n",
        "20,-0.7\n1000,-.6383\n",
        "20, -0.7\r\n1000, -.6383\r\n",
        "20 , -0.7\n1000 , -.6383",
        "20;-0,7\n1000;-,6383\n",
        "20\t-0,7\n1000\t-,6383\n",
        '\ufeff"Sens Factor =-1.378dB, AGain =18dB, SERNO: 7012345"\n20 -0.7\n\n1000 -.6383',
        "*1000Hz\t-38.6\n20\t-0.7\n1000\t-.6383\n",
        "* a\n# b\n; c\n! d\n// e\nFreq(Hz), SPL(dB)\n20 -0.7 12.5\n1000 -.6383 -170\n",
        "2e1 -0.7\n1.0E+3 \u2212.6383\n",
        "20 -0.7,\n1000 -.6383,\n",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_response_files(text, encoding) -> None:
    """Files of each maker keep their signs, with any separator, mark and end of line."""
    assert parse_response(text.encode(encoding)) == [(20.0, -0.7), (1000.0, -0.6383)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("20 1\n30", r"line 2: '30': must be Hz, dB"),
        ("20 nan\n", "must be Hz, dB"),
        ("20 1 2 3\n", "must be Hz, dB"),
        ("20,5,1,5\n", "must be Hz, dB"),
        ("20 1_0\n", "must be Hz, dB"),
        ("20 \u0661\n", "must be Hz, dB"),
        ("900 0.5\n1,000 0.5\n", "line 2: .*decimals must be all points or all commas"),
        ("#" + "x" * 1000, "must be at most 1000 characters"),
        ("#\n" * 1001, "must be within 1000 comments"),
        ("1 2\n" * (ROWS_MAX + 1), f"line {ROWS_MAX + 1}: '1 2': must be within"),
    ],
)
def test_refused_response_files(text, message) -> None:
    """A line that is no row is refused with its number."""
    with pytest.raises(ConfigError, match=message):
        parse_response(text.encode())


def test_response_file_beside_the_calibration_file(load, tmp_path) -> None:
    """A relative path of a response starts at the folder of the calibration file."""
    (tmp_path / "mic.frd").write_text("* x\n20 -6 0\n1000 0 0\n")
    found = base(load(MIC + '[response]\nfile = "mic.frd"'))
    assert found.response_hz == (20.0, 1000.0)
    (tmp_path / "mic.frd").write_text("* x\n20 -6 0\n1000\n")
    with pytest.raises(ConfigError, match=r"mic\.frd: line 3: '1000'"):
        load(MIC + '[response]\nfile = "mic.frd"')


@pytest.mark.slow
def test_rows_of_all_responses_are_bounded(load, tmp_path, monkeypatch) -> None:
    """Thousands of channels read one response once; responses of different channels add up."""
    (tmp_path / "mic.frd").write_text("".join(f"{k} 0\n" for k in range(1, 5001)))
    curve = '[response]\nfile = "mic.frd"\n'
    tables = "".join(f"[channels.{k}]\n" for k in range(1000))
    found = load(MIC + curve + tables)
    assert found.by_channel["0"].response is found.by_channel["999"].response
    own = "".join(f'[channels.{k}.response]\nfile = "mic.frd"\nat_hz = {k + 1}\n' for k in range(3))
    monkeypatch.setattr("spectrod.dsp.calibration.file.RESPONSES_ROWS_MAX", 10_000)
    with pytest.raises(ConfigError, match=r"channels\.2: response: 15000 rows of all channels"):
        load(MIC + own)
