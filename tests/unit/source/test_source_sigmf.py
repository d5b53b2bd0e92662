"""SigMF recordings as sources: formats, times, gaps, and invalid metadata."""

import json
import re

import numpy as np
import pytest

from spectrod.config.config import SourceConfig
from spectrod.formats.sound.sigmf_writer import CAPTURES_MAX
from spectrod.lib.errors import ConfigError, InputError
from spectrod.source.files.sigmf_meta import (
    META_BYTES_MAX,
    parse_utc_ns,
    read_sigmf,
)
from spectrod.source.open_source import open_source

FS = 2.048e6
START_NS = 1_777_609_800 * 10**9
DTYPES = {
    "f64": "f8", "f32": "f4", "i32": "i4", "u32": "u4", "i16": "i2", "u16": "u2",
    "i8": "i1", "u8": "u1",
}  # fmt: skip


def write(folder, about=None, captures=None, data=bytes(400), name="x", **others):
    """Write a recording; by default 100 samples of ci16 at 2.048 MHz."""
    common = {"core:datatype": "ci16_le", "core:version": "1.2.0", "core:sample_rate": FS}
    document = {
        "global": common | (about or {}),
        "captures": [{"core:sample_start": 0}] if captures is None else captures,
        "annotations": [],
    }
    (folder / f"{name}.sigmf-data").write_bytes(data)
    path = folder / f"{name}.sigmf-meta"
    path.write_text(json.dumps(document | others))
    return path


def opened(path, **settings):
    return open_source(SourceConfig(uri=str(path), **settings), "full")


def capture(start, **fields):
    return {"core:sample_start": start} | {f"core:{name}": one for name, one in fields.items()}


@pytest.mark.parametrize("number", DTYPES)
@pytest.mark.parametrize("kind", ["c", "r"])
@pytest.mark.parametrize("order", ["_le", "_be"])
def test_each_datatype_is_a_share_of_full_scale(tmp_path, collect, number, kind, order):
    """In each datatype and byte order half of full scale is 0.5 and silence is 0."""
    bits = int(number[1:])
    is_float, is_unsigned = number[0] == "f", number[0] == "u"
    full = 1.0 if is_float else 2.0 ** (bits - 1)
    zero = 0.0
    if is_unsigned:
        zero = 127.5 if (kind, bits) == ("c", 8) else full
    values = np.array([0.5, -0.5, 0.25, -0.99, 0.0, 0.125])
    numbers = np.floor(values * full + zero) if not is_float else values
    dtype = ("<" if order == "_le" else ">") + DTYPES[number]
    datatype = kind + number + ("" if bits == 8 else order)
    path = write(tmp_path, {"core:datatype": datatype}, data=numbers.astype(dtype).tobytes())
    source = opened(path)
    assert (source.is_iq, source.channels) == (kind == "c", 2 if kind == "c" else 1)
    ((_, samples, *_),) = collect(source)
    np.testing.assert_allclose(samples.T.ravel(), (numbers - zero) / full, atol=1e-7)
    np.testing.assert_allclose(samples.T.ravel(), values, atol=0.01)


@pytest.mark.parametrize("suffix", [".sigmf-meta", ".sigmf-data"])
def test_either_file_opens_a_recording(tmp_path, suffix):
    """Either file of the pair opens the recording with rate, kind, frequency and time."""
    captures = [capture(0, datetime="2026-05-01T04:30:00.123456789Z", frequency=433.92e6)]
    path = write(tmp_path, captures=captures).with_suffix(suffix)
    source = opened(path)
    assert (source.fs, source.channels, source.is_iq, source.n_samples) == (FS, 2, True, 100)
    assert source.center_frequency_hz == 433.92e6
    assert source.start_utc_ns == START_NS + 123456789
    assert opened(path, center_frequency_hz=1e9).center_frequency_hz == 1e9
    with pytest.raises(ConfigError, match=r"samplerate=48000: .* has 2048000"):
        opened(path, samplerate=48000)


