"""Files that the page's history reads by parts, and whose origin a recorder looks up."""

import json
import os
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
from fuzz_targets import segment
from fuzzing import Scratch, Target
from mutation import havoc, mutate_json, mutate_text

from spectrod.apps.web.history.budget import AbandonedError, Budget, SpentError
from spectrod.apps.web.history.stored_rows import (
    last_row_utc_ns,
    opened,
    read_beginning,
    rows_between,
)
from spectrod.dsp.blocks import Block
from spectrod.formats.origin import VALUES_ORIGIN, read_origin
from spectrod.formats.sound import SoundOptions, SoundWriter
from spectrod.lib.errors import InputError, StorageError

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))
from segment_rows import BEGIN_UTC_NS

_SUFFIXES = (".spd", ".wav", ".flac", ".csv", ".nc")
_WORDS = (
    *(b"spectrod|Source: ", b"spectrod|Recording: ", b"Original Filename: ", b"Timestamp: "),
    *(b"2026-05-01T00:00:00+00:00", b"9999-12-31T23:59:59-23:59", b"0001-01-01", b"Recorded at "),
    *(b"25:61:61.5 31/02/2026 (UTC) by x from y. ", b"Recording r, file f. ", b"\xff", b"\n", b"."),
)
_SCRATCH = Scratch()


def check_rows(data: bytes) -> None:
    """Read rows of spans of a segment within a budget; each batch is of the analysis it says."""
    path = _SCRATCH.put("input.spd", data)
    try:
        with opened(os.open(path, os.O_RDONLY), Budget()) as file:
            start = read_beginning(path, file)
            for begin_ns, end_ns in ((0, 1 << 62), (BEGIN_UTC_NS + 10**6, BEGIN_UTC_NS + 10**7)):
                for stored in rows_between(path, file, start, begin_ns, end_ns):
                    spec = stored.batch.spec
                    assert stored.batch.values.shape[1:] == (spec.n_signals, spec.n_values)
            assert isinstance(last_row_utc_ns(path, file, start), int)
    except (InputError, StorageError, SpentError, AbandonedError):
        return


def check_origin(data: bytes) -> None:
    """Look up the origin of a file of each kind; its texts are texts."""
    path = _SCRATCH.put("input", data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        for suffix in _SUFFIXES:
            found = read_origin(descriptor, suffix)
            if found is not None:
                assert isinstance(found.source, str)
                assert isinstance(found.file_name, str)
                assert found.begin_utc_ns is None or isinstance(found.begin_utc_ns, int)
                assert found.length_s is None or 0.0 < found.length_s < 1e11
    finally:
        os.close(descriptor)


def origin_seeds() -> list[bytes]:
    """Make a segment, sound files and values as the recorder does."""
    made = []
    with tempfile.TemporaryDirectory() as name:
        for suffix in (".wav", ".flac"):
            path = Path(name) / f"a{suffix}"
            options = SoundOptions(source="pond", recording="night")
            writer = SoundWriter(path, 8000, 1, "s16", options)
            writer.write(Block(np.zeros((1, 100), np.float32), 0, BEGIN_UTC_NS, BEGIN_UTC_NS))
            writer.finish()
            made.append(path.read_bytes())
    origin = {"recording": "night", "source": "pond", "file_name": "a.csv"}
    line = f"{VALUES_ORIGIN}{json.dumps(origin)}\n".encode()
    return [segment.seeds()[0], *made, line + b"time_utc,LAeq\n", b"\x89HDF" + bytes(64) + line]


def mutate_origin(data: bytes, rng: random.Random) -> bytes:
    """Change the JSON of values or of a segment, words of sound files, and bytes."""
    start = VALUES_ORIGIN.encode()
    if start in data and rng.random() < 0.7:
        before, _, rest = data.partition(start)
        line, end, after = rest.partition(b"\n")
        return before + start + mutate_json(line, rng) + end + after
    if data.startswith(b"SPD"):
        return segment.mutate(data, rng)
    return mutate_text(data, rng, _WORDS) if rng.random() < 0.6 else havoc(data, rng)


TARGETS = {
    "stored_rows": Target(check_rows, segment.seeds, segment.mutate, segment.repair, 32768),
    "origin": Target(check_origin, origin_seeds, mutate_origin, segment.repair),
}
