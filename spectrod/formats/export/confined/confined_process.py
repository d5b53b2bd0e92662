"""Starts a process for a file that is to be read, and asks it."""

import atexit
import os
import socket
import subprocess
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Lock

import msgspec

from spectrod.formats.export.confined.confined_messages import (
    ANSWER_BYTES_MAX,
    ConfinedAnswer,
    Kind,
    Question,
)
from spectrod.lib.errors import UnavailableError

ANSWER_S = 60.0
"""Longest time for an answer [s]: more than its processor time, as disks are slow."""
_CHILD = "spectrod.formats.export.confined.confined_child"
_END_S = 5.0
# Each thread of a library would take address space, and there is one file at a time.
_ENVIRONMENT = {
    "BLOSC_NTHREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class FileProcess:
    """A process that reads one file, and can do nothing else; see ``child``.

    Thread: one at a time.

    Parameters
    ----------
    kind : {"hdf5", "blosc", "parquet"}
        What it reads.
    *files : int
        Descriptors that it gets a copy of: that of an HDF5 file.

    Raises
    ------
    UnavailableError
        If no process can be started.
    ValueError
        If the file cannot be opened.
    """

    def __init__(self, kind: Kind, *files: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                _starter(kind).start(theirs.fileno(), *files)
            except OSError as error:
                ours.close()
                raise _not_started(error) from error
        self._link = Connection(ours.detach())
        try:
            self.ask(Question("open"))
        except BaseException:
            self.close()
            raise

    def ask(self, question: Question, content: bytes | None = None) -> ConfinedAnswer:
        """Return the answer to a question.

        Raises
        ------
        ValueError
            If it is an error, there is none in time, or the process has ended.
        """
        try:
            self._link.send_bytes(msgspec.msgpack.encode(question))
            if content is not None:
                self._link.send_bytes(content)
            answer = msgspec.msgpack.decode(self._received(ANSWER_BYTES_MAX), type=ConfinedAnswer)
        except (EOFError, OSError, msgspec.DecodeError) as error:
            raise self._ended() from error
        if answer.error:
            raise ValueError(answer.error)
        return answer

    def array(self, n_bytes: int) -> bytes:
        """Return the array of this size that follows an answer; raises ValueError."""
        try:
            content = self._received(n_bytes)
        except (EOFError, OSError) as error:
            raise self._ended() from error
        if len(content) != n_bytes:
            raise ValueError(f"{len(content)} bytes of an array of {n_bytes}")
        return content

    def close(self) -> None:
        """Let the process end. Idempotent."""
        self._link.close()

    def _received(self, bytes_max: int) -> bytes:
        if not self._link.poll(ANSWER_S):
            raise TimeoutError
        return self._link.recv_bytes(bytes_max)

    def _ended(self) -> ValueError:
        self.close()
        return ValueError("the process that reads it gave up: too much time or memory, or a crash")


class _Starter:
    """The process that has loaded the libraries of a kind, and forks those that read files."""

    def __init__(self, kind: Kind) -> None:
        self._pid = os.getpid()
        ours, theirs = socket.socketpair()
        self._control = ours
        command = [sys.executable, "-P", "-m", _CHILD, kind, str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - this program
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=os.environ | _ENVIRONMENT,
                start_new_session=True,  # signals of a terminal are for this process alone
            )

    @property
    def is_usable(self) -> bool:
        """Whether it runs, and is of this process: a fork has none of its own."""
        return self._pid == os.getpid() and self._process.poll() is None

    def start(self, *fds: int) -> None:
        """Fork a process with these descriptors."""
        socket.send_fds(self._control, [b"+"], fds)

    def end(self) -> None:
        """End it, and all that it has forked."""
        self._control.close()
        if self._pid == os.getpid():
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)


_starters: dict[Kind, _Starter] = {}
_lock = Lock()


def _starter(kind: Kind) -> _Starter:
    with _lock:
        one = _starters.get(kind)
        if one is None or not one.is_usable:
            if one is not None:
                one.end()
            one = _starters[kind] = _Starter(kind)
        return one


def _not_started(error: OSError) -> UnavailableError:
    return UnavailableError(f"process that reads files: cannot be started: {error.strerror}")


def _end_all() -> None:
    for one in _starters.values():
        one.end()
    _starters.clear()


atexit.register(_end_all)
