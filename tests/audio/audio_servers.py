"""Real sound servers that tests may kill, stop and starve, on machines without a sound card."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from audio_faults import SHARED_MEMORY

from spectrod_bench.pulseaudio import PulseServer

LIMIT_S = 20.0
JACK_FS = 48000
JACK_PERIOD = 480
"""Of samples; as short as a block."""


class SoundServer(PulseServer):
    """A private PulseAudio that can fail in all the ways that servers do."""

    def play(self, path):
        """Start to play a sound file into the sink; the server has its stream when this returns."""
        # A buffer that bridges what keeps the player from its turn.
        command = ["paplay", "--latency-msec=2000", "--device=vsink", str(path)]
        player = subprocess.Popen(command, env=self.env)
        self.wait_for("list", "short", "sink-inputs")
        return player

    def pause(self):
        """Stop its process as a machine that has no time for it would."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def remove_sink(self):
        """Take the only device away: streams that record from it end."""
        self.pactl("unload-module", "module-null-sink")

    def add_sink(self):
        """Bring the device back."""
        assert self.pactl("load-module", *self.sink.split())
        self.pactl("set-default-source", "vsink.monitor")

    def add_devices(self, asoundrc):
        """Give ALSA more devices; PortAudio lists them when it next looks."""
        path = self.folder / ".asoundrc"
        path.write_text((path.read_text() if path.exists() else "") + asoundrc)


class JackServer:
    """A private JACK whose dummy driver has two inputs, silent.

    On a machine that is busy it loses samples of its own accord, and flags that.

    Parameters
    ----------
    folder : Path
        Empty; for its log.
    ports : int
        That it has room for: its own four and two of each program that records from it.
    """

    programs = ("jackd", "jack_lsp")

    def __init__(self, folder: Path, ports: int = 64) -> None:
        missing = [program for program in self.programs if shutil.which(program) is None]
        assert not missing, f"not installed: {', '.join(missing)} (make test installs them)"
        self.name = f"spectrod-{os.getpid()}"
        self.ports = ports
        self.variables = {
            "JACK_DEFAULT_SERVER": self.name,
            "JACK_NO_START_SERVER": "1",
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(folder),
            # No PulseAudio: what ALSA lists is of no use.
            "PULSE_SERVER": f"unix:{folder}/none",
        }
        self.env = os.environ | self.variables
        self.process = None

    def start(self):
        """Start it; clients can connect when this returns."""
        self.process = subprocess.Popen(
            [
                # Before others where that is allowed: it misses its time on a machine that is busy.
                *("nice", "-n", "-15"),
                *("jackd", "--name", self.name, "--no-realtime", "--no-mlock"),
                *("--port-max", str(self.ports), "-d", "dummy"),
                *(
                    "--rate",
                    str(JACK_FS),
                    "--period",
                    str(JACK_PERIOD),
                    "--capture",
                    "2",
                    "--playback",
                    "2",
                ),
            ],
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + LIMIT_S
        ask = ["jack_lsp", "--server", self.name]
        while subprocess.run(ask, env=self.env, capture_output=True, check=False).returncode:
            assert self.process.poll() is None, "jackd has ended"
            assert time.monotonic() < deadline, "no answer from jackd"

    def kill(self):
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()

    def close(self):
        """End it so that it gives back its place in the list that all JACK servers share."""
        self.process.terminate()
        try:
            self.process.wait(timeout=LIMIT_S)
        finally:
            self.kill()
            for left in SHARED_MEMORY.glob(f"jack_*{self.name}*"):
                left.unlink()
