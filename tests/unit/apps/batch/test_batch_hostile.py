"""``spectrod batch`` and archives that mean harm: one error or a finding, and nothing outside."""

import os
import re
import shutil
import sys
from pathlib import Path

import msgspec
import pytest

from spectrod.apps.batch.fingerprint import fingerprint
from spectrod.apps.batch.folder_output import FolderOutput
from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.merge import collect
from spectrod.apps.batch.plan import (
    UTC_NS_MAX,
    BatchPlan,
    Piece,
    Unit,
    make_plan,
    read_plan,
    write_plan,
)
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.results import (
    OutputFile,
    UnitRecord,
    read_record,
    record_name,
    write_record,
)
from spectrod.apps.batch.scan import scan
from spectrod.apps.batch.unit import compute_unit, file_digest
from spectrod.lib.errors import InputError, SettingsError, StorageError

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import FS, job_of, sound, write

FLAGS, OTHER_UNIT = "north/north_19700101_flags.csv", "north/north_19700102_flags.csv"
HOUR_NS = 3600 * 10**9
UNIT = Unit(
    deployment="north", name="19700101", begin_utc_ns=0, start_utc_ns=0, fs=FS, channels=1,
    n_samples=FS, cost_s=1.0,
)  # fmt: skip
PIECE = Piece(
    path="/a.wav", size=1, mtime_ns=0, digest="", sample_format="int16", first=0, end=FS, index=0
)
RECORD = UnitRecord(
    deployment="north", unit="19700101", digest="", state="done", begin_utc_ns=0, fs=FS
)


def plan_error(tmp_path, unit, piece):
    """Return the error of reading a plan of a unit and its piece."""
    job = job_of(tmp_path, tmp_path)
    unit = msgspec.structs.replace(unit, pieces=(piece,))
    write_plan(tmp_path / "plan.jsonl", make_plan(job, "test", [unit], []))
    with pytest.raises(StorageError) as error:
        read_plan(tmp_path / "plan.jsonl", job)
    return str(error.value)


@pytest.mark.parametrize(
    ("of_unit", "of_piece", "rule"),
    [
        ({"begin_utc_ns": 1 << 63}, {}, "Expected `int`"),
        ({"name": "19700101\n"}, {}, "Expected `str` matching regex"),
        ({"name": "99999999"}, {}, "north/99999999: must have the name of its begin"),
        ({}, {"path": "a\0b"}, "Expected `str` matching regex"),
        ({}, {"index": 1 << 60}, "north/19700101: its pieces must end within a day"),
    ],
)
def test_an_edited_plan_is_refused(tmp_path, of_unit, of_piece, rule):
    """Times, names, paths and places that no plan has are named."""
    unit = msgspec.structs.replace(UNIT, **of_unit)
    assert rule in plan_error(tmp_path, unit, msgspec.structs.replace(PIECE, **of_piece))


@pytest.mark.parametrize(
    "change",
    [
        {"read_samples": 1 << 63},
        {"exit_code": 300},
        {"deployment": "south"},
        {"outputs": (OutputFile(product="flags", path="south/a", size=1, sha256=""),)},
        {"outputs": (OutputFile(product="flags", path="north/a\n", size=1, sha256=""),)},
        {"outputs": (OutputFile(product="flags", path=OTHER_UNIT, size=1, sha256=""),)},
        {"outputs": (OutputFile(product="millidecade", path=FLAGS, size=1, sha256=""),)},
        {"outputs": (OutputFile(product="other", path=FLAGS, size=1, sha256=""),)},
    ],
)
def test_a_record_that_is_not_of_the_unit_counts_as_none(tmp_path, change):
    """So files of other units are neither removed nor replaced because of it."""
    write_record(FolderOutput(tmp_path), UNIT, RECORD)
    assert read_record(FolderOutput(tmp_path), UNIT) == RECORD
    write_record(FolderOutput(tmp_path), UNIT, msgspec.structs.replace(RECORD, **change))
    assert read_record(FolderOutput(tmp_path), UNIT) is None


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Return a job of two days with its plan, of which a shard has the second day."""
    folder = tmp_path_factory.mktemp("shards")
    for day in range(2):
        write(folder / "card", sound(70 * FS, day), 600 + 86400 * day)
    job = job_of(folder, folder / "card", products=("flags",))
    (folder / "results").mkdir()
    plan = plan_job(job)
    for unit in plan.units:
        compute_unit(job, unit)
    (folder / "results").rename(folder / "shard")
    return job, plan, folder / "shard"


def with_outputs(shard, unit, *more):
    """Write the record of a unit with files beside its own."""
    record = read_record(FolderOutput(shard), unit)
    changed = msgspec.structs.replace(record, outputs=(*record.outputs[:1], *more))
    write_record(FolderOutput(shard), unit, changed)


def test_a_record_replaces_no_file_of_another_unit(shards, tmp_path):
    """The record of the second day names the first day's file, too: neither is taken from it."""
    job, plan, shard = shards
    job = msgspec.structs.replace(job, output=str(tmp_path / "results"))
    shutil.copytree(shard, tmp_path / "shard")
    (tmp_path / "results").mkdir()
    first, second = plan.units
    assert collect(job, BatchPlan(plan.head, (first,), ()), [str(tmp_path / "shard")]) == 1
    ours = tmp_path / "results" / "north" / f"north_{first.name}_flags.csv"
    theirs = tmp_path / "shard" / "north" / ours.name
    before = ours.read_bytes()
    theirs.write_bytes(before.replace(b"0", b"1"))
    size, sha256 = file_digest(theirs)
    path = f"north/{ours.name}"
    stranger = OutputFile(product="flags", path=path, size=size, sha256=sha256)
    with_outputs(tmp_path / "shard", second, stranger)
    assert collect(job, plan, [str(tmp_path / "shard")]) == 0
    assert ours.read_bytes() == before


