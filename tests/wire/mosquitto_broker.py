"""An MQTT broker for tests of the bridge."""

import contextlib
import queue
import shutil
import socket
import subprocess
import threading
import time

import pytest

TIMEOUT_S = 60.0


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Mosquitto:
    """A broker on a port that stays the same after a restart."""

    def __init__(self, folder, *lines):
        program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin")
        assert program, "mosquitto is missing: make test installs it"
        self.port = free_port()
        self.config = folder / "mosquitto.conf"
        settings = [f"listener {self.port} 127.0.0.1", "log_dest stderr", *lines]
        self.config.write_text("\n".join(settings) + "\n")
        self._command = [program, "-c", self.config]
        self._process = self._reader = None
        self._lines = queue.Queue()

    def start(self):
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, args=(self._process.stderr,))
        self._reader.start()
        self._wait_until_it_accepts()

    def _wait_until_it_accepts(self):
        """Wait for the port itself: the line that it runs comes earlier in some versions."""
        limit_s = time.monotonic() + TIMEOUT_S
        while time.monotonic() < limit_s:
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S).close()
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(0.02)
                pytest.fail(f"mosquitto ended with {code}: {list(self._lines.queue)}")
        pytest.fail(f"mosquitto does not listen: {list(self._lines.queue)}")

    def wait_for_line(self, text):
        """Wait for a line in the broker's log after the last wait."""
        while text not in self._lines.get(timeout=TIMEOUT_S):
            pass

    def _read(self, log):
        for line in log:
            self._lines.put(line)

    def kill(self):
        self._process.kill()
        self._reader.join()
        self._process.stderr.close()
        self._process.wait()
        self._process = None

    def close(self):
        if self._process is not None:
            self.kill()
