"""A Debian with a real systemd as process 1, in a container that shares the host's network.

The file system is made once by debootstrap and kept under ``$XDG_CACHE_HOME/spectrod-test``; each
machine runs on a copy of its own.
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus"),
    # A user's manager: logind, PAM, and the bus of a session.
    *("libpam-systemd", "dbus-user-session"),
    # Packages that `make install` would otherwise download.
    *("make", "python3", "python3-venv", "libportaudio2"),
    # An OpenCL for processors that are too new for the wheel's.
    "pocl-opencl-icd",
)
_TOOLS = {
    "debootstrap": "debootstrap",
    "systemd-nspawn": "systemd-container",
    "nsenter": "util-linux",
}
_BOOT_LIMIT_S = 60.0


class MissingToolError(Exception):
    """No container can be built or booted here; the text has the remedy."""


def require_tools():
    """Raise MissingToolError unless containers can be built and booted here."""
    if os.geteuid() != 0:
        raise MissingToolError('must be root; -m "not systemd" leaves these tests out')
    for tool, package in _TOOLS.items():
        if not shutil.which(tool):
            raise MissingToolError(f"{tool} is missing; install the package {package}")


def cache_folder():
    """Return the folder, outside the tree, that holds file systems."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "spectrod-test"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def debian_root():
    """Return a pristine root file system of the host's own release; it takes a minute once."""
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    key = hashlib.sha256(" ".join(_PACKAGES).encode()).hexdigest()[:12]
    root = cache_folder() / f"root-{suite}-{key}"
    # Several processes run tests: one makes the root, the others wait for it.
    with (cache_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            part = Path(tempfile.mkdtemp(prefix="part-", dir=cache_folder()))
            include = "--include=" + ",".join(_PACKAGES)
            _checked("debootstrap", "--variant=minbase", include, suite, str(part))
            part.chmod(0o755)
            part.rename(root)
    return root


def _checked(*command):
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{_tail(done)}")
    return done.stdout


def _tail(done):
    return (done.stdout + done.stderr)[-4000:]


class Machine:
    """A booted container; use it as a context manager.

    Parameters
    ----------
    binds : dict of path to path
        Folders of the host, and where the machine finds them, read-only.
    """

    def __init__(self, binds):
        self._binds = binds
        self._folder = Path(tempfile.mkdtemp(prefix="machine-", dir=cache_folder()))
        self._process = self._leader = None

    def __enter__(self):
        root = self._folder / "root"
        try:
            _checked("cp", "--archive", "--reflink=auto", str(debian_root()), str(root))
            self._boot(root)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self._process:
            # Nothing of it is kept: nspawn itself cleans up behind a process 1 that was killed.
            if self._leader:
                os.kill(int(self._leader), signal.SIGKILL)
            else:
                self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._folder)

    def _boot(self, root):
        log = self._folder / "console"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready, log.open("wb") as console:
            ready.bind(str(self._folder / "notify"))
            self._process = subprocess.Popen(
                [
                    *("systemd-nspawn", "--quiet", "--boot", "--directory", root),
                    # There is no registry if the host itself does not run systemd.
                    *("--register=no", "--keep-unit", f"--machine=spectrod-test-{os.getpid()}"),
                    *("--notify-ready=yes", "--console=pipe", "--link-journal=no"),
                    *(f"--bind-ro={host}:{inside}" for host, inside in self._binds.items()),
                ],
                env={**os.environ, "NOTIFY_SOCKET": ready.getsockname()},
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
            )
            self._leader = _await_boot(ready, self._process)
            if self._leader is None:
                raise RuntimeError(f"did not boot in {_BOOT_LIMIT_S:g} s:\n{log.read_text()}")

    def run(self, *command, check=True, environ=None):
        """Run a command inside; a failure shows its output and the journal's end."""
        done = self._run(command, environ or {})
        if check and done.returncode:
            journal = self._run(["journalctl", "--lines=30", "--no-pager"], {}).stdout
            command_line = " ".join(command)
            raise AssertionError(
                f"{command_line}: exit {done.returncode}\n{_tail(done)}\n{journal}"
            )
        return done

    def _run(self, command, environ):
        outside = ["nsenter", "--target", self._leader, "--all", "--"]
        variables = [f"{name}={value}" for name, value in environ.items()]
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        inside = ["env", "-i", path, "LC_ALL=C.UTF-8", *variables, *command]
        return subprocess.run(
            [*outside, *inside],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def path(self, inside):
        """Return a path of the host that leads to one of the machine's, its /run too."""
        return Path(f"/proc/{self._leader}/root{inside}")


def _await_boot(ready, process):
    """Return the process id, a string, of the machine's process 1 once it has booted, or None."""
    leader = None
    end_s = time.monotonic() + _BOOT_LIMIT_S
    # A container that fails to start sends nothing, so poll it between messages.
    ready.settimeout(0.5)
    while process.poll() is None and time.monotonic() < end_s:
        with contextlib.suppress(TimeoutError):
            message = dict(line.split("=", 1) for line in ready.recv(4096).decode().splitlines())
            leader = message.get("X_NSPAWN_LEADER_PID", leader)
            if leader and message.get("READY") == "1":
                return leader
    return None
