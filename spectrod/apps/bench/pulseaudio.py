"""A private PulseAudio server, to measure capture on machines without a sound card."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from spectrod.lib.errors import UnavailableError

FS = 48_000
"""Sample rate of the sink [Hz]."""
CHANNELS = 2
PACKAGES = "pulseaudio pulseaudio-utils libasound2-plugins"

_PROGRAMS = ("pulseaudio", "pactl", "pacat")
_LIMIT_S = 20.0
# The player's buffer in the server: it bridges scheduling delays of the player.
_PLAYER_LATENCY_MS = 5000


class NumberedPlayer:
    """Plays the numbered signal into the sink until it is stopped or the server ends.

    Parameters
    ----------
    env : mapping
        Environment of the server.
    first : int
        Number of the first frame.
    """

    def __init__(self, env: Mapping[str, str], first: int) -> None:
        generate = [sys.executable, "-m", "spectrod.apps.bench.sequence_signal", str(first)]
        self._generator = subprocess.Popen(generate, stdout=subprocess.PIPE, env=env)  # noqa: S603
        self.process = subprocess.Popen(  # noqa: S603
            [
                *("pacat", "--playback", "--raw", "--format=s16le"),
                *(f"--rate={FS}", f"--channels={CHANNELS}"),
                *("--device=vsink", f"--latency-msec={_PLAYER_LATENCY_MS}"),
            ],
            stdin=self._generator.stdout,
            stderr=subprocess.DEVNULL,
            env=env,
        )
        assert self._generator.stdout is not None
        self._generator.stdout.close()

    def stop(self) -> None:
        """Kill the processes and wait for them."""
        for process in (self.process, self._generator):
            process.kill()
            process.wait()


class PulseServer:
    """A private PulseAudio; ALSA's device ``pulse`` records the output of its null sink.

    The sink renders by the machine's monotonic clock, not exactly at 48000 Hz. It renders at most
    50 ms ahead (``norewinds``); the default is 2 s, for which a new stream would have to wait.

    Raises
    ------
    UnavailableError
        If a program is missing, or the server does not start.
    """

    sink = "module-null-sink sink_name=vsink format=float32le rate=48000 channels=2 norewinds=1"

    def __init__(self, folder: Path | None = None) -> None:
        _require_programs()
        self._made = None if folder else tempfile.TemporaryDirectory(prefix="spectrod-pulse-")
        self.folder = folder or Path(self._made.name if self._made else "")
        runtime = self.folder / "run"
        runtime.mkdir(mode=0o700)
        self.variables = {
            "XDG_RUNTIME_DIR": str(runtime),
            "HOME": str(self.folder),
            "PULSE_SERVER": f"unix:{runtime}/pulse/native",
        }
        inherited = {key: text for key, text in os.environ.items() if not key.startswith("PULSE_")}
        self.env = inherited | self.variables
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the server; it accepts clients on return."""
        # Clients may connect from the last line on, when everything else is ready.
        (self.folder / "default.pa").write_text(
            f"load-module {self.sink}\nset-default-sink vsink\nset-default-source vsink.monitor\n"
            "load-module module-native-protocol-unix\n"
        )
        self.process = subprocess.Popen(  # noqa: S603
            [
                *("pulseaudio", "-n", "-F", str(self.folder / "default.pa")),
                *("--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"),
            ],
            env=self.env,
            stderr=subprocess.DEVNULL,
        )
        self.wait_for("info")

    @contextmanager
    def environment(self) -> Iterator[None]:
        """Set the server's environment in this process, so that child processes find it."""
        before = {name: os.environ.get(name) for name in self.variables}
        os.environ.update(self.variables)
        try:
            yield
        finally:
            for name, text in before.items():
                os.environ.pop(name)
                if text is not None:
                    os.environ[name] = text

    def play_numbered(self, first: int = 1) -> NumberedPlayer:
        """Play the numbered signal from a number on; the server plays it on return."""
        player = NumberedPlayer(self.env, first)
        self.wait_for("list", "short", "sink-inputs")
        return player

    def pactl(self, *arguments: str) -> str:
        """Send a query or a command to the server; "" if it does not answer."""
        return subprocess.run(  # noqa: S603
            ["pactl", *arguments],  # noqa: S607
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        ).stdout.strip()

    def wait_for(self, *question: str) -> None:
        """Repeat a query until there is an answer."""
        # Each query is a process that starts and ends, so this loop does not spin.
        deadline = time.monotonic() + _LIMIT_S
        while not self.pactl(*question):
            if self.process is None or self.process.poll() is not None:
                raise UnavailableError("pulseaudio: has ended; is another sound server in its way?")
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"pulseaudio: no answer to {' '.join(question)} in {_LIMIT_S:g} s"
                )

    def kill(self) -> None:
        """Kill the server, like a crash."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def close(self) -> None:
        """Stop the server and remove its files."""
        self.kill()
        if self._made is not None:
            self._made.cleanup()


def _require_programs() -> None:
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        raise UnavailableError(
            f"{missing[0]}: not installed; it and what it needs are in the packages {PACKAGES} "
            "(their names on Debian and Ubuntu)"
        )