def test_a_byte_order_mark_before_metadata_is_skipped(tmp_path):
    """Metadata that an editor saved with a byte order mark is read as without it."""
    path = write(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert opened(path).fs == FS


def test_rate_and_time_may_come_from_elsewhere(tmp_path):
    """A missing rate can be given as an option, and a missing time is read from the name."""
    about = {"core:sample_rate": None, "core:datatype": "rf32_le", "core:num_channels": 4}
    path = write(tmp_path, about, [], name="20260501_043000")
    with pytest.raises(InputError, match="does not state its sample rate; give --samplerate"):
        opened(path)
    source = opened(path, samplerate=48000)
    assert (source.fs, source.channels, source.is_iq, source.n_samples) == (48000, 4, False, 25)
    assert source.start_utc_ns == START_NS
    assert opened(path, samplerate=48000, loop=True).n_samples is None


GAPS = {
    "global_index": [capture(0, global_index=1000), capture(60, global_index=1110)],
    "datetime": [
        capture(0, datetime="2026-05-01T04:30:00.000Z"),
        capture(60, datetime="2026-05-01T04:30:01.100Z"),
    ],
    "both": [
        capture(0, global_index=0, datetime="2026-05-01T04:30:00Z"),
        capture(60, global_index=110, datetime="2026-05-01T04:31:00Z"),
    ],
    "offset": [capture(500), capture(560, global_index=610)],
}


@pytest.mark.parametrize("field", GAPS)
def test_missing_samples_are_a_gap(tmp_path, collect, field):
    """A capture's index has precedence over its time, and missing samples become a gap."""
    numbers = np.arange(100, dtype="<i2")
    about = {"core:datatype": "ri16_le", "core:sample_rate": 100.0}
    if field == "offset":
        about["core:offset"] = 500
    path = write(tmp_path, about, GAPS[field], numbers.tobytes())
    source = opened(path)
    assert source.n_samples == 150
    blocks = collect(source)
    assert [(index, samples.shape[1]) for index, samples, *_ in blocks] == [(0, 60), (110, 40)]
    np.testing.assert_array_equal(
        np.concatenate([samples[0] for _, samples, *_ in blocks]) * 2**15, numbers
    )
    times = [t_utc_ns for *_, t_utc_ns in blocks]
    assert times[1] - times[0] == pytest.approx(1.1e9, abs=2)
    for first, expected in ((59, [59, 110]), (60, [110]), (100, [110]), (111, [111])):
        source = opened(path)
        source.start_at(first)
        assert [index for index, *_ in collect(source)] == expected


def test_samples_before_the_first_capture_are_there(tmp_path):
    """Samples before the first capture directly precede it."""
    path = write(tmp_path, captures=[capture(60, global_index=110)])
    segments = read_sigmf(str(path)).segments
    assert [(one.begin, one.n_samples) for one in segments] == [(0, 60), (60, 40)]


def test_times_that_nearly_agree_are_no_gap(tmp_path, collect):
    """Time differences below 0.1 s, or a second between whole seconds, are no gap."""
    about = {"core:datatype": "ri8", "core:sample_rate": 100.0}
    for later in ("2026-05-01T04:30:00.69Z", "2026-05-01T04:30:01Z"):
        captures = [capture(0, datetime="2026-05-01T04:30:00.000Z"), capture(60, datetime=later)]
        path = write(tmp_path, about, captures, bytes(100))
        ((index, samples, *_),) = collect(opened(path))
        assert (index, samples.shape) == (0, (1, 100))


def test_a_time_of_a_later_capture_counts_back(tmp_path):
    """A first capture without a time precedes the second by its number of samples."""
    captures = [capture(0), capture(50, datetime="2026-05-01T04:30:01.5Z")]
    path = write(tmp_path, {"core:sample_rate": 100.0}, captures)
    assert opened(path).start_utc_ns == START_NS + 10**9


def test_a_dataset_of_another_name_has_headers(tmp_path, collect):
    """The field core:dataset names the data file, whose headers and trailing bytes are skipped."""
    numbers = np.arange(20, dtype="<i2")
    data = b"12345" + numbers[:12].tobytes() + b"678" + numbers[12:].tobytes() + b"the end"
    (tmp_path / "x.bin").write_bytes(data)
    about = {"core:datatype": "ri16_le", "core:dataset": "x.bin", "core:trailing_bytes": 7}
    captures = [capture(0, header_bytes=5), capture(12, header_bytes=3)]
    path = write(tmp_path, about, captures)
    samples = np.concatenate([one for _, one, *_ in collect(opened(path))], axis=1)
    np.testing.assert_array_equal(samples[0] * 2**15, numbers)


def test_a_recording_is_played_again_and_again(tmp_path):
    """In a loop a recording's gaps are repeated."""
    captures = [capture(0), capture(60, global_index=110)]
    about = {"core:datatype": "ri8", "core:sample_rate": 100.0}
    source = opened(write(tmp_path, about, captures, bytes(100)), loop=True)
    assert (source.n_samples, source.start_utc_ns) == (None, None)
    blocks = source.blocks(64)
    shapes = [getattr(next(blocks), "shape", "gap") for _ in range(6)]
    assert shapes == [(1, 60), "gap", (1, 40), (1, 60), "gap", (1, 40)]
    blocks.close()


@pytest.mark.parametrize(
    ("about", "captures", "message"),
    [
        ({"core:datatype": "ci16"}, None, "core:datatype='ci16': must be c (I/Q) or r (real)"),
        ({"core:datatype": "cf16_le"}, None, "core:datatype='cf16_le': must be c"),
        ({"core:datatype": "c\x1b8"}, None, "core:datatype='c\\x1b8': must be c"),
        ({"core:datatype": 7}, None, "not SigMF metadata: Expected `str`, got `int`"),
        ({"core:sample_rate": 0}, None, "core:sample_rate=0: must be 0.001 to 1e+10 Hz"),
        ({"core:sample_rate": 1e12}, None, "core:sample_rate=1e+12: must be 0.001 to 1e+10"),
        ({"core:num_channels": 4096}, None, "core:num_channels=4096: must be at most 2048 of I"),
        ({"core:num_channels": 10**9}, None, "not SigMF metadata: Expected `int` <= 4096"),
        ({"core:num_channels": 3}, None, "400 bytes are not a whole number of 12-byte samples"),
        ({"core:trailing_bytes": 400}, None, "x.sigmf-data: holds no samples"),
        ({"core:dataset": "../x.bin"}, None, "core:dataset='../x.bin': must be the name of a fi"),
        ({"core:dataset": "/etc/passwd"}, None, "core:dataset='/etc/passwd': must be the name"),
        ({"core:dataset": ".."}, None, "core:dataset='..': must be the name of a file beside"),
        ({"core:dataset": "a\\b"}, None, "must be the name of a file beside it"),
        ({"core:dataset": "a\0b"}, None, "core:dataset='a\\x00b': must be the name of a file"),
        ({"core:dataset": "y.bin"}, None, "y.bin: No such file or directory"),
        ({"core:dataset": "y" * 5000}, None, "File name too long"),
        ({"core:dataset": "folder"}, None, "folder: not a regular file"),
        (
            {"core:extensions": [{"name": "zip", "version": "1", "optional": False}]},
            None,
            "needs the SigMF extension 'zip'",
        ),
        ({}, [{}], "not SigMF metadata: Object missing required field `core:sample_start`"),
        ({}, [capture(-1)], "not SigMF metadata: Expected `int` >= 0"),
        ({}, [capture(2**63)], "not SigMF metadata: "),
        ({}, [capture(0), capture(0)], "core:sample_start=0: must be above that of the capture"),
        ({}, [capture(101)], "begins at sample 101: must be below the 100 samples of x.sigmf-data"),
        ({}, [capture(0), capture(50, global_index=40)], "at sample 50 begins 10 samples before"),
        ({}, [capture(0), capture(50, global_index=2**61)], "years: must be at most 60"),
        ({}, [capture(0, header_bytes=2**61)], "x.sigmf-data: holds no samples"),
        ({}, [capture(0, frequency=2e12)], "core:frequency=2e+12: must be within +-1e+12 Hz"),
        (
            {},
            [capture(0, frequency=0), capture(50, frequency=433.92e6)],
            "core:frequency changes from 0 to 433920000 Hz at sample 50: must be the same in all",
        ),
        (
            {},
            [
                capture(0, datetime="2026-05-01T04:30:01.0Z"),
                capture(50, datetime="2026-05-01T04:30:00.0Z"),
            ],
            "at sample 50 begins 2048050 samples before the one before it ends",
        ),
    ],
)
def test_metadata_that_breaks_a_rule_is_one_error(tmp_path, about, captures, message):
    """Invalid metadata are an error of one line with the file, the field, value and rule."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=re.escape(message)) as raised:
        opened(write(tmp_path, about, captures))
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_hostile_metadata_is_bounded(tmp_path):
    """Size, nesting and counts are bounded before they cost anything; annotations are skipped."""
    path = write(tmp_path)
    text = path.read_text()
    for content, message in (
        (b" " * (META_BYTES_MAX + 1), f"must have at most {META_BYTES_MAX} bytes"),
        (b"\xff\xfe", "not SigMF metadata"),
        (b"[]", "not SigMF metadata"),
        (text.replace("[]", "[" * 200_000).encode(), "not SigMF metadata"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            opened(path)
    path = write(tmp_path, captures=[capture(k) for k in range(CAPTURES_MAX + 1)])
    with pytest.raises(InputError, match=f"{CAPTURES_MAX + 1} captures: must be at most"):
        opened(path)
    note = {"core:sample_start": 5, "core:comment": "x" * 100, "other": [1, {"a": None}]}
    assert opened(write(tmp_path, annotations=[note] * 10_000)).n_samples == 100


def test_files_that_are_not_there(tmp_path):
    """Metadata without data, data without metadata, and an archive are errors with the name."""
    path = write(tmp_path)
    for suffix in (".sigmf", ".sigmf-collection"):
        with pytest.raises(InputError, match=r"must be a \.sigmf-meta file; unpack an archive"):
            opened(path.with_suffix(suffix))
    path.with_suffix(".sigmf-data").unlink()
    with pytest.raises(InputError, match=r"x\.sigmf-data: No such file"):
        opened(path)
    path.unlink()
    with pytest.raises(InputError, match=r"x\.sigmf-meta: No such file"):
        opened(path.with_suffix(".sigmf-data"))


def test_a_recording_that_shrinks_ends_with_an_error(tmp_path, collect):
    """A recording that is cut while it is read ends with an error."""
    path = write(tmp_path)
    source = opened(path)
    path.with_suffix(".sigmf-data").write_bytes(bytes(200))
    with pytest.raises(InputError, match=r"x\.sigmf-data: truncated while it was read"):
        collect(source)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2026-05-01T04:30:00Z", START_NS),
        ("2026-05-01T04:30:00.1234567891234Z", START_NS + 123456789),
        ("2026-05-01t04:30:00.5z", START_NS + 500_000_000),
        ("2026-05-01T06:30:00+02:00", START_NS),
        ("2026-05-01 04:30:00", START_NS),
        ("1969-12-31T23:59:59.25Z", -750_000_000),
        ("1899-12-31T23:59:59Z", None),
        ("0001-01-01T00:00:00+23:59", None),
        ("2026-13-01T00:00:00Z", None),
        ("2026-05-01T04:30:60Z", None),
        ("", None),
        ("yesterday", None),
    ],
)
def test_times(text, ns):
    """Times are read to the nanosecond, and invalid ones are refused."""
    assert parse_utc_ns(text) == ns
