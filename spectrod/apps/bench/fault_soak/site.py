"""The daemon under test, its sources, its disks, and what watches it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spectrod.apps.bench.fault_soak.feeder import FS, Feeder
from spectrod.apps.bench.fault_soak.journal import LogReader
from spectrod.apps.bench.fault_soak.listening import Listener
from spectrod.apps.bench.fault_soak.resources import ResourceWatch
from spectrod.apps.bench.pulseaudio import NumberedPlayer, PulseServer
from spectrod.client import Control
from spectrod.lib.errors import SpectrodError, UnavailableError

START_S = 120.0
STOP_S = 3.0
"""Longest stop, from SIGTERM to the end [s]; docs/operations.md promises 2 s, and 3 s where a
driver holds up the search for a sound card."""
_KILL_S = 15.0
_ASK_S = 5.0
_LOOK_S = 0.1
_REPOSITORY = Path(__file__).parents[4]
_FAILING_DISK = _REPOSITORY / "tests" / "recorder" / "failing_disk.c"
_SET_CLOCK = Path(__file__).with_name("set_clock.c")

_CONFIG = """
publish = {{ endpoints = ["tcp://127.0.0.1:*"] }}
control = {{ endpoints = ["ipc://{folder}/control.ipc"], state_folder = "{folder}/state" }}
log = {{ style = "json" }}
engine = {{ engine = "{engine}" }}

[analysis]
win_length = 512
hop = 4800

[sources.tone]
uri = "signal:sine,1000,-20"
samplerate = 48000

[sources.scratch]
uri = "signal:white,-30"
samplerate = 16000

[sources.numbered]
uri = "pcm:{folder}/fifo"
samplerate = {fs}
channels = 2
format = "s16le"
analysis = {{ win_length = 256, hop = 400 }}

[recordings.wav]
sources = ["numbered"]
folder = "{folder}/disks/large"
samples = "wav"
pyramid = true
rotate_s = 60
fsync_s = 1.0
min_free_mb = 0

[recordings.flac]
sources = ["numbered"]
folder = "{folder}/disks/small"
samples = "flac"
rotate_s = 30
fsync_s = 1.0
min_free_mb = 0

