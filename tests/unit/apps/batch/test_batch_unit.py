"""Units: functions of their samples and parameters, to the bit; failures leave nothing behind."""

import errno
import os
import sys
from itertools import pairwise
from pathlib import Path

import h5netcdf
import msgspec
import numpy as np
import pytest
import soundfile

from spectrod.apps.batch import folder_output
from spectrod.apps.batch import unit as batch_unit
from spectrod.apps.batch.command import Stop
from spectrod.apps.batch.executor import attempt
from spectrod.apps.batch.folder_output import FolderOutput
from spectrod.apps.batch.local_executor import LocalExecutor
from spectrod.apps.batch.merge import collect, summarise
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.results import parse_record, read_record, record_name
from spectrod.apps.batch.run import run_units, status_of
from spectrod.apps.batch.unit import compute_unit, failed
from spectrod.apps.batch.unit_samples import UnitSamples
from spectrod.apps.batch.verify import file_problems, recomputed_problems
from spectrod.lib.errors import InternalError, StorageError

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import FS, job_of, sound, write

MTIME_S = 1_780_000_000


def planned(tmp_path, folder, **settings):
    """Return a job, and its units."""
    for path in folder.rglob("*.*"):
        os.utime(path, (MTIME_S, MTIME_S))
    job = job_of(tmp_path, folder, **settings)
    return job, plan_job(job).units


def read(unit, select=()):
    """Return the samples of a unit, and where there are none NaN."""
    reader = UnitSamples(unit, select)
    joined = np.full((len(select) or unit.channels, unit.pieces[-1].index + 10**6), np.nan)
    end = 0
    for block in reader.blocks():
        end = block.sample_index + block.n_samples
        full_scale = 1.0 if block.samples.dtype.kind == "f" else 2.0**15
        joined[:, block.sample_index : end] = block.samples / full_scale
    return joined[:, :end], reader


def shas(record):
    return {one.path: one.sha256 for one in record.outputs}


@pytest.mark.parametrize("suffixes", [(".wav", ".wav"), (".flac", ".wav"), (".flac", ".flac")])
def test_files_are_read_as_one_time_line(tmp_path, suffixes):
    """Samples of every format are those of the files, at their places, and gaps are gaps."""
    card, x = tmp_path / "card", sound(50_001, channels=2)
    write(card, x[:20_000], 0, suffix=suffixes[0])
    write(card, x[20_000:], 30, suffix=suffixes[1])
    _, (unit,) = planned(tmp_path, card)
    found, reader = read(unit, (1,))
    np.testing.assert_array_equal(found[:, :20_000], x[:20_000, 1:].T / 2.0**15)
    np.testing.assert_array_equal(found[:, 30_000:], x[20_000:, 1:].T / 2.0**15)
    assert np.isnan(found[:, 20_000:30_000]).all()
    assert (reader.read_samples, reader.missing_samples, reader.gaps) == (50_001, 10_000, 1)


