"""Metadata of SigMF recordings, beside a data file of 400 bytes."""

import json
import os
import random

from fuzzing import Scratch, Target, nested
from mutation import havoc, mutate_json

from spectrod.lib.errors import InputError
from spectrod.source.base import SPAN_MAX_S
from spectrod.source.files.sigmf_meta import read_sigmf

_SCRATCH = Scratch()
_N_BYTES = 400


def check(data: bytes) -> None:
    """Read the metadata; captures are within the data file, in ascending order."""
    _SCRATCH.put("input.sigmf-data", bytes(_N_BYTES))
    path = os.fspath(_SCRATCH.put("input.sigmf-meta", data))
    try:
        found = read_sigmf(path, 48000)
    except InputError:
        return
    assert os.path.dirname(found.data_path) == os.path.dirname(path)  # noqa: PTH120 - as texts
    end, place = 0, 0
    for segment in found.segments:
        assert segment.n_samples >= 1
        assert segment.begin >= end
        assert segment.place >= place
        end, place = segment.end, segment.place + segment.n_samples * found.frame_bytes
    assert place <= os.stat(found.data_path).st_size  # noqa: PTH116 - as texts
    assert found.n_samples == end <= SPAN_MAX_S * found.fs


def seeds() -> list[bytes]:
    """Make recordings of several kinds, with gaps, headers, annotations and extensions."""
    plain = {"core:datatype": "cu8", "core:version": "1.2.0", "core:sample_rate": 2.048e6}
    captures = [
        {
            "core:sample_start": 0,
            "core:datetime": "2026-05-01T04:30:00.5Z",
            "core:frequency": 433.92e6,
        },
        {"core:sample_start": 20, "core:global_index": 50, "core:header_bytes": 8},
    ]
    note = {"core:sample_start": 3, "core:comment": "burst", "core:freq_lower_edge": 4.3e8}
    audio = {
        "core:datatype": "ri16_be",
        "core:version": "1.0.0",
        "core:num_channels": 2,
        "core:offset": 100,
        "core:dataset": "input.sigmf-data",
        "core:trailing_bytes": 4,
        "core:extensions": [{"name": "antenna", "version": "1.0.0", "optional": True}],
    }
    documents = (
        {"global": plain, "captures": captures, "annotations": [note]},
        {"global": audio, "captures": [{"core:sample_start": 100}], "annotations": []},
        {"global": plain, "captures": [], "annotations": []},
    )
    return [json.dumps(document).encode() for document in documents]


def _mutate(data: bytes, rng: random.Random) -> bytes:
    return havoc(data, rng) if rng.random() < 0.3 else mutate_json(data, rng)


def _large() -> list[bytes]:
    """Make deep nesting, and as many captures as fit."""
    head = seeds()[2]
    starts = b",".join(b'{"core:sample_start":%d}' % k for k in range(30_000))
    return [
        *nested(head.replace(b'"annotations": []}', b'"annotations": ')),
        head.replace(b'"captures": []', b'"captures": [' + starts + b"]"),
    ]


TARGETS = {"sigmf": Target(check, seeds, _mutate, large=_large)}
