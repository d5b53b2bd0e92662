"""Plans of archives, records of their units, and files of jobs."""

import json
import random
from pathlib import Path

import msgspec
from fuzzing import Scratch, Target, nested
from mutation import havoc, mutate_json, mutate_text

from spectrod.apps.batch.flags import parse_flags
from spectrod.apps.batch.job import Deployment, Job
from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.plan import InputFinding, Piece, Unit, make_plan, read_plan, write_plan
from spectrod.apps.batch.pyramids import _Content, _content_of, _Pyramid
from spectrod.apps.batch.results import OutputFile, UnitRecord, parse_record
from spectrod.lib.errors import ConfigError, StorageError

_SCRATCH = Scratch()
_JOB = Job(name="a", output="/out", deployments=(Deployment(name="n", inputs=("/in",)),))
_PIECE = {"size": 44, "mtime_ns": 1, "digest": "00", "sample_format": "int16", "first": 0}
_WORDS = (
    *(b"-1", b"0", b"1e400", b"4611686018427387904", b"null", b'""', b'"../../x"', b"[]", b"{}"),
    *(b'"piece"', b'"unit"', b'"plan"', b'"finding"', b'"20260501T04"', b'"float32"'),
)
_TOML_WORDS = (
    *(b"[job]", b"[deployments.n]", b"[deployments.state]", b"[levels]", b"[analysis]", b"= 0\n"),
    *(b'inputs = ["s3://x"]', b'time_zone = "../x"', b"2026-05-01T00:00:00Z", b"= 1e999\n"),
    *(b'calibration = "job.toml"', b"products = []", b"\n\n", b'"hour"', b"begin = "),
)


def check_plan(data: bytes) -> None:
    """Read a plan; what is read has units of the job, and pieces in order."""
    path = _SCRATCH.put("plan.jsonl", data)
    try:
        plan = read_plan(path, _JOB)
    except (ConfigError, StorageError):
        return
    for unit in plan.units:
        assert unit.deployment == "n"
        assert unit.sound_s >= 0.0
        assert "/" not in unit.name
        ends = [0, *(piece.index + piece.n_samples for piece in unit.pieces)]
        assert all(piece.index >= end for piece, end in zip(unit.pieces, ends, strict=False))
        assert unit.digest(_JOB)


def check_record(data: bytes) -> None:
    """Read a record; its files lie in the folder of a deployment, and it is written as it was."""
    try:
        record = parse_record("r.json", data)
    except StorageError:
        return
    assert not any(".." in Path(one.path).parts for one in record.outputs)
    assert not any(Path(one.path).is_absolute() for one in record.outputs)
    assert parse_record("r.json", msgspec.json.encode(record)) == record


def check_job(data: bytes) -> None:
    """Read a job; names of its deployments are folders of their own."""
    path = _SCRATCH.put("job.toml", data)
    try:
        job = read_job(path)
    except ConfigError:
        return
    assert job.deployments
    assert not any({"/", "\0"} & set(one.name) for one in job.deployments)
    assert job.plan_digest


def plan_seeds() -> list[bytes]:
    """Make a plan of two units and a finding."""
    pieces = tuple(Piece(path=f"/in/{k}.wav", end=50, index=60 * k, **_PIECE) for k in range(2))
    units = [
        Unit(
            deployment="n",
            name=f"2026050{day}",
            begin_utc_ns=day * 86400 * 10**9,
            start_utc_ns=day * 86400 * 10**9,
            fs=1000.0,
            channels=1,
            n_samples=100,
            cost_s=0.1,
            n_pieces=2,
            pieces=pieces,
        )
        for day in (1, 2)
    ]
    found = InputFinding(kind="gap", deployment="n", path="/in", text="a gap", duration_s=1.0)
    path = _SCRATCH.put("seed.jsonl", b"")
    write_plan(path, make_plan(_JOB, "spectrod", units, [found]))
    return [path.read_bytes()]


