"""Pyramids: ``pyramid.json`` and the cells of the finest level."""

import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from fuzzing import Scratch, Target, nested
from mutation import havoc, mutate_json

from spectrod.formats.pyramid import PyramidReader, PyramidWriter
from spectrod.lib.errors import ConfigError, InputError, StorageError

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))
from segment_rows import describe, make_batch, make_spec

_MARK = b"\xffCELLS\xff"
_SPEC = make_spec(fs=1000.0, hop=500, win_length=16)
_SECOND_NS = 10**9
_BEGIN_UTC_NS = 20_575 * 86400 * _SECOND_NS
"""Midnight: the first cells are at the start of a file."""

_COLUMNS = 4
_SCRATCH = Scratch()


def _write(folder: Path) -> Path:
    """Write a pyramid of some seconds; return the file of its finest cells."""
    writer = PyramidWriter(folder, describe(_SPEC))
    batch = make_batch(_SPEC, 0, 12)
    times = _BEGIN_UTC_NS + batch.t_utc_ns - batch.t_utc_ns[0]
    writer.write(replace(batch, values=np.full_like(batch.values, 1e-3), t_utc_ns=times))
    writer.finish()
    return next((folder / "1s").glob("*.cells"))


_FOLDER = _SCRATCH.folder / "pyramid"
_FOLDER.mkdir()
_CELLS = _write(_FOLDER)


def check(data: bytes) -> None:
    """Read columns of some seconds and of a day."""
    about, _, cells = data.partition(_MARK)
    (_FOLDER / "pyramid.json").write_bytes(about)
    _CELLS.write_bytes(cells)
    try:
        reader = PyramidReader(_FOLDER)
        for span_s in (10, 86400):
            end_ns = _BEGIN_UTC_NS + span_s * _SECOND_NS
            columns = reader.columns(_BEGIN_UTC_NS, end_ns, _COLUMNS)
            assert columns.mean.shape == columns.least.shape
            assert len(columns.mean) == _COLUMNS
        reader.close()
    except (ConfigError, InputError, StorageError):
        return


def seeds() -> list[bytes]:
    """Make valid pyramids."""
    with tempfile.TemporaryDirectory() as name:
        cells = _write(Path(name) / "p")
        return [(Path(name) / "p/pyramid.json").read_bytes() + _MARK + cells.read_bytes()]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change the JSON, or bytes of the cells."""
    about, mark, cells = data.partition(_MARK)
    if rng.random() < 0.7:
        return mutate_json(about, rng) + mark + cells
    return about + mark + havoc(cells, rng)


def _nested() -> Iterator[bytes]:
    (seed,) = seeds()
    about, mark, cells = seed.partition(_MARK)
    for deep in nested():
        yield deep + mark + cells
        yield about.replace(b'"settings": ', b'"settings": ' + deep, 1) + mark + cells


TARGETS = {"pyramid": Target(check, seeds, mutate, large=_nested)}
