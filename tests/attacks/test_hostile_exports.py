"""NetCDF files and Zarr stores of strangers: one line, in bounded time and memory, and no secret.

``hostile_arrays`` makes them by their number, ``convert_hostile`` runs the commands.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import msgspec
import pytest

from spectrod.apps.batch.folder_output import FolderOutput
from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.plan import write_plan
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.results import read_record, write_record
from spectrod.apps.batch.unit import compute_unit
from spectrod.formats.export.confined.confined_messages import Question
from spectrod.formats.export.confined.confined_process import FileProcess, _starters
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.export.netcdf import open_netcdf
from spectrod.lib.errors import StorageError
from spectrod.recording.output_plan import make_data

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))
sys.path.insert(0, str(Path(__file__).parents[1] / "segments"))

from hostile_arrays import hostile_netcdf, hostile_zarr, netcdf_numbers, zarr_numbers
from segment_rows import describe, make_batch, make_spec
from small_archives import FS, sound, write

HERE = Path(__file__).parent
SECRET = b"what only its owner may read"
N_SAMPLE, N_ALL = 30, 200
MEMORY_MAX_BYTES, TIME_MAX_S = 512_000_000, 10.0
CODES = {0, 65, 74}
LIMIT_S = 900.0

pytestmark = pytest.mark.slow

NUMBERS = [
    pytest.param(range(N_SAMPLE), id="sample"),
    pytest.param(range(N_SAMPLE, N_ALL), id="rest", marks=pytest.mark.extended),
]


@pytest.fixture(scope="module")
def secret(tmp_path_factory):
    path = tmp_path_factory.mktemp("owner") / "secret"
    path.write_bytes(SECRET * 1000)
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """Return a folder with a recording in each format."""
    folder = tmp_path_factory.mktemp("valid")
    for suffix in (".nc", ".zarr"):
        spec = make_spec()
        writer = make_data(folder / f"a{suffix}", describe(spec), ExportOptions())
        writer.write(make_batch(spec, 0, 40))
        writer.finish()
    return folder


def run(*arguments):
    """Run the commands; return a row for each."""
    command = [sys.executable, HERE / "convert_hostile.py", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(rows):
    """Check that each command ended with a line, in time and memory."""
    for row in rows:
        about = {key: row[key] for key in ("name", "code", "said", "seconds", "bytes")}
        assert row["code"] in CODES, about
        assert len(row["said"].splitlines()) == (row["code"] == 74), about
        assert row["seconds"] < TIME_MAX_S, about
        assert row["bytes"] < MEMORY_MAX_BYTES, about


def has_secret(folder):
    return [path for path in folder.rglob("*") if path.is_file() and SECRET in content(path)]


def content(path):
    """Return the bytes of a file, or of the arrays of an .npz."""
    if path.suffix != ".npz":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("numbers", NUMBERS)
def test_hostile_recordings_are_converted_or_refused(tmp_path, valid, secret, numbers):
    """``convert`` ends with one line or an output without anything of another file."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    netcdf = (valid / "a.nc").read_bytes()
    paths = []
    for number in netcdf_numbers(numbers):
        paths.append(tmp_path / "in" / f"{number}.nc")
        hostile_netcdf(netcdf, paths[-1], number, secret)
    for number in zarr_numbers(numbers):
        paths.append(tmp_path / "in" / f"{number}.zarr")
        hostile_zarr(valid / "a.zarr", paths[-1], number, secret)
    rows = run(tmp_path / "out", *paths)
    assert len(rows) == len(paths)
    check(rows)
    assert {row["code"] for row in rows} == {0, 74}
    written = {path.stem for path in (tmp_path / "out").iterdir()}
    assert written == {row["name"] for row in rows if row["code"] == 0}
    assert has_secret(tmp_path / "out") == []


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Return a job of a day, with the file of the job, and its results beside it."""
    folder = tmp_path_factory.mktemp("archive")
    write(folder / "card", sound(300 * FS), 600)
    (folder / "job.toml").write_text(
        f'[job]\nname = "test"\noutput = "{folder}/results"\nengine = "numpy"\n'
        'products = ["millidecade", "flags"]\nmerged = ["zarr", "pyramid"]\n'
        f'[deployments.north]\ninputs = ["{folder}/card"]\n'
    )
    job = read_job(folder / "job.toml")
    (folder / "results").mkdir()
    plan = plan_job(job)
    write_plan(folder / "results" / "plan.jsonl", plan)
    (unit,) = plan.units
    compute_unit(job, unit)
    (folder / "results").rename(folder / "shard")
    (folder / "results").mkdir()
    write_plan(folder / "results" / "plan.jsonl", plan)
    return folder, unit


def with_record_of(shard, unit, path):
    """Make the record of a shard say what lies there, as who made it could."""
    output = FolderOutput(shard)
    record = read_record(output, unit)
    data = path.read_bytes()
    outputs = tuple(
        msgspec.structs.replace(one, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        if one.path.endswith(path.name)
        else one
        for one in record.outputs
    )
    write_record(output, unit, msgspec.structs.replace(record, outputs=outputs))


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("numbers", NUMBERS)
def test_hostile_results_are_merged_or_refused(tmp_path, archive, secret, numbers):
    """``batch merge`` and its report end likewise for daily files and an older store."""
    folder, unit = archive
    (path,) = (folder / "shard" / "north").glob("*.nc")
    daily = path.read_bytes()
    results = folder / "results"
    numbers = netcdf_numbers(numbers)
    for number in numbers:
        shard = tmp_path / f"{number}"
        shutil.copytree(folder / "shard", shard)
        hostile_netcdf(daily, shard / "north" / path.name, number, secret)
        with_record_of(shard, unit, shard / "north" / path.name)
    names = [tmp_path / f"{number}" for number in numbers]
    rows = run(folder / "job.toml", *names)
    assert len(rows) == len(numbers)
    check(rows)
    assert has_secret(results) == []


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("numbers", NUMBERS)
def test_hostile_stores_are_replaced_or_refused(tmp_path, archive, secret, numbers):
    """A store from before, of the same results, that another has changed."""
    folder, _ = archive
    numbers = zarr_numbers(numbers)
    jobs = [job_in(tmp_path / f"{number}", folder) for number in numbers]
    check(run("merge", jobs[0]))
    store = jobs[0].parent / "results" / "archive.zarr"
    valid_store = store.rename(tmp_path / "valid.zarr")
    for number, job in zip(numbers, jobs, strict=True):
        hostile_zarr(valid_store, job.parent / "results" / "archive.zarr", number, secret)
    rows = run("merge", *jobs)
    assert len(rows) == len(numbers)
    check(rows)
    assert {row["code"] for row in rows} == {0, 74}


def job_in(folder, archive):
    """Return a job like that of an archive, with a copy of its results."""
    shutil.copytree(archive / "shard", folder / "results")
    job = folder / "job.toml"
    text = (archive / "job.toml").read_text()
    job.write_text(text.replace(f"{archive}/results", f"{folder}/results"))
    return job


# ---- what the process that reads cannot do


@pytest.fixture
def reader(valid):
    """Return a process that reads a file, and its id."""
    with (valid / "a.nc").open("rb") as file:
        process = FileProcess("hdf5", file.fileno())
    pid = _starters["hdf5"]._process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    yield process, int(children[-1])
    process.close()


def test_the_process_can_open_nothing(reader):
    """It has its link, one file and /dev/null, and may open no file, socket or process more."""
    _, pid = reader
    limits = Path(f"/proc/{pid}/limits").read_text()
    of = {line[:26].strip(): line[26:].split()[:2] for line in limits.splitlines()}
    assert of["Max open files"] == ["0", "0"]
    assert of["Max file size"] == ["0", "0"]
    assert of["Max core file size"] == ["0", "0"]
    assert of["Max processes"] == ["0", "0"]
    assert int(of["Max address space"][1]) < 2 << 30
    assert "NoNewPrivs:\t1" in Path(f"/proc/{pid}/status").read_text()
    targets = [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]
    files = [one for one in targets if not one.startswith("socket:") and one != "/dev/null"]
    assert [Path(one).name for one in files] == ["a.nc"]
    assert len([one for one in targets if one.startswith("socket:")]) == 1


def test_a_process_that_ends_is_one_error(reader):
    """A crash of a library is a line, and the next file has a process of its own."""
    process, pid = reader
    os.kill(pid, signal.SIGSEGV)
    rule = r"^the process that reads it gave up: too much time or memory, or a crash$"
    with pytest.raises(ValueError, match=rule):
        process.ask(Question("form", "psd"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_command_whose_reader_hangs(tmp_path, valid, number):
    """``convert`` ends at once, and what it has started ends with it."""
    hostile_netcdf((valid / "a.nc").read_bytes(), tmp_path / "a.nc", 1, None)
    command = [sys.executable, "-m", "spectrod", "convert", tmp_path / "a.nc", tmp_path / "b.npz"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not (readers := grandchildren(process.pid)):
            assert process.poll() is None, process.stderr.read()
        process.send_signal(number)
        said = process.stderr.read()
    assert process.returncode in (130, 143)
    assert said in ("spectrod: interrupted\n", "")
    for pid in readers:
        while Path(f"/proc/{pid}/status").exists() and "Z (" not in state(pid):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["a.nc"]


def state(pid):
    try:
        return Path(f"/proc/{pid}/status").read_text().partition("State:")[2].splitlines()[0]
    except OSError:
        return "Z ("


def grandchildren(pid):
    found = []
    for one in children_of(pid):
        found += children_of(one)
    return found


def children_of(pid):
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


# ---- what a valid structure can do, and nobody of us writes


def test_chunks_that_share_their_bytes_are_refused(tmp_path, valid):
    """One chunk of a few bytes in the place of many would unpack to any length."""
    path = tmp_path / "a.nc"
    shutil.copyfile(valid / "a.nc", path)
    with h5py.File(path, "r+", libver="earliest") as file:
        rows = file["sample_index"][...]
        del file["sample_index"]
        array = file.create_dataset("sample_index", rows.shape, rows.dtype, chunks=(20,))
        array[...] = rows
        places = [array.id.get_chunk_info(number).byte_offset for number in range(2)]
    data = path.read_bytes()
    assert data.count(places[1].to_bytes(8, "little")) == 1
    first, second = (place.to_bytes(8, "little") for place in places)
    path.write_bytes(data.replace(second, first))
    with pytest.raises(StorageError, match="sample_index: its chunks overlap"):
        open_netcdf(path)
