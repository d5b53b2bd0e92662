"""Real sound servers for tests, on machines that have no sound card."""

import os
import shutil
import subprocess
import time
from dataclasses import dataclass

import pytest

_PROGRAMS = ("pulseaudio", "paplay", "pactl")


@dataclass(frozen=True)
class SoundServer:
    """A private PulseAudio whose null sink plays into the recordings of ALSA's device "pulse"."""

    env: dict[str, str]

    def play(self, path):
        """Start to play a file into the sink; the server has its stream when this returns."""
        command = ["paplay", "--latency-msec=20", "--device=vsink", str(path)]
        player = subprocess.Popen(command, env=self.env)
        _wait_for(["pactl", "list", "short", "sink-inputs"], player, self.env)
        return player


@pytest.fixture
def sound_server(tmp_path_factory, monkeypatch):
    """Run a private PulseAudio with a null sink; its environment is also this process's."""
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.fail(f"not installed: {', '.join(missing)} (make test installs them)")
    home = tmp_path_factory.mktemp("pulse")
    runtime = home / "run"
    runtime.mkdir(mode=0o700)
    script = home / "default.pa"
    script.write_text(
        "load-module module-native-protocol-unix\n"
        "load-module module-null-sink sink_name=vsink format=float32le rate=48000 channels=2\n"
        "set-default-sink vsink\n"
        "set-default-source vsink.monitor\n"
    )
    variables = {
        "XDG_RUNTIME_DIR": str(runtime),
        "HOME": str(home),
        "PULSE_SERVER": f"unix:{runtime}/pulse/native",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    env = os.environ | variables
    command = ["pulseaudio", "-n", "-F", str(script), "--daemonize=no", "--exit-idle-time=-1"]
    server = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
    try:
        _wait_for(["pactl", "info"], server, env)
        yield SoundServer(env)
    finally:
        server.terminate()
        server.wait(timeout=10)


def _wait_for(question, process, env):
    """Ask the server until it has an answer; the process is what it takes to get one."""
    deadline = time.monotonic() + 20.0
    # pactl itself waits for the server's socket, a little; the loop bounds how often it is asked.
    while not subprocess.run(question, env=env, capture_output=True, check=False).stdout:
        assert process.poll() is None, f"{process.args[0]} has ended"
        assert time.monotonic() < deadline, f"no answer to {' '.join(question)}"
