"""Decoding beside the analysis: the same blocks, whatever becomes of the decoders."""

import errno
import os
import select
import signal
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.apps.batch import command_run, decoding, unit_samples
from spectrod.apps.batch.decoding import HANG_S, Decoders
from spectrod.apps.batch.local_executor import LocalExecutor
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.unit import compute_unit
from spectrod.apps.batch.unit_samples import UnitSamples
from spectrod.lib.errors import ConfigError, UnavailableError
from spectrod.opencl.devices import list_devices

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import FS, job_of, sound, write

MTIME_S = 1_780_000_000
END_S = 60.0
OF_DASK = {"scheduler": "", "insecure": False, "resource": []}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Blocks of 1000 samples, at most four a chunk, so that short files have many."""
    monkeypatch.setattr(unit_samples, "block_length", lambda _: 1000)
    for module in (unit_samples, decoding):
        monkeypatch.setattr(module, "CHUNK_BYTES", 4 * 1000 * 8)


@pytest.fixture
def make_decoders():
    made = []

    def make(n):
        made.append(Decoders(n))
        return made[-1]

    yield make
    for one in made:
        one.close()


def units_of(tmp_path, **settings):
    card = tmp_path / "card"
    for path in card.rglob("*.*"):
        os.utime(path, (MTIME_S, MTIME_S))
    job = job_of(tmp_path, card, **settings)
    return job, plan_job(job).units


def blocks(unit, select=(), decoders=None, after_first=lambda: None):
    """Return copies of all blocks of a unit, what went wrong, and what was read."""
    reader = UnitSamples(unit, select, decoders)
    found = []
    for block in reader.blocks():
        found.append((block.sample_index, block.lost_samples, block.samples.copy()))
        if len(found) == 1:
            after_first()
    counts = reader.read_samples, reader.missing_samples, reader.gaps
    return found, reader.problems, counts, reader.layout


def assert_same(found, expected):
    assert found[1:] == expected[1:]
    assert len(found[0]) == len(expected[0])
    for (index, lost, x), (of_index, of_lost, y) in zip(found[0], expected[0], strict=True):
        assert (index, lost) == (of_index, of_lost)
        np.testing.assert_array_equal(x, y)


def flacs(tmp_path, *n_seconds, channels=1):
    """Write FLAC files that follow each other, from 23:50 on."""
    begin_s, paths = 0, []
    for k, n_s in enumerate(n_seconds):
        x = sound(n_s * FS, seed=k, channels=channels)
        paths.append(write(tmp_path / "card", x, begin_s, suffix=".flac"))
        begin_s += n_s
    return paths


@pytest.mark.parametrize(
    ("n", "channels", "select"), [(1, 1, ()), (3, 1, ()), (2, 2, ()), (2, 3, (2, 0))]
)
def test_blocks_are_those_of_one_process(tmp_path, make_decoders, n, channels, select):
    """FLAC, and WAV beside it, cut at midnight, with a gap and an odd number of samples."""
    card = tmp_path / "card"
    for begin_s, n_samples, suffix in (
        (480, 20_000, ".flac"), (500, 1, ".flac"), (520, 20_011, ".wav"), (570, 50_001, ".flac"),
    ):  # fmt: skip
        x = sound(n_samples, seed=begin_s, channels=channels)
        write(card, x, begin_s, suffix=suffix)
    _, units = units_of(tmp_path)
    assert [len(unit.pieces) for unit in units] == [4, 1]
    decoders = make_decoders(n)
    for unit in units:
        assert_same(blocks(unit, select, decoders), blocks(unit, select))
    assert decoders.processor_s > 0
    assert len(decoders.pids) == n


def test_coded_streams_are_decoded_from_their_begin(tmp_path, make_decoders):
    """A file without exact positions is decoded by one process, in order."""
    card = tmp_path / "card"
    card.mkdir()
    x = sound(30 * 8000) / 2.0**15
    soundfile.write(card / "20260501_100000.ogg", x, 8000, format="OGG", subtype="VORBIS")
    _, (unit,) = units_of(tmp_path)
    assert_same(blocks(unit, (), make_decoders(2)), blocks(unit))


def test_samples_that_are_not_finite_are_gaps(tmp_path, make_decoders):
    """Floats beside files of another format are decoded; NaN is where it was."""
    flacs(tmp_path, 30)
    x = sound(30 * FS)[:, 0] / 2.0**15
    x[[7, 7000, 12_345]] = np.nan, 1e25, np.inf
    soundfile.write(write(tmp_path / "card", sound(FS), 40), x, FS, subtype="FLOAT")
    _, (unit,) = units_of(tmp_path)
    found = blocks(unit, (), make_decoders(2))
    assert found[1][0].endswith("some of its samples are beyond 1e+12, or not finite")
    assert_same(found, blocks(unit))


def test_damaged_files_are_read_as_far_as_by_one_process(tmp_path, make_decoders):
    """Damage in the middle, and at the end, ends a file at the same sample with the same line."""
    first, second, _ = flacs(tmp_path, 60, 60, 30)
    damaged = bytearray(first.read_bytes())
    damaged[len(damaged) // 2 :] = bytes(len(damaged) - len(damaged) // 2)
    first.write_bytes(damaged)
    second.write_bytes(second.read_bytes()[:-5000])
    _, (unit,) = units_of(tmp_path)
    found = blocks(unit, (), make_decoders(2))
    assert [line.split(": ")[0] for line in found[1]] == [str(first), str(second)]
    assert_same(found, blocks(unit))


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("n", [1, 2])
def test_a_lost_decoder_costs_nothing(tmp_path, make_decoders, n, signal_):
    """What a decoder that is killed, or hangs, should have decoded is decoded, and it is gone."""
    flacs(tmp_path, 60, 50, 60)
    _, (unit,) = units_of(tmp_path)
    decoders = make_decoders(n)
    victims = []

    def strike():
        victims.extend(decoders.pids)
        os.kill(victims[0], signal_)
        decoders.hang_s = 0.5 if signal_ == signal.SIGSTOP else HANG_S

    assert_same(blocks(unit, (), decoders, strike), blocks(unit))
    assert len(victims) == n
    assert_same(blocks(unit, (), decoders), blocks(unit))
    assert victims[0] not in decoders.pids
    with pytest.raises(ProcessLookupError):
        os.kill(victims[0], 0)


def test_decoders_that_all_are_lost_are_done_without(tmp_path, make_decoders):
    """Decoders are replaced as often as there are decoders; then this process decodes."""
    flacs(tmp_path, 60)
    _, (unit,) = units_of(tmp_path)
    decoders, seen = make_decoders(1), []

    def strike():
        seen.extend(decoders.pids)
        for pid in decoders.pids:
            os.kill(pid, signal.SIGKILL)

    for _ in range(4):
        assert_same(blocks(unit, (), decoders, strike), blocks(unit))
    assert len(set(seen)) == 2
    assert decoders.pids == []


def test_a_unit_that_is_given_up_disturbs_no_other(tmp_path, make_decoders):
    """What was decoded ahead for it is not taken for the next unit's."""
    flacs(tmp_path, 60, 60)
    _, (unit,) = units_of(tmp_path)
    decoders = make_decoders(2)
    for _ in range(3):
        given_up = UnitSamples(unit, (), decoders).blocks()
        next(given_up)
        given_up.close()
    assert_same(blocks(unit, (), decoders), blocks(unit))