[recordings.rows]
sources = ["tone"]
folder = "{folder}/disks/small"
rotate_s = 45
min_free_mb = 4
"""
_CARD = """
[sources.card]
uri = "soundcard:pulse"
samplerate = 48000
channels = 2
format = "s16le"
block_ms = 20
"""


class SoakSite:
    """A running daemon with up to four sources and three recordings.

    Faults change the analysis of ``scratch`` alone: rows of the others must never be disturbed.

    Parameters
    ----------
    folder : Path
        Empty folder of all files.
    small_bytes : int
        Size of the small disk, which faults fill, if it can be mounted [bytes].
    engine : {"auto", "opencl", "numpy"}
        The daemon's engine.

    Attributes
    ----------
    feeder : Feeder
        Writer of the source ``numbered``.
    pulse : PulseServer or None
        Sound server of the source ``card``; None where PulseAudio is missing.
    has_small_disk : bool
        Whether ``disks/small`` is a file system of its own.
    is_calm : bool
        False while a fault is active.
    """

    def __init__(self, folder: Path, small_bytes: int, engine: str = "auto") -> None:
        self.folder = folder
        self.config, self.drop_ins = folder / "spectrod.toml", folder / "conf.d"
        self.disks, self.small = folder / "disks", folder / "disks" / "small"
        self.cache = folder / "cache"
        self.pulse: PulseServer | None = None
        self.player: NumberedPlayer | None = None
        self.is_calm = True
        self.begin_s = time.monotonic()
        self._cleanup = ExitStack()
        self._small_bytes, self.engine = small_bytes, engine
        self.has_small_disk = False

    def __enter__(self) -> Self:
        try:
            self._prepare()
            self._start()
        except BaseException:
            self._cleanup.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cleanup.close()

    # ---- start and stop

    def _prepare(self) -> None:
        for path in (self.drop_ins, self.small, self.disks / "large", self.cache):
            path.mkdir(parents=True)
        self.has_small_disk = self._mount()
        self.pulse = self._sound_server()
        card = _CARD if self.pulse else ""
        text = _CONFIG.format(folder=self.folder, fs=FS, engine=self.engine)
        self.config.write_text(text + card)
        self.feeder = self._cleanup.enter_context(Feeder(self.folder / "fifo"))

    def _mount(self) -> bool:
        options = f"size={self._small_bytes}"
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(self.small)]
        done = subprocess.run(command, check=False, capture_output=True)  # noqa: S603
        if done.returncode:
            return False
        self._cleanup.callback(self._unmount)
        return True

    def _unmount(self) -> None:
        command = ["umount", "--lazy", str(self.small)]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603

    def _sound_server(self) -> PulseServer | None:
        try:
            server = PulseServer()
            server.start()
        except UnavailableError:
            return None
        self._cleanup.callback(server.close)
        self.player = server.play_numbered()
        self._cleanup.callback(self.stop_player)
        return server

    def stop_player(self) -> None:
        """Stop what plays into the sound server."""
        if self.player is not None:
            self.player.stop()

    def _environment(self) -> dict[str, str]:
        libraries = [self._built(source) for source in (_FAILING_DISK, _SET_CLOCK)]
        variables = self.pulse.variables if self.pulse else {}
        return os.environ | {
            **variables,
            "XDG_CACHE_HOME": str(self.cache),
            "POCL_CACHE_DIR": str(self.cache / "pocl"),
            "LD_PRELOAD": ":".join(str(path) for path in libraries),
            "FAILING_FOLDER": str(self.disks),
            "FAILING_ERRNO": str(self.folder / "errno"),
            "SET_CLOCK": str(self.folder / "clock"),
        }

    def _built(self, source: Path) -> Path:
        library = self.folder / source.with_suffix(".so").name
        command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
        try:
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603
        except (OSError, subprocess.CalledProcessError) as error:
            raise UnavailableError(f"{source}: cannot be compiled: {error}") from error
        return library

    def _start(self) -> None:
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "spectrod", "run", "--config", self.config, "--show=none"],
            env=self._environment(),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        self._cleanup.callback(self._kill)
        self.pid = self.process.pid
        assert self.process.stderr is not None
        self.journal = LogReader(self.process.stderr, self.folder / "daemon.log")
        self.journal.start()
        self.publish = self._said("publishing at ", START_S)
        self.listener = Listener(self.publish)
        self.resources = ResourceWatch(self.pid, lambda: self.is_calm)
        for thread in (self.listener, self.resources):
            thread.start()
            self._cleanup.callback(thread.stop)
        waited_for = self.wait_until_well(START_S)
        if waited_for:
            raise UnavailableError(f"soak: the daemon does not start: {waited_for}")
        self.begin_s = time.monotonic()

    def _said(self, text: str, limit_s: float) -> str:
        """Wait for a line; return the word after a text of it."""
        deadline_s = time.monotonic() + limit_s
        while time.monotonic() < deadline_s and self.process.poll() is None:
            for line in self.journal.lines:
                if text in line.text:
                    return line.text.partition(text)[2].replace(",", " ").split()[0]
            time.sleep(_LOOK_S)
        lines = "\n".join(line.text for line in self.journal.lines)
        raise UnavailableError(f"soak: the daemon does not start:\n{lines}")

    def stop(self) -> tuple[int, float]:
        """End the daemon as a service manager does; return its exit code and the duration [s]."""
        begin_s = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(_KILL_S)
        except subprocess.TimeoutExpired:
            self._kill()
        self.journal.join()
        return self.process.returncode, time.monotonic() - begin_s

    def begin_again(self) -> None:
        """Let the run's time and the measurement of its memory begin now."""
        self.begin_s = time.monotonic()
        self.resources.samples.clear()

    def _kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    # ---- its state

    @property
    def has_ended(self) -> bool:
        """Whether the daemon has ended."""
        return self.process.poll() is not None

    @property
    def endpoint(self) -> str:
        """The control endpoint."""
        return f"ipc://{self.folder}/control.ipc"

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request; raises the daemon's error."""
        with Control(self.endpoint, timeout_s=_ASK_S) as control:
            return control.call(method, **params)

    def why_not_well(self, since_s: float) -> str:
        """Return what is not as it should be; "" if sources run, files grow and rows come.

        Parameters
        ----------
        since_s : float
            Rows must have come since then, by the monotonic clock [s].
        """
        if self.has_ended:
            return f"the daemon has ended with exit code {self.process.returncode}"
        try:
            status = self.ask("status")
        except SpectrodError as error:
            return f"status: {error}"
        for source in status["sources"]:
            if source["state"] != "running":
                return f"source {source['name']} is {source['state']}"
            if self.listener.last_s(source["name"]) <= since_s:
                return f"no rows of {source['name']}"
        for one in status["recorders"]:
            if one["state"] != "recording" or one["error"] or not one["files"]:
                return f"recording {one['name']} is {one['state']}: {one['error']}"
        return ""

    def wait_until_well(self, limit_s: float) -> str:
        """Wait until all is well; return what is not, if it takes longer than the limit."""
        begin_s = time.monotonic()
        while reason := self.why_not_well(begin_s):
            if self.has_ended or time.monotonic() > begin_s + limit_s:
                return reason
            self.hold(_LOOK_S)
        return ""

    def hold(self, seconds: float) -> None:
        """Let the present state last; shorter if the daemon ends."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    # ---- what faults use

    def set_disk_error(self, text: str) -> None:
        """Let calls on the disks fail with an error's number, or "hang"; "" ends that."""
        self._replace(self.folder / "errno", text)

    def set_clock(self, offset_s: int) -> None:
        """Shift the daemon's wall clock [s]."""
        self._replace(self.folder / "clock", str(offset_s))

    def write_drop_in(self, name: str, text: str) -> None:
        """Write a file of ``conf.d``; an empty text removes it."""
        self._replace(self.drop_ins / name, text)

    def _replace(self, path: Path, text: str) -> None:
        if not text:
            path.unlink(missing_ok=True)
            return
        new = self.folder / "new"
        new.write_text(text)
        new.replace(path)

    def remove_cache(self) -> None:
        """Delete all that is compiled."""
        shutil.rmtree(self.cache, ignore_errors=True)

    def child(self, part: bytes) -> int | None:
        """Return the id of a child process whose command line has a text."""
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            for pid in (task / "children").read_text(encoding="ascii").split():
                if part in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return int(pid)
        return None
