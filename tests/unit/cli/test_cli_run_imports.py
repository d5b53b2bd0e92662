"""What commands import at their start."""

import subprocess
import sys

PICTURES = (
    "PIL",
    "spectrod.formats.picture.sink",
    "spectrod.recording.picture_output",
)
DAEMON = (
    "spectrod.daemon.recordings",
    "spectrod.daemon.pipeline",
    "spectrod.daemon.publisher.publisher",
)


def test_the_daemon_starts_without_pictures():
    """The daemon imports pictures and their writers when a recording starts, not before."""
    program = "import sys, spectrod.cli.run_daemon; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    imported = set(done.stdout.split())
    assert imported.issuperset(DAEMON)
    assert imported.isdisjoint(PICTURES)


def test_requests_to_a_daemon_need_no_numpy():
    """``spectrod ctl`` loads NumPy for stored messages only: operators run it every minute."""
    program = "import sys, spectrod.apps.ctl.command; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert "zmq" in done.stdout.split()
    assert "numpy" not in done.stdout.split()


def test_the_options_of_run_need_no_daemon():
    """The arguments of ``spectrod run`` are read before the daemon is imported."""
    program = "import sys, spectrod.cli.run; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert set(done.stdout.split()).isdisjoint((*DAEMON, *PICTURES, "pyopencl"))