def test_no_memory_and_no_process_are_errors(tmp_path, make_decoders, monkeypatch):
    """What the system refuses is named."""
    flacs(tmp_path, 2)
    _, (unit,) = units_of(tmp_path)

    def refuse(*_, **__):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", refuse)
        with pytest.raises(UnavailableError, match=r"^decoder: cannot be started: Cannot allocate"):
            blocks(unit, (), make_decoders(1))
    monkeypatch.setattr(decoding, "CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr(decoding, "allocate", refuse)
    with pytest.raises(UnavailableError, match=r"^decoders: 3 MiB: Cannot allocate memory$"):
        blocks(unit, (), make_decoders(1))


def test_decoders_end_with_the_process_that_they_decode_for():
    """They end when it is killed, also if they hang."""
    program = (
        "import os, signal, sys\n"
        "from spectrod.apps.batch.decoder import SoundChunk\n"
        "from spectrod.apps.batch.decoding import Decoders\n"
        "decoders = Decoders(2)\n"
        "chunks = decoders.decoded([SoundChunk('none', 1.0, 1, 0, 1, 1)] * 8)\n"
        "next(chunks)\n"
        "os.kill(decoders.pids[0], signal.SIGSTOP)\n"
        "print(*decoders.pids, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    watched = [os.pidfd_open(int(pid)) for pid in parent.stdout.readline().split()]
    parent.kill()
    parent.communicate()
    assert len(watched) == 2
    for fd in watched:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        assert poll.poll(END_S * 1e3)
        os.close(fd)


def test_units_are_the_same_with_decoders(tmp_path):
    """All products of FLAC files have the same bytes with 0, 1 and 3 decoders."""
    flacs(tmp_path, 130, 71)
    results = []
    for n in (0, 1, 3):
        job = job_of(tmp_path / str(n), tmp_path / "card")
        (unit,) = plan_job(job).units
        (record,) = LocalExecutor(1, partial(compute_unit, n_decoders=n)).run(job, [unit])
        assert record.state == "done"
        assert record.costs.processor_s > 0
        results.append([(one.path, one.sha256) for one in record.outputs])
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 3


# ---- devices


def _device(index, kind="gpu", name="Large"):
    return replace(list_devices()[0], platform="P", name=name, kind=kind, index=index)


@pytest.mark.parametrize(
    ("devices", "settings", "found"),
    [
        ([_device((0, 0)), _device((0, 1)), _device((1, 0), "cpu")], {}, ["0:0", "0:1"]),
        ([_device((0, 0)), _device((0, 1), name="Small")], {}, ["0:0"]),
        ([_device((0, 0)), _device((0, 1), name="Small")], {"device": "small"}, ["0:1"]),
        ([_device((0, 0)), _device((0, 1))], {"device": "0:1"}, ["0:1"]),
        ([_device((0, 0)), _device((0, 1))], {"engine": "numpy"}, []),
        ([_device((0, 0))], {"device": "none such"}, []),
        ([_device((0, 0), "cpu")], {}, []),
        ([], {}, []),
    ],
)
def test_all_gpus_like_the_best_are_used(tmp_path, monkeypatch, devices, settings, found):
    """GPUs with the name of the best one that the job names; a processor is not shared out."""
    monkeypatch.setattr("spectrod.opencl.devices.list_devices", lambda: devices)
    assert command_run.gpus_of(job_of(tmp_path, tmp_path, **{"engine": "auto"} | settings)) == found


@pytest.mark.parametrize(
    ("n_processors", "n_processes", "n"), [(16, 1, 15), (32, 2, 15), (64, 2, 15), (4, 2, 1),
                                           (1, 1, 0), (2, 8, 0)],
)  # fmt: skip
def test_processors_are_shared_out_to_decoders(monkeypatch, n_processors, n_processes, n):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(n_processors)))
    assert command_run.default_decoders(n_processes) == n


