"""Files of events, as programs that mark recordings write them."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

from fuzzing import LARGE_BYTES, Target, nested
from mutation import havoc, mutate_json, mutate_text

from spectrod.formats.event_reading import FILE_EVENTS_MAX, parse_events
from spectrod.lib.errors import InputError

_FORMS = (b".csv", b".json", b".txt", b".sigmf-meta")
"""Stand at the begin of an input: the end of the file's name."""
_WORDS = (
    *(b"\t", b",", b";", b'"', b"\\", b"\r\n", b"\xef\xbb\xbf", b"nan", b"1e400", b"-1", b""),
    *(b"Begin Time (s)", b"End Time (s)", b"Selection", b"begin_s", b"duration_s", b"begin_utc"),
    *(b"2026-05-02T04:00:00Z", b"9999-12-31T23:59:60+99:99", b"0001-01-01"),
)
_EVENT = {
    "begin_s": 1.5,
    "duration_s": 0.25,
    "begin_utc": "2026-05-02T04:00:00.123456Z",
    "channel": "left",
    "f_min_hz": 2000,
    "f_max_hz": 6000.5,
    "level": -12.5,
    "unit": "dBFS",
    "over_floor_db": 12,
    "pulses": 3,
    "file": "a.wav",
}


def check(data: bytes) -> None:
    """Read events; times are finite and lengths, counts and texts bounded."""
    form = next((one for one in _FORMS if data.startswith(one)), b".txt")
    try:
        found = parse_events(Path("events" + form.decode()), data.removeprefix(form))
    except InputError:
        return
    assert len(found) <= FILE_EVENTS_MAX
    for one in found:
        assert one.duration_s >= 0.0
        assert abs(one.begin_s) < 1e17
        assert (one.f_min_hz is None) == (one.f_max_hz is None)
        assert len(one.text) <= 1000
        (one.text + one.file).encode()


def seeds() -> list[bytes]:
    """Make a file of each format, and both kinds of text."""
    row = ",".join(str(value) for value in _EVENT.values())
    raven = "Selection\tChannel\tBegin Time (s)\tEnd Time (s)\tLow Freq (Hz)\tHigh Freq (Hz)\n"
    note = {"core:sample_start": 100, "core:sample_count": 50, "core:label": "call"}
    band = {"core:freq_lower_edge": 100.0, "core:freq_upper_edge": 200.5, "core:comment": "x"}
    capture = {"core:sample_start": 20, "core:datetime": "2026-05-01T04:30:00.5Z"}
    of_all = {"core:sample_rate": 48000, "core:offset": 7}
    sigmf = {"global": of_all, "captures": [capture], "annotations": [note | band]}
    return [
        b".csv" + ",".join(_EVENT).encode() + b"\n" + row.encode() + b"\n",
        b".json" + json.dumps([_EVENT, {"begin_s": 3, "duration_s": 0}]).encode(),
        b".txt" + raven.encode() + b"1\t1\t0.5\t0.75\t100\t8000\n1\t2\t0.5\t0.75\t100\t8000\n",
        b".txt0.5\t1.25\tcall\n\\\t100\t2000\n3\t3\t\n",
        b".sigmf-meta" + json.dumps(sigmf).encode(),
    ]


def _mutate(data: bytes, rng: random.Random) -> bytes:
    form = next((one for one in _FORMS if data.startswith(one)), b"")
    content = data.removeprefix(form)
    if rng.random() < 0.2:
        return form + havoc(content, rng)
    if form in (b".json", b".sigmf-meta"):
        return form + mutate_json(content, rng)
    return form + mutate_text(content, rng, _WORDS)


def _large() -> Iterator[bytes]:
    """Make deep nesting, as many short events as fit, and a line without end."""
    csv, _, raven, labels, sigmf = seeds()
    yield from nested(b".json")
    yield from nested(sigmf.partition(b'"captures": ')[0] + b'"captures": ')
    head = csv.partition(b"\n")[0] + b"\n"
    yield head + b"1,2\n" * ((LARGE_BYTES - len(head)) // 4)
    yield raven + b"2\t1\t3\t4\n" * ((LARGE_BYTES - len(raven)) // 8)
    yield labels + b"1\t2\n" * ((LARGE_BYTES - len(labels)) // 4)
    yield head + b'"' + b"," * (LARGE_BYTES - len(head) - 1)


TARGETS = {"events": Target(check, seeds, _mutate, max_bytes=4096, large=_large)}