def test_minutes_that_span_files_are_those_of_one_file(tmp_path):
    """All products of files that follow each other have the bytes of those of one file."""
    x = sound(410 * FS)
    ends = [0, 95_500, 131_017, len(x)]
    for k, (first, end) in enumerate(pairwise(ends)):
        write(tmp_path / "several", x[first:end], first // FS, prefix=f"{k}_")
    write(tmp_path / "one", x)
    results = []
    for name in ("several", "one"):
        job, (unit,) = planned(tmp_path / name, tmp_path / name)
        record = compute_unit(job, unit)
        assert (record.state, record.read_samples, record.gaps) == ("done", len(x), 0)
        results.append(shas(record))
    assert results[0] == results[1]
    assert sorted(results[0]) == [
        "north/north_20260501.nc", "north/north_20260501_flags.csv",
        "north/north_20260501_levels.csv",
    ]  # fmt: skip


def test_a_result_stands_until_something_changes(tmp_path, monkeypatch):
    """A unit is computed again if samples, parameters or its files differ, and not else."""
    write(tmp_path / "card", sound(70 * FS))
    job, (unit,) = planned(tmp_path, tmp_path / "card", products=("levels",))
    first = compute_unit(job, unit)
    assert compute_unit(job, unit) == first
    assert status_of(job, unit).state == "done"
    other = msgspec.structs.replace(job, products=("flags",))
    assert status_of(other, unit).state == "waiting"
    again = compute_unit(other, unit)
    names = [path.name for path in (tmp_path / "results/north").iterdir()]
    assert names == ["north_20260501_flags.csv"]
    (tmp_path / "results" / again.outputs[0].path).write_text("")
    assert status_of(other, unit).reason == "a file of it is missing or has changed"
    write(tmp_path / "card", sound(70 * FS, 2))
    failed = compute_unit(job, unit)
    assert (failed.state, failed.exit_code, failed.outputs) == ("failed", 2, ())
    assert failed.reason.endswith("has changed since the plan; run spectrod batch plan")
    assert not list((tmp_path / "results/state/parts/north").glob("2*[!k]"))


def test_torn_and_broken_sound_makes_a_partial_unit(tmp_path):
    """Samples that no recorder makes, or that cannot be decoded, are gaps with a line."""
    card = tmp_path / "card"
    x = sound(60 * FS)[:, 0] / 2.0**15
    x[30_000:30_010] = np.nan
    x[40_000] = 1e25
    path = write(card, sound(60 * FS))
    soundfile.write(path, x, FS, subtype="FLOAT")
    flac = write(card, sound(60 * FS), 60, suffix=".flac")
    damaged = bytearray(flac.read_bytes())
    damaged[len(damaged) // 2 :] = bytes(len(damaged) - len(damaged) // 2)
    flac.write_bytes(damaged)
    job, (unit,) = planned(tmp_path, card)
    record = compute_unit(job, unit)
    assert (record.state, record.exit_code) == ("partial", 65)
    assert record.problems[0] == f"{path}: some of its samples are beyond 1e+12, or not finite"
    assert f"{flac}: " in record.problems[1]
    assert 80 * FS < record.read_samples < 110 * FS


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda path: path.write_bytes(path.read_bytes()), "has changed since the plan"),
        (Path.unlink, "No such file or directory"),
    ],
)
def test_a_file_that_changes_while_it_is_read_fails(tmp_path, monkeypatch, change, reason):
    """What was read may be neither the old sound nor the new one: it is no result."""
    path = write(tmp_path / "card", sound(70 * FS))
    job, (unit,) = planned(tmp_path, tmp_path / "card", products=("flags",))
    write_block = batch_unit.UnitProducts.write

    def write_all(self, block):
        if path.exists() and path.stat().st_mtime == MTIME_S:
            change(path)
        write_block(self, block)

    monkeypatch.setattr(batch_unit.UnitProducts, "write", write_all)
    record = compute_unit(job, unit)
    assert (record.state, record.exit_code) == ("failed", 2)
    assert reason in record.reason
    assert list((Path(job.output) / "north").iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    """A unit that cannot be written fails with its reason; the next attempt is whole."""
    write(tmp_path / "card", sound(70 * FS))
    job, (unit,) = planned(tmp_path, tmp_path / "card", products=("levels", "flags"))

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(folder_output, "sync", full)
        record = compute_unit(job, unit)
    assert (record.state, record.exit_code, record.attempts) == ("failed", 74, 1)
    assert record.reason.endswith("north: No space left on device")
    assert status_of(job, unit).state == "waiting"
    assert compute_unit(job, unit).state == "done"
    assert list(file_problems(job, read_record(FolderOutput(Path(job.output)), unit))) == []


def test_attempts_count_where_files_cannot_have_their_names(tmp_path):
    """A unit that fails as its files get their names is set aside, too."""
    write(tmp_path / "card", sound(70 * FS))
    job, (unit,) = planned(tmp_path, tmp_path / "card", products=("flags",))
    (Path(job.output) / "north" / "north_20260501_flags.csv").mkdir(parents=True)
    records = [compute_unit(job, unit) for _ in range(job.attempts)]
    assert [record.attempts for record in records] == [1, 2, 3]
    found = status_of(job, unit)
    assert (found.state, found.exit_code) == ("failed", 74)
    assert found.reason.endswith("north: Is a directory")


class Failing:
    """An executor whose units fail a number of times."""

    def __init__(self, n_failures):
        self.n_failures = n_failures
        self.n_runs = 0

    def run(self, job, units):
        self.n_runs += 1
        for unit in units:
            if self.n_runs > self.n_failures:
                yield compute_unit(job, unit)
            else:
                yield batch_unit.failed(job, unit, StorageError("disk: is on fire"))


@pytest.mark.parametrize(("n_failures", "state"), [(2, "done"), (9, "failed")])
def test_units_are_tried_and_then_set_aside(tmp_path, n_failures, state):
    """A unit has as many attempts as the job says, with pauses that grow, and keeps its reason."""
    write(tmp_path / "card", sound(70 * FS))
    job, units = planned(tmp_path, tmp_path / "card", products=("flags",))
    pauses = []
    records = list(run_units(job, Failing(n_failures), units, sleep=pauses.append))
    assert [record.state for record in records] == ["failed", "failed", state]
    assert 0.7 < pauses[0] < 1.3
    assert 1.4 < pauses[1] < 2.6
    found = status_of(job, units[0])
    assert found.state == state
    assert found.reason == ("disk: is on fire" if state == "failed" else "")
    counts = summarise(job, plan_job(job)).n_units
    assert counts == {"done": 0, "partial": 0, "failed": 0, "waiting": 0} | {state: 1}


def test_a_unit_is_of_one_process(tmp_path):
    """While one process computes a unit, another one leaves it alone and says so."""
    write(tmp_path / "card", sound(70 * FS))
    job, (unit,) = planned(tmp_path, tmp_path / "card", products=("flags",))
    with batch_unit._claimed(Path(job.output), unit):
        record = compute_unit(job, unit)
        assert batch_unit.is_claimed(Path(job.output), unit)
    assert not batch_unit.is_claimed(Path(job.output), unit)
    assert (record.exit_code, record.reason) == (
        75,
        "another process computes it",
    )
    assert not (Path(job.output) / record_name(unit)).exists()


def test_shards_are_collected(tmp_path):
    """Results of another folder are copied if they stand; what is changed on the way is refused."""
    write(tmp_path / "card", sound(700 * FS))
    job, (first, second) = planned(tmp_path, tmp_path / "card", products=("flags",))
    other = msgspec.structs.replace(job, output=str(tmp_path / "other"))
    compute_unit(job, first)
    record = compute_unit(other, second)
    plan = plan_job(job)
    assert collect(job, plan, [str(tmp_path / "other")]) == 1
    assert collect(job, plan, [str(tmp_path / "other")]) == 0
    assert summarise(job, plan).n_units["done"] == 2
    assert list(recomputed_problems(job, second, record)) == []
    path = tmp_path / "other" / record.outputs[0].path
    path.write_bytes(path.read_bytes().replace(b"6", b"7"))
    (tmp_path / "results" / record_name(second)).unlink()
    with pytest.raises(StorageError, match="is not what was computed: its content has changed"):
        collect(job, plan, [str(tmp_path / "other")])


@pytest.mark.parametrize(
    "link",
    ["north", "north/north_20260501_flags.csv", "state", "state/records/north/20260501.json"],
)
def test_links_in_folders_of_shards_are_refused(tmp_path, link):
    """A link in place of a file or a folder of results is named, and nothing is copied by it."""
    write(tmp_path / "card", sound(70 * FS))
    job, (unit,) = planned(tmp_path, tmp_path / "card", products=("flags",))
    other = tmp_path / "other"
    compute_unit(msgspec.structs.replace(job, output=str(other)), unit)
    path = other / link
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError) as error:
        collect(job, plan_job(job), [str(other)])
    assert str(error.value) == f"{path}: is a link: must be a file or a folder below {other}"
    assert not (tmp_path / "results").exists()
    path.unlink()
    (tmp_path / "elsewhere").rename(path)
    (tmp_path / "whole").symlink_to(other)
    assert collect(job, plan_job(job), [str(tmp_path / "whole")]) == 1


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"{}", "is no record: Object missing required field"),
        (b"[" * 100_000, "is no record"),
        (b" " * (1 << 22) + b" ", "must have at most 4194304 bytes"),
    ],
)
def test_other_files_are_no_records(content, rule):
    """Anything else than a whole record is an error with its path and the rule."""
    with pytest.raises(StorageError, match=f"r.json: {rule}"):
        parse_record("r.json", content)


