"""The capture process by itself: its imports, its end, and its classes of errors."""

import errno
import os
import subprocess
import sys
import textwrap

import pytest

from spectrod.source.capture import capture_child

COMMAND = [sys.executable, "-P", "-m", "spectrod.source.capture"]


def test_it_imports_little():
    """The capture process imports neither NumPy nor the package, so it starts quickly."""
    program = (
        "import sys, spectrod.source.capture.capture_child; "
        "print(sorted(m for m in sys.modules if m.startswith(('spectrod', 'numpy', 'msgspec'))))"
    )
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout
    expected = [
        "",
        ".source",
        ".source.capture",
        ".source.capture.capture_child",
        ".source.capture.ring_writer",
    ]
    assert out.decode().strip() == str([f"spectrod{name}" for name in expected])


@pytest.mark.parametrize("parent", ["alive", "gone"])
def test_it_ends_with_its_parent(parent):
    """The capture process ends with its standard input, or if its parent has already ended."""
    pid = os.getpid() if parent == "alive" else 0
    process = subprocess.Popen([*COMMAND, str(pid)], stdin=subprocess.PIPE)
    if parent == "alive":
        process.stdin.close()
    assert process.wait(10) == 0
    process.stdin.close()


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("Error querying device 7",), "absent"),
        (("Illegal combination of I/O devices", -9993), "absent"),
        (("Device unavailable", -9985), "busy"),
        (("Invalid sample rate", -9997), "samplerate"),
        (("Invalid number of channels", -9998), "channels"),
        (("Sample format not supported", -9994), "format"),
        (("Buffer too big", -9991), "block_ms"),
        (("Internal PortAudio error", -9986), "failed"),
        (("Unanticipated host error", -9999, (0, -errno.EBUSY, "busy")), "busy"),
        (("Unanticipated host error", -9999, (0, -errno.ENODEV, "gone")), "absent"),
        (("Unanticipated host error", -9999, (0, -errno.EIO, "odd")), "failed"),
        (("Unanticipated host error", -9999), "failed"),
    ],
)
def test_errors_are_sorted_by_what_can_be_done(arguments, kind):
    """Absent and busy devices are errors to retry; a refused value is named."""
    assert capture_child._kind(Exception(*arguments)) == kind


def test_a_callback_that_spins_is_made_ordinary(real_time_allowed):
    """A real-time thread that never waits loses its priority, so the machine stays usable."""
    program = """
        import os, signal, threading
        from spectrod.source.capture import capture_child

        def spin():
            capture_child._promote_to_realtime()
            print(os.sched_getscheduler(0) == os.SCHED_RR)
            while os.sched_getscheduler(0) == os.SCHED_RR:
                pass

        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGXCPU})
        threading.Thread(target=capture_child._demote_on_rttime, daemon=True).start()
        thread = threading.Thread(target=spin)
        thread.start()
        thread.join()
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, check=True, capture_output=True, timeout=10, text=True)
    assert done.stdout == f"{real_time_allowed}\n"
