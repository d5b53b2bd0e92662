"""Units on a cluster of Dask: the same bytes as those of one process, whatever happens to it."""

import asyncio
import hashlib
import os
import resource
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import dask
import distributed
import numpy as np
import pytest

import spectrod
from spectrod.apps.batch import dask_executor
from spectrod.apps.batch.dask_executor import DaskExecutor
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.run import run_units
from spectrod.apps.batch.unit import compute_unit, failed
from spectrod.lib.errors import ConfigError, InternalError, UnavailableError

sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))

from small_archives import FS, job_of, sound, write

N_UNITS = 16

pytestmark = [pytest.mark.slow, pytest.mark.extended]


@dataclass(frozen=True)
class Archive:
    """A job of some hours, and its plan."""

    job: object
    units: tuple


@pytest.fixture
def archive(tmp_path):
    for hour in range(N_UNITS):
        write(tmp_path / "card", sound(400 * FS + hour, hour), 3600.0 * hour)
    job = job_of(tmp_path, tmp_path / "card", unit="hour")
    return Archive(job, plan_job(job).units)


@pytest.fixture
def cluster():
    """Return four workers, of which one that does not answer is restarted soon."""
    with (
        dask.config.set({"distributed.scheduler.worker-ttl": "5s"}),
        distributed.LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as made,
    ):
        yield made


def bytes_of(folder):
    """Return the digest of each file of results, by its path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and "state" not in path.parts
    }


def test_results_are_those_of_one_process_though_workers_die_and_hang(archive, cluster, tmp_path):
    """One worker is killed, one stands still: all units are computed, to the bit, nothing else."""
    killed, stopped, *_ = (one.pid for one in cluster.workers.values())
    dask_executor_of_it = DaskExecutor(cluster.scheduler_address, is_insecure=True)
    done = {}
    for number, record in enumerate(run_units(archive.job, dask_executor_of_it, archive.units)):
        if number == 1:
            os.kill(killed, signal.SIGKILL)
            os.kill(stopped, signal.SIGSTOP)
        done[record.key] = record.state
    assert done == dict.fromkeys((unit.key for unit in archive.units), "done")
    results = Path(archive.job.output)
    found = bytes_of(results)
    results.rename(tmp_path / "of-dask")
    for unit in archive.units:
        compute_unit(archive.job, unit)
    assert found == bytes_of(results)


def test_a_unit_that_takes_too_long_is_given_up(archive, cluster, monkeypatch):
    """Its worker is restarted and computes other units."""
    monkeypatch.setattr(dask_executor, "limit_s", lambda _unit: 2.0)
    by_value = sys.modules[__name__]
    distributed.protocol.pickle.cloudpickle.register_pickle_by_value(by_value)
    slow = DaskExecutor(cluster.scheduler_address, compute=wait_for_ever, is_insecure=True)
    records = list(slow.run(archive.job, archive.units[:4]))
    assert {record.state for record in records} == {"failed"}
    assert all("took more than 2 s on tcp://" in record.reason for record in records)
    monkeypatch.undo()  # 2 s are short for the start of a worker
    quick = DaskExecutor(cluster.scheduler_address, is_insecure=True)
    good = list(quick.run(archive.job, archive.units[4:6]))
    assert {record.state for record in good} == {"done"}


def wait_for_ever(job, unit):
    threading.Event().wait()


def test_workers_with_another_version_are_refused(archive, cluster, monkeypatch):
    """Results of different programs would not be alike."""
    monkeypatch.setattr(spectrod, "__version__", "99.0")
    of_it = DaskExecutor(cluster.scheduler_address, is_insecure=True)
    with pytest.raises(UnavailableError, match=r"^worker \S+: has spectrod .*, must be 99"):
        list(of_it.run(archive.job, archive.units))


def test_workers_keep_freed_memory_and_have_one_thread(archive, cluster, monkeypatch):
    """Whatever Dask started them with: by its default, freed arrays get new pages each time."""
    monkeypatch.delenv("POCL_MAX_PTHREAD_COUNT", raising=False)
    distributed.protocol.pickle.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    of_it = DaskExecutor(cluster.scheduler_address, compute=pages_and_threads, is_insecure=True)
    for record in of_it.run(archive.job, archive.units[:4]):
        new_pages, threads = record.reason.split()
        assert int(new_pages) < 1000, "2 MB of arrays, 50 times"
        assert threads == "1"


def pages_and_threads(job, unit):
    """Return the new pages of arrays that are made again and again, and PoCL's threads."""

    def work():
        for n_bytes in (1 << 20, 700_000, 300_001):
            np.ones(n_bytes, np.uint8)

    work()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        work()
    new = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    threads = os.environ["POCL_MAX_PTHREAD_COUNT"]
    return failed(job, unit, InternalError(f"{new} {threads}"))