@pytest.mark.slow
def test_a_process_that_ends_is_the_failure_of_its_unit(tmp_path):
    """The local executor replaces a process that is killed, and the other units are computed."""
    write(tmp_path / "card", sound(700 * FS))
    job, units = planned(tmp_path, tmp_path / "card", products=("flags",))
    records = {one.key: one for one in LocalExecutor(1, _killed_once).run(job, units)}
    assert records["north/20260501"].reason.endswith("ended with exit code -9")
    assert records["north/20260501"].exit_code == 70
    assert records["north/20260502"].state == "done"


def _killed_once(job, unit):
    if unit.name == "20260501":
        os.kill(os.getpid(), 9)
    return compute_unit(job, unit)


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_bug_is_the_failure_of_its_unit(tmp_path, monkeypatch, capsys, debug):
    """Its record says that it is one; the traceback is printed for who asks for it."""
    monkeypatch.setenv("SPECTROD_DEBUG", debug)
    write(tmp_path / "card", sound(10 * FS))
    job, (unit,) = planned(tmp_path, tmp_path / "card", products=("flags",))
    record = attempt(_divide, job, unit)
    reason = "a bug; please report it (SPECTROD_DEBUG=1 shows where)"
    assert (record.state, record.exit_code) == ("failed", 70)
    assert record.reason == f"ZeroDivisionError('by nothing'): {reason}"
    assert read_record(FolderOutput(tmp_path / "results"), unit) == record
    assert ("in _divide" in capsys.readouterr().err) == bool(debug)


