"""A child process that answers in lines of JSON and is killed when it hangs."""

import json
import logging
import os
import select
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from spectrod.lib.errors import UnavailableError
from spectrod.lib.wakeup import Wakeup

_log = logging.getLogger(__name__)

_REAP_S = 0.5
_CHATTER_LINES = 50
_PIPE_BYTES = 1 << 16

_unreaped: list[subprocess.Popen[bytes]] = []


def count_unreaped() -> int:
    """Reap killed processes that have ended; return the number of those that have not."""
    _unreaped[:] = [process for process in _unreaped if process.poll() is None]
    return len(_unreaped)


class ChildProcess:
    """A process with pipes to its three standard streams.

    The first 50 lines that it prints to standard error are logged at debug level. The pipe
    never blocks the process: output that does not fit is lost and not counted.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    name : str
        Name of the process in errors.
    env : mapping of str to str
        Environment of the process.
    pass_fds : collection of int
        Descriptors that the process inherits.
    reap_s : float
        How long to wait for the end of a process that was killed or has closed its pipe [s].

    Raises
    ------
    UnavailableError
        If the system cannot start the process.
    """

    def __init__(
        self,
        command: Sequence[str],
        name: str,
        env: Mapping[str, str],
        pass_fds: Collection[int],
        *,
        reap_s: float = _REAP_S,
    ) -> None:
        self._reap_s = reap_s
        count_unreaped()
        self._name = name
        self._lines = b""
        try:
            self._process, chatter = _start(command, env, pass_fds)
        except OSError as error:
            raise UnavailableError(f"{name}: cannot be started: {error.strerror}") from error
        assert self._process.stdin
        assert self._process.stdout
        self._requests, self._replies = self._process.stdin, self._process.stdout
        self._chatter = _Chatter(name, chatter)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def ask(self, request: dict[str, Any], timeout_s: float, stop: Wakeup | None) -> dict[str, Any]:
        """Send a request and return the next line of the answers.

        Raises
        ------
        UnavailableError
            If the process does not answer in time, has ended, or ``stop`` was set.
        """
        try:
            self._requests.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise self._ended() from None
        deadline_s = time.monotonic() + timeout_s
        while (line := self.take_line(deadline_s, stop)) is None:
            if time.monotonic() >= deadline_s:
                raise UnavailableError(f"{self._name}: did not answer within {timeout_s:g} s")
        return line

    def take_line(self, deadline_s: float, stop: Wakeup | None) -> dict[str, Any] | None:
        """Return the next line of the answers; None if there is none before the deadline.

        Raises
        ------
        UnavailableError
            If the process has ended, or ``stop`` was set.
        """
        while b"\n" not in self._lines:
            ready = self.poll(deadline_s, *([stop.fileno()] if stop else []))
            if not ready:
                return None
            if self._replies.fileno() not in ready:
                raise UnavailableError(f"{self._name}: stopped while waiting for it")
            self._read_replies()
        line, _, self._lines = self._lines.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _read_replies(self) -> None:
        data = os.read(self._replies.fileno(), _PIPE_BYTES)
        if not data:
            raise self._ended()
        self._lines += data

    def poll(self, deadline_s: float, *others: int) -> set[int]:
        """Wait until an answer or one of the other descriptors is readable.

        Returns
        -------
        ready : set of int
            Readable descriptors, that of the answers included; empty on timeout.
        """
        poll = select.poll()
        for fd in (self._replies.fileno(), *others):
            poll.register(fd, select.POLLIN)
        chatter = self._chatter.fd
        if chatter is not None:
            poll.register(chatter, select.POLLIN)
        # A line that arrived with the one before it is no longer in the pipe.
        has_line = b"\n" in self._lines
        while True:
            left_ms = 0.0 if has_line else max(0.0, 1e3 * (deadline_s - time.monotonic()))
            ready = {fd for fd, _ in poll.poll(left_ms)}
            if has_line:
                ready.add(self._replies.fileno())
            if chatter in ready:
                ready.discard(chatter)
                if not self._chatter.read():
                    poll.unregister(chatter)
            if ready or time.monotonic() >= deadline_s:
                return ready

    def _ended(self) -> UnavailableError:
        self._chatter.read()
        try:
            status = self._process.wait(self._reap_s)
        except subprocess.TimeoutExpired:
            how = "closed its pipe"
        else:
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
        said = f": {self._chatter.last}" if self._chatter.last else ""
        return UnavailableError(f"{self._name}: ended ({how}){said}")

    def kill(self) -> None:
        """Kill the process; one that does not end soon is reaped later."""
        self._process.kill()
        self._requests.close()
        self._replies.close()
        self._chatter.close()
        try:
            self._process.wait(self._reap_s)
        except subprocess.TimeoutExpired:
            _unreaped.append(self._process)
            _log.warning("%s: process %d was killed and has not ended", self._name, self.pid)


def _start(
    command: Sequence[str], env: Mapping[str, str], pass_fds: Collection[int]
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a process; returns it and the descriptor to read its standard error from."""
    chatter, chatter_end = os.pipe()
    try:
        os.set_blocking(chatter, False)
        os.set_blocking(chatter_end, False)
        process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=chatter_end,
            env=env,
            pass_fds=pass_fds,
            process_group=0,  # Ctrl-C at a terminal must not reach it
        )
    except OSError:
        os.close(chatter)
        raise
    finally:
        os.close(chatter_end)
    return process, chatter


class _Chatter:
    """Standard error of a process."""

    def __init__(self, name: str, fd: int) -> None:
        self.fd: int | None = fd
        self.last = ""
        """The last complete line."""
        self._name = name
        self._lines_left = _CHATTER_LINES
        self._rest = b""

    def read(self) -> bool:
        """Read the available output; False at its end."""
        try:
            data = os.read(self.fd, _PIPE_BYTES) if self.fd is not None else b""
        except BlockingIOError:
            return True
        if not data:
            self.close()
            return False
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-_PIPE_BYTES:]
        for line in lines:
            self._log(line.decode(errors="replace").strip())
        return True

    def _log(self, line: str) -> None:
        self.last = line or self.last
        if self._lines_left:
            self._lines_left -= 1
            _log.debug("%s: %s", self._name, line)

    def close(self) -> None:
        """Close the pipe."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