@pytest.mark.parametrize(
    ("n_processors", "n_gpus", "n"),
    [(16, 1, 4), (4, 1, 1), (2, 1, 1), (2, 4, 4), (32, 2, 8), (24, 8, 8), (4096, 100, 256)],
)
def test_gpus_have_several_processes_where_there_are_processors(
    monkeypatch, n_processors, n_gpus, n
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(n_processors)))
    assert command_run.default_gpu_jobs(n_gpus) == n


def test_processes_have_devices_in_turn(tmp_path, monkeypatch):
    """By default processes of several GPUs alternate; one GPU alone is not named."""
    args = Namespace(jobs=3, decoders=None, executor="local", **OF_DASK)
    job = job_of(tmp_path, tmp_path, engine="auto")
    for gpus, named in ((["0:0", "0:1"], ["0:0", "0:1", "0:0"]), (["0:0"], [""] * 3)):
        monkeypatch.setattr(command_run, "gpus_of", lambda _, found=gpus: found)
        executor = command_run.make_executor(args, job, lambda: False)
        assert [one.keywords["device"] for one in executor._computes] == named


@pytest.mark.parametrize("n", [-1, 65])
def test_the_number_of_decoders_is_bounded(tmp_path, n):
    args = Namespace(jobs=None, decoders=n, executor="local", **OF_DASK)
    with pytest.raises(ConfigError, match=f"^--decoders {n}: must be 0 to 64$"):
        command_run.make_executor(args, job_of(tmp_path, tmp_path), lambda: False)


@pytest.mark.extended
def test_each_process_has_a_device(tmp_path, working_devices):
    """Of processes on several devices, each computes on its own; decoders change no bit."""
    flacs(tmp_path, 700)
    names = [one.number for one in working_devices]
    records = []
    for n in (0, 3):
        job = job_of(tmp_path / str(n), tmp_path / "card", engine="opencl")
        units = plan_job(job).units
        computes = [partial(compute_unit, device=name, n_decoders=n) for name in names]
        found = {one.key: one for one in LocalExecutor(len(names), computes).run(job, units)}
        assert all(one.state == "done" for one in found.values())
        records.append(found)
    used = {one.engine for one in records[0].values()}
    assert len(used) == min(len(names), 2)
    for key, one in records[0].items():
        same = records[1][key]
        assert same.engine == one.engine
        assert [x.sha256 for x in same.outputs] == [x.sha256 for x in one.outputs]