def _divide(_job, _unit):
    raise ZeroDivisionError("by nothing")


@pytest.mark.slow
@pytest.mark.parametrize(("processors", "given", "threads"), [(5, "", 2), (1, "", 1), (5, "3", 3)])
def test_processes_share_the_processors(tmp_path, monkeypatch, processors, given, threads):
    """Each process has its part of PoCL's threads, at least one, unless the operator says it."""
    name = "POCL_MAX_PTHREAD_COUNT"
    monkeypatch.setenv(name, given) if given else monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    write(tmp_path / "card", sound(700 * FS))
    job, units = planned(tmp_path, tmp_path / "card", products=("flags",))
    assert len(units) == 2
    reasons = [one.reason for one in LocalExecutor(2, _threads_of).run(job, units)]
    assert reasons == [f"{threads} threads"] * 2


def _threads_of(job, unit):
    count = os.environ["POCL_MAX_PTHREAD_COUNT"]
    return failed(job, unit, InternalError(f"{count} threads"))


def test_channels_are_selected_named_and_calibrated(tmp_path):
    """Each selected channel has its daily file, by its name, in the unit of its calibration."""
    write(tmp_path / "card", sound(125 * FS, channels=3))
    calibration = tmp_path / "hydrophones.toml"
    calibration.write_text('reference = "1 uPa"\nfull_scale_db = 171\nfull_scale = "rms"\n')
    settings = {"select": (2, 0), "channel_names": ("deep", "shallow"), "unit": "hour"}
    job, units = planned(
        tmp_path,
        tmp_path / "card",
        products=("millidecade",),
        calibration=str(calibration),
        **settings,
    )
    record = compute_unit(job, units[0])
    assert [one.path for one in record.outputs] == [
        "north/north_deep_20260501T23.nc", "north/north_shallow_20260501T23.nc",
    ]  # fmt: skip
    with h5netcdf.File(tmp_path / "results" / record.outputs[0].path) as file:
        assert file["psd"].attrs["spectrod_unit"] == "dB re (1 uPa)^2/Hz"
        assert file.attrs["date_created"] == "2026-05-28T20:26:40Z"
        assert np.flatnonzero(np.asarray(file["effort"])).tolist() == [1430, 1431, 1432]
    calibration.write_text('reference = "1 uPa"\nfull_scale_db = 172\nfull_scale = "rms"\n')
    assert status_of(job, units[0]).state == "waiting"
    calibration.write_text("")
    failed = compute_unit(job, units[0])
    assert (failed.state, failed.exit_code) == ("failed", 2)
    assert status_of(job, units[0]).reason == failed.reason


def test_ctrl_c_starts_no_more_units(tmp_path, capsys):
    """The first Ctrl-C starts no more units and says so; the second gives up all."""
    write(tmp_path / "card", sound(70 * FS))
    job, units = planned(tmp_path, tmp_path / "card", products=("flags",))
    stop = Stop()
    stop.ask()
    assert capsys.readouterr().err == (
        "\nspectrod: completing the units in progress; Ctrl-C again gives them up\n"
    )
    assert list(run_units(job, LocalExecutor(2, stop=stop), units)) == []
    with pytest.raises(KeyboardInterrupt):
        stop.ask()
