"""Files of measurements that a killed daemon left: recovered, converted or left alone."""

import io
import random
from pathlib import Path

import numpy as np
from fuzzing import Scratch, Target
from mutation import havoc, mutate_text

from spectrod.formats.directory import Directory
from spectrod.formats.values.measurement_description import describe
from spectrod.formats.values.recorded import HDF5, recover
from spectrod.formats.values.row_log import DESCRIPTION, RowLog, encode_description
from spectrod.formats.values.value_csv import header_text, row_text
from spectrod.lib.errors import InputError, StorageError
from spectrod.measure.levels import LevelMeter
from spectrod.measure.measurement_config import MeasuredSignals, MeasurementFacts
from spectrod.recording.ownership import Owner

_SCRATCH = Scratch()
_OWNER = Owner("days", "pond", lambda _: "input")
_HEADER = (
    b'# spectrod_origin: {"recording": "days", "source": "pond", "file_name": "input.csv"}\n'
    b'# title: "Sound levels of pond"\ntime,duration_s,flags,LAeq\n'
)
_WORDS = (b"\n", b"\0", b"#", b"\n#", b'"recording"', b"null", b"[[[[", b"\xff", b",", b"nan")


def check(data: bytes) -> None:
    """Recover a file; it keeps a begin of what it had, up to the end of a line."""
    _SCRATCH.clear("input.csv")
    part = _SCRATCH.create("input.csv.part", data)
    with Directory.open(part.parent) as folder:
        is_own = _OWNER.wrote(folder, part.name)
        assert is_own or not data.startswith(_HEADER)
    try:
        found = recover(part)
    except (InputError, StorageError):
        assert part.read_bytes() == data
        return
    kept = part.with_suffix("").read_bytes()
    assert data.startswith(kept)
    assert len(kept) + found.cut_bytes == len(data)
    assert kept.endswith(b"\n")
    assert b"\0" not in kept
    lines = [line for line in kept.split(b"\n")[:-1] if not line.startswith(b"#")]
    assert found.n_rows == len(lines) - 1 >= 1


def check_rows(data: bytes) -> None:
    """Read the rows of a file that is to become NetCDF; each has the description's values."""
    try:
        log = RowLog(io.BytesIO(data))
        n_channels, bands = len(log.about.channels), log.about.bands
        for row in log.rows():
            assert row.values.shape == (len(log.about.quantities), n_channels)
            assert row.band_values.shape == (len(bands.quantities), len(bands.filters), n_channels)
            assert row.flags.shape == (n_channels,)
    except InputError as error:
        assert "cannot be read: " in str(error)  # noqa: PT017 - any of its errors


def row_seeds() -> list[bytes]:
    """Make the lines of two channels, with bands and without."""
    found = []
    signals = MeasuredSignals("pond", 8000.0, ("a", "b"), (None, None))
    for bands in ("", "octave"):
        meter = LevelMeter(8000, 2, quantities=["LAeq", "LUFS_M"], align="utc", bands=bands)
        facts = MeasurementFacts("Sound levels", bands=meter.bands)
        about = describe(signals, facts, meter)
        rows = meter.push(np.zeros((2, 24_576)), utc_ns=0)
        lines = _HEADER.partition(b"\n")[0].decode(), f"{DESCRIPTION}{encode_description(about)}"
        text = "\n".join((*lines, header_text(Path("input.nc"), about)))
        found.append((text + "".join(row_text(about, row) for row in rows)).encode())
    return found


def seeds() -> list[bytes]:
    """Make files of no row, some rows, a torn row, one that a power failure has cut, and no CSV."""
    rows = b"".join(b"2026-06-01T12:%02d:00Z,60.0,gap,-23.25\n" % k for k in range(20))
    return [
        _HEADER,
        _HEADER + rows,
        _HEADER + rows[:-9],
        _HEADER + rows + bytes(512),
        HDF5 + rows[:-9],
    ]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change the text, or any bytes."""
    return mutate_text(data, rng, _WORDS) if rng.random() < 0.7 else havoc(data, rng)


TARGETS = {
    "values_recovery": Target(check, seeds, mutate),
    "values_rows": Target(check_rows, row_seeds, mutate),
}