def record_seeds() -> list[bytes]:
    """Make the records of a result and of a failure."""
    one = UnitRecord(
        deployment="n", unit="20260501", digest="00", state="failed", begin_utc_ns=0, fs=1000.0
    )
    file = OutputFile(product="levels", path="n/n_20260501.csv", size=1, sha256="00")
    done = msgspec.structs.replace(one, state="done", outputs=(file,), read_samples=5)
    return [msgspec.json.encode(one), msgspec.json.encode(done)]


def job_seeds() -> list[bytes]:
    """Make a small job, and one with every table."""
    small = b'[job]\nname = "a"\noutput = "out"\n[deployments.n]\ninputs = ["in", "b/*.wav"]\n'
    times = b'begin = 2026-05-01T00:00:00Z\nend = 2026-06-01T00:00:00+02:00\ntime = "name"\n'
    zones = b'time_zone = "Europe/Berlin"\nclock_offset_s = -3.2\nselect = [0]\n'
    tables = b'[levels]\nquantities = ["LAeq"]\n[analysis]\nhop = 512\n[attributes]\ntitle = "t"\n'
    return [small, small + times + zones + tables + b"[picture]\nwidth = 800\n"]


def mutate_lines(data: bytes, rng: random.Random) -> bytes:
    """Change numbers and texts, or repeat, drop and swap lines."""
    if rng.random() < 0.5:
        return mutate_text(data, rng, _WORDS)
    lines = data.splitlines(keepends=True)
    if lines:
        k = rng.randrange(len(lines))
        lines[k : k + 1] = [lines[k]] * rng.choice((0, 2, 3))
        rng.shuffle(lines) if rng.random() < 0.3 else None
    return b"".join(lines)


def mutate_toml(data: bytes, rng: random.Random) -> bytes:
    """Change words of TOML, or bytes."""
    return mutate_text(data, rng, _TOML_WORDS) if rng.random() < 0.8 else havoc(data, rng)


def check_content(data: bytes) -> None:
    """Read what a folder of pyramids says of itself."""
    _SCRATCH.put("content.json", data)
    try:
        content = _content_of(_SCRATCH.folder, _JOB)
    except StorageError:
        return
    assert content is None or content.job == _JOB.name


def content_seeds() -> list[bytes]:
    """Make the content of a pyramid of two days."""
    pyramid = _Pyramid("00", {"20260501": "00"}, {"1min/20260501.cells": 5, "1d/20260101.cells": 6})
    found = _Content(job=_JOB.name, content="00", pyramids={"archive/n/pyramid": pyramid})
    return [msgspec.json.encode(found)]


def check_flags(data: bytes) -> None:
    """Read a file of flags."""
    try:
        minutes, n_clipped = parse_flags(data)
    except ValueError:
        return
    assert 0 <= n_clipped <= 1 << 53
    assert json.loads(msgspec.json.encode(minutes)) == minutes


def flags_seeds() -> list[bytes]:
    """Make the flags of two minutes."""
    head = b"time_utc,effort_s,gaps,clipped_samples,flags\n"
    return [head + b"2026-05-01T00:00:00Z,60,0,3,clipping;silence\n2026-05-01T00:01:00Z,60,1,0,\n"]


def mutate_flags(data: bytes, rng: random.Random) -> bytes:
    """Change words and lines."""
    return mutate_text(
        data, rng, (b",", b";", b"-1", b"9" * 30, b"\xff", b"\xd9\xa1", b"\r", b"1e3")
    )


TARGETS = {
    "archive_content": Target(check_content, content_seeds, mutate_json, large=nested),
    "flags": Target(check_flags, flags_seeds, mutate_flags),
    "archive_plan": Target(check_plan, plan_seeds, mutate_lines, large=lambda: nested(b"[", b"]")),
    "archive_record": Target(
        check_record, record_seeds, mutate_lines, large=lambda: nested(b"[", b"]")
    ),
    "archive_job": Target(check_job, job_seeds, mutate_toml),
}
