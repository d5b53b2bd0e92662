"""A daemon as a service manager runs it, and its messages to a subscriber."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time

import zmq

from spectrod.wire import schema

START_S = 60.0


class Daemon:
    """``spectrod run`` on a sound card, and a subscriber to all that it says.

    Attributes
    ----------
    log : list of str
        What it has logged.
    """

    def __init__(self, source="soundcard:pulse", env=None):
        command = [sys.executable, "-m", "spectrod", "run", "--source", source, "--rate", "48000"]
        self.process = subprocess.Popen(
            [*command, "--engine", "numpy", "--publish", "tcp://127.0.0.1:*"],
            env=os.environ | {"SPECTROD_LOG_STYLE": "human"} | (env or {}),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        self.log = []
        self._endpoints = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read_log)
        self._reader.start()
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)

    def __enter__(self):
        try:
            self._socket.connect(self._endpoints.get(timeout=START_S))
        except queue.Empty:
            self.__exit__()
            raise AssertionError("\n".join(self.log)) from None
        self._socket.subscribe(b"")
        return self

    def __exit__(self, *_):
        self._context.destroy(linger=0)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=10.0)
        finally:
            self.process.kill()
            self._reader.join()

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line.rstrip())
            if "publishing at" in line:
                self._endpoints.put(line.split()[-1])
        self.process.stderr.close()

    def receive(self, is_it, limit_s):
        """Wait for a message that matches; return it and the time of its arrival."""
        deadline = time.monotonic() + limit_s
        while self._socket.poll(max(0.0, 1e3 * (deadline - time.monotonic()))):
            message = schema.decode(self._socket.recv_multipart())
            if is_it(message):
                return message, time.monotonic()
        raise AssertionError(f"no such message within {limit_s:g} s; log:\n" + "\n".join(self.log))

    def receive_state(self, state, limit_s):
        """Wait for a heartbeat with a state."""
        return self.receive(
            lambda m: isinstance(m, schema.Heartbeat) and m.header.state == state, limit_s
        )

    def receive_frame(self, limit_s, is_it=lambda _: True):
        """Wait for a spectrum of the first channel."""
        return self.receive(
            lambda m: isinstance(m, schema.Frame) and m.channel == "0" and is_it(m.header), limit_s
        )