def test_the_profiler_of_a_worker_pauses_during_a_unit(archive):
    """It takes the interpreter's lock from the unit each 10 ms; after the unit it goes on."""
    distributed.protocol.pickle.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as made:
        of_it = DaskExecutor(made.scheduler_address, compute=is_profiled, is_insecure=True)
        found = [one.reason for one in of_it.run(archive.job, archive.units[:2])]
        with distributed.Client(made) as client:
            client.run(after_the_next_callbacks)
            running = client.run(is_running)
    assert found == ["False"] * 2
    assert list(running.values()) == [True]


def is_running(dask_worker):
    return dask_worker.periodic_callbacks["profile"].is_running()


async def after_the_next_callbacks():
    await asyncio.sleep(0)


def is_profiled(job, unit):
    """Return whether the profiler runs, as the worker's loop says after what it had to do."""
    worker = distributed.get_worker()

    async def ask():
        return is_running(worker)

    loop = worker.loop.asyncio_loop
    running = asyncio.run_coroutine_threadsafe(ask(), loop).result(timeout=30.0)
    return failed(job, unit, InternalError(str(running)))


def test_its_own_cluster_ends_with_it(archive):
    """Without a scheduler there are processes of this machine; a stop lets units be completed."""
    stops = []
    own = DaskExecutor(n_workers=2, stop=lambda: bool(stops))
    records = []
    for record in own.run(archive.job, archive.units):
        records.append(record)
        stops.append(True)
    assert 1 <= len(records) < N_UNITS
    assert {record.state for record in records} == {"done"}


def test_a_cluster_that_cannot_be_started_is_named(archive, monkeypatch):
    """A worker that is killed as it starts, as by a lack of memory, is no bug of the program."""

    def start(**_):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(distributed, "LocalCluster", start)
    rule = r"^workers of this machine: cannot be started: Nanny failed to start\.$"
    with pytest.raises(UnavailableError, match=rule):
        next(DaskExecutor(n_workers=1).run(archive.job, archive.units))


def test_workers_must_have_one_thread(archive):
    """An engine serves one thread."""
    two = distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    )
    with two, pytest.raises(UnavailableError, match=r"^worker \S+: has 2 threads, must have 1$"):
        list(DaskExecutor(two.scheduler_address, is_insecure=True).run(archive.job, archive.units))


def test_a_scheduler_must_answer(archive, monkeypatch):
    """An address without one, and one that is none, are named."""
    monkeypatch.setattr(dask_executor, "CONNECT_S", 0.5)
    with pytest.raises(UnavailableError, match=r"^scheduler tcp://127\.0\.0\.1:1: .+"):
        next(DaskExecutor("tcp://127.0.0.1:1", is_insecure=True).run(archive.job, archive.units))
    with pytest.raises(UnavailableError, match=r"^scheduler ssh://x: .+"):
        next(DaskExecutor("ssh://x", is_insecure=True).run(archive.job, archive.units))
    with pytest.raises(UnavailableError, match=r"^scheduler tls://127\.0\.0\.1:1: .+"):
        next(DaskExecutor("tls://127.0.0.1:1").run(archive.job, archive.units))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "127.0.0.1:8786", "ws://x", "TLS://x"])
def test_a_scheduler_without_tls_must_be_asked_for(address):
    """Whoever answers in its place could run programs in this process."""
    with pytest.raises(ConfigError, match=rf"^--scheduler {address}: must be tls://: .*--insecure"):
        DaskExecutor(address)


def test_a_unit_whose_worker_has_gone_is_given_up(archive, cluster, monkeypatch):
    """Dask knows no such worker any more, and says so by a KeyError."""

    def unknown(_client, workers, **_):
        raise KeyError(workers[0])

    monkeypatch.setattr(dask_executor, "limit_s", lambda _unit: 2.0)
    monkeypatch.setattr(distributed.Client, "restart_workers", unknown)
    distributed.protocol.pickle.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    slow = DaskExecutor(cluster.scheduler_address, compute=wait_for_ever, is_insecure=True)
    (record,) = slow.run(archive.job, archive.units[:1])
    assert "took more than 2 s on tcp://" in record.reason
