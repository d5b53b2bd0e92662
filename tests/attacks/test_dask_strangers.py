"""Another user of the machine against the cluster that ``--executor dask`` makes."""

import os
import subprocess
import sys
from pathlib import Path

import distributed
import pytest

from spectrod.apps.batch.dask_executor import DaskExecutor
from spectrod.apps.batch.planner import plan_job

sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))

from small_archives import FS, job_of, sound, write

STRANGER = Path(__file__).with_name("dask_stranger.py")
UID = 60002
LISTENING = "0A"

pytestmark = pytest.mark.slow


def listening():
    """Return the ports on which processes of this machine listen: every user may read them."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].partition(":")[2], 16) for row in rows if row[3] == LISTENING}


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("the owner's alone")
    path.chmod(0o600)
    return path


def attack(path, ports):
    if os.geteuid() != 0:
        pytest.skip("needs root, which alone can run a program as another user")
    command = [sys.executable, STRANGER, str(UID), path, *map(str, sorted(ports))]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=90)
    return done.stdout


def test_a_stranger_can_do_nothing_with_a_cluster_of_ones_own(tmp_path, secret):
    """No port of its processes runs a function or shows a page to another user."""
    for hour in range(2):
        write(tmp_path / "card", sound(100 * FS, hour), 3600.0 * hour)
    job = job_of(tmp_path, tmp_path / "card", unit="hour")
    before = listening()
    records = DaskExecutor(n_workers=1).run(job, plan_job(job).units)
    try:
        assert next(records).state == "done"
        ports = listening() - before
        assert len(ports) >= 3  # of the scheduler, the worker and its nanny
        assert attack(secret, ports) == ""
    finally:
        records.close()


def test_the_stranger_gets_all_from_a_cluster_without_tls(secret):
    """The attack is one: it reads a file of the owner's where nothing is done against it."""
    before = listening()
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ):
        found = attack(secret, listening() - before)
    assert "the owner's alone" in found
    assert "page info/main/workers.html" in found
