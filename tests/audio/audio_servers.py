"""Real sound servers that tests may kill, stop and starve, on machines without a sound card."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from audio_faults import SHARED_MEMORY

from spectrod.apps.bench.pulseaudio import PulseServer

LIMIT_S = 60.0
JACK_FS = 48000
JACK_PERIOD = 480
"""Of samples; as short as a block."""


class SoundServer(PulseServer):
    """A private PulseAudio that can fail in all the ways of real servers."""

    def play(self, path):
        """Start to play a sound file into the sink; return once the server has the stream."""
        # A buffer that covers delays of the player.
        command = ["paplay", "--latency-msec=2000", "--device=vsink", str(path)]
        player = subprocess.Popen(command, env=self.env)
        self.wait_for("list", "short", "sink-inputs")
        return player

    def pause(self):
        """Stop the server's process, as an overloaded machine would."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        """Continue the server's process."""
        self.process.send_signal(signal.SIGCONT)

    def remove_sink(self):
        """Remove the only device, which ends the streams that record from it."""
        self.pactl("unload-module", "module-null-sink")

    def add_sink(self):
        """Add the device again."""
        assert self.pactl("load-module", *self.sink.split())
        self.pactl("set-default-source", "vsink.monitor")

    def add_devices(self, asoundrc):
        """Add devices to ALSA; PortAudio lists them at its next scan."""
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
            # No PulseAudio: its devices in ALSA's list are not needed.
            "PULSE_SERVER": f"unix:{folder}/none",
        }
        self.env = os.environ | self.variables
        self.process = None

    def start(self):
        """Start the server; return once clients can connect."""
        self.process = subprocess.Popen(
            [
                # With priority where that is allowed: on a busy machine it would miss its
                # deadlines.
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
        """Kill the server, as a crash would."""
        self.process.kill()
        self.process.wait()

    def close(self):
        """Stop the server so that it frees its entry in the list that all JACK servers share."""
        self.process.terminate()
        try:
            self.process.wait(timeout=LIMIT_S)
        finally:
            self.kill()
            for left in SHARED_MEMORY.glob(f"jack_*{self.name}*"):
                left.unlink()