def test_a_file_of_a_size_that_no_product_has_is_not_copied(shards, tmp_path):
    """A hole of terabytes would fill the disk, and be read as a whole for its digest."""
    job, plan, shard = shards
    job = msgspec.structs.replace(job, output=str(tmp_path / "results"))
    shutil.copytree(shard, tmp_path / "shard")
    (tmp_path / "results").mkdir()
    unit = plan.units[1]
    name = f"north_{unit.name}_flags.csv"
    os.truncate(tmp_path / "shard" / "north" / name, 1 << 40)
    shard = FolderOutput(tmp_path / "shard")
    record = read_record(shard, unit)
    outputs = (msgspec.structs.replace(record.outputs[0], size=1 << 40),)
    write_record(shard, unit, msgspec.structs.replace(record, outputs=outputs))
    rule = f"{name}: has {1 << 40} bytes: must have at most 1048576"
    with pytest.raises(StorageError, match=rule):
        collect(job, plan, [str(tmp_path / "shard")])


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("millidecade", "north_evil_{unit}.nc"),
        ("millidecade", "north_{unit}.nc"),
        ("spectra", "north_{unit}_spectra.nc"),
        ("flags", "north_{unit}_flags.csv"),
    ],
)
def test_a_record_names_the_files_of_its_unit_each_once(shards, tmp_path, product, name):
    """Products and signals that the job has not, and a file twice, are refused by name."""
    job, plan, shard = shards
    job = msgspec.structs.replace(job, output=str(tmp_path / "results"))
    shutil.copytree(shard, tmp_path / "shard")
    (tmp_path / "results").mkdir()
    unit = plan.units[1]
    path = "north/" + name.format(unit=unit.name)
    (tmp_path / "shard" / path).touch()
    size, sha256 = file_digest(tmp_path / "shard" / path)
    more = OutputFile(product=product, path=path, size=size, sha256=sha256)
    with_outputs(tmp_path / "shard", unit, more)
    rule = f"{path} as {product}: is no file of north/{unit.name}, or is named twice"
    with pytest.raises(StorageError, match=re.escape(rule)):
        collect(job, plan, [str(tmp_path / "shard")])


def test_pipes_in_place_of_files_are_not_waited_for(tmp_path):
    """Inputs, results and records that are pipes end in an error."""
    path = tmp_path / record_name(UNIT)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    for read in (file_digest, lambda _: read_record(FolderOutput(tmp_path), UNIT)):
        with pytest.raises(StorageError, match=r"19700101\.json: must be a regular file"):
            read(path)
    with pytest.raises(OSError, match="must be a regular file"):
        fingerprint(path)


def test_names_that_are_not_utf_8_and_impossible_times_are_findings(tmp_path):
    """A plan is JSON, and times have 64 bits: such files are left out, the rest is planned."""
    card = tmp_path / "card"
    path = write(card, sound(FS))
    os.link(path, os.fsencode(card) + b"/\xff_20260501_000000.wav")
    files, findings = scan(job_of(tmp_path, card).deployments[0])
    assert [file.path for file in files] == [str(path)]
    assert re.search(r"\\xff_2026\S+: its path is not UTF-8: rename it", findings[0].text)
    msgspec.json.encode(findings)
    files, findings = scan(job_of(tmp_path, card, clock_offset_s=1e10).deployments[0])
    assert files == []
    assert "must be from 1685 to 2255" in " ".join(one.text for one in findings)


