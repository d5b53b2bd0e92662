"""The sound card: PortAudio's real callbacks, fed by another program through PulseAudio."""

import os
import pty
import signal
import subprocess
import sys

import numpy as np
import pytest
import soundfile

from spectrod import client
from spectrod.formats.picture.pixelmap import read_levels

FS = 48000

pytestmark = [pytest.mark.slow, pytest.mark.audio]


@pytest.fixture
def tone(tmp_path):
    """Make a long 1 kHz tone at -20 dBFS, in both channels."""
    n = np.arange(30 * FS)
    x = 0.1 * np.sin(2 * np.pi * 1000 * n / FS)
    soundfile.write(tmp_path / "tone.wav", np.stack([x, x], axis=1), FS, subtype="FLOAT")
    return tmp_path / "tone.wav"


def command(*arguments):
    return [sys.executable, "-m", "spectrod", *arguments, "--rate", str(FS), "--window", "flattop"]


def test_the_daemon_measures_a_tone_of_another_program(sound_server, tone):
    """A tone played by paplay reads 1000 Hz and -20.00 dBFS in the daemon's messages."""
    daemon = subprocess.Popen(
        command("run", "--source", "soundcard:pulse", "--publish", "tcp://127.0.0.1:*"),
        env=os.environ | {"SPECTROD_LOG_STYLE": "human"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    player = sound_server.play(tone)
    try:
        endpoint = next(line.split()[-1] for line in daemon.stderr if "publishing at" in line)
        with client.subscribe(endpoint, timeout_s=20.0) as frames:
            # Until the tone fills a whole frame, as the player's start takes time.
            frame = next(f for f in frames if abs(f.values.max() + 20.0) < 0.05)
            steady = [next(frames) for _ in range(20)]
        for frame in steady:
            assert frame.values.max() == pytest.approx(-20.0, abs=0.05)
            assert abs(frame.f[frame.values.argmax()] - 1000.0) <= FS / 4096
            assert frame.header.gap_samples == 0
        assert {frame.header.fs for frame in steady} == {float(FS)}
    finally:
        player.terminate()
        player.wait()
        daemon.send_signal(signal.SIGTERM)
        _, errors = daemon.communicate(timeout=10)
    assert daemon.returncode == 0, errors


def test_recording_the_card_for_a_duration(sound_server, tone, tmp_path):
    """The command ``record soundcard --duration`` draws exactly the duration of the tone."""
    player = sound_server.play(tone)
    out = tmp_path / "card.png"
    arguments = ["--duration", "2", "--win-length", "4096", "--levels=-25,-15", "-o", str(out)]
    try:
        subprocess.run(command("record", "soundcard:pulse", *arguments), check=True, timeout=60)
    finally:
        player.terminate()
        player.wait()
    levels = read_levels(out)
    row = int(np.argmin(np.abs(levels.f - 1000.0)))
    np.testing.assert_allclose(levels.level[row, -100:], -20.0, atol=0.05)
    assert levels.t[-1] == pytest.approx(2.0, abs=0.1)


def test_interrupted_card_leaves_its_picture(sound_server, tone, tmp_path):
    """Ctrl-C ends a live recording with a complete picture and exit code 130."""
    out = tmp_path / "card.png"
    player = sound_server.play(tone)
    own, child = pty.openpty()
    process = subprocess.Popen(command("record", "soundcard:pulse", "-o", str(out)), stderr=child)
    os.close(child)
    try:
        # The progress bar shows when there is data to keep.
        shown = b""
        while b"0:01 analysed" not in shown:
            shown += os.read(own, 4096)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        os.close(own)
        player.terminate()
        player.wait()
        process.kill()
        process.wait()
    levels = read_levels(out)
    assert levels.pixels.duration_s > 0.9
    assert levels.level.max() == pytest.approx(-20.0, abs=0.2)