def rated(path, fs):
    """Write another sample rate into the header of a WAV file."""
    content = bytearray(path.read_bytes())
    content[24:28] = fs.to_bytes(4, "little")
    path.write_bytes(content)


def long_flac(path, fs, n_samples):
    """Write another sample rate and length into the header of a FLAC file of 16 bits."""
    content = bytearray(path.read_bytes())
    content[18:26] = (fs << 44 | 15 << 36 | n_samples).to_bytes(8, "big")
    path.write_bytes(content)


def changed_in_2286(path):
    """Give a file a time of change beyond 64 bits of nanoseconds."""
    os.utime(path, (0, 10**10))
    if path.stat().st_mtime_ns != 10**19:
        pytest.skip("the file system has no such times")


@pytest.mark.parametrize(
    ("suffix", "change", "rule"),
    [
        (".wav", lambda path: rated(path, 2 * 10**9), "its rate of 2e+09 Hz must be 0.001 to"),
        (".flac", lambda path: long_flac(path, 1, (1 << 36) - 1), "lasts 2.18e+03 years"),
        (".wav", changed_in_2286, "its time of change is beyond"),
    ],
)
def test_headers_beyond_those_of_a_plan_are_findings(tmp_path, suffix, change, rule):
    """One header costs its file alone: the plan of the others is read again."""
    bad = write(tmp_path / "card", sound(FS), suffix=suffix)
    good = write(tmp_path / "card", sound(FS), 86400)
    change(bad)
    job = job_of(tmp_path, tmp_path / "card")
    plan = plan_job(job)
    write_plan(tmp_path / "plan.jsonl", plan)
    (unit,) = read_plan(tmp_path / "plan.jsonl", job).units
    assert [piece.path for piece in unit.pieces] == [str(good)]
    (one,) = plan.findings
    assert (one.kind, one.path) == ("unreadable", str(bad))
    assert rule in one.text


def test_a_pattern_on_a_disk_of_links_ends(tmp_path):
    """Links to their own folder, which make 2^40 paths, cost a pattern nothing."""
    good = write(tmp_path / "card", sound(FS))
    for name in ("a", "b"):
        (tmp_path / "card" / name).symlink_to(".")
    for pattern in ("card/**/*.wav", "card/**", "*/**/*.wav"):
        files, findings = scan(job_of(tmp_path, tmp_path / pattern).deployments[0])
        assert [file.path for file in files] == [str(good)]
        assert findings == []


@pytest.mark.parametrize("utc_ns", [HOUR_NS - UTC_NS_MAX, UTC_NS_MAX - HOUR_NS // 100])
def test_days_at_the_ends_of_time_are_read_again(tmp_path, utc_ns):
    """A file is left out if its day begins, or its sound ends, beyond the times of a plan."""
    path = write(tmp_path / "card", sound(60 * FS))
    (file,), _ = scan(job_of(tmp_path, tmp_path / "card").deployments[0])
    offset_s = (utc_ns - file.recorded.utc_ns) / 1e9
    _, (one,) = scan(job_of(tmp_path, path.parent, clock_offset_s=offset_s).deployments[0])
    assert (one.kind, one.path) == ("undated", str(path))


def test_a_plan_that_would_not_be_read_is_not_made(tmp_path, monkeypatch):
    """More pieces than a plan may have end in an error."""
    monkeypatch.setattr("spectrod.apps.batch.plan.PIECES_MAX", 1)
    unit = msgspec.structs.replace(UNIT, pieces=(PIECE, PIECE))
    with pytest.raises(InputError, match="2 pieces of files: must be at most 1"):
        make_plan(job_of(tmp_path, tmp_path), "test", [unit], [])


@pytest.mark.parametrize(
    ("text", "rule"),
    [("a\\u0000b", "must be a path, which has no NUL"), ("~no such/x", "and a known user")],
)
def test_paths_of_a_job_that_cannot_be(tmp_path, text, rule):
    """The output and the calibration are named with the rule."""
    (tmp_path / "job.toml").write_text(
        f'[job]\nname = "a"\noutput = "{text}"\n'
        f'[deployments.a]\ninputs = ["."]\ncalibration = "{text}"\n'
    )
    with pytest.raises(SettingsError) as error:
        read_job(tmp_path / "job.toml")
    assert str(error.value).count(rule) == 2
