"""The processes that read files: ``python -m`` this module, with KIND and CONTROL.

The first one loads libraries, and then forks a process for each link that arrives on its control
socket, with the descriptor of a file. Such a process can open nothing else, no file, socket or
program; its memory and processor time are bounded, and a defect in a library ends it alone. It ends
with its link, and with the first one, which ends with its control socket.
"""

import ctypes
import math
import os
import resource
import signal
import socket
import sys
import time
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from spectrod.formats.export.confined.confined_messages import (
    ANSWER_BYTES_MAX,
    ConfinedAnswer,
    Content,
    Kind,
    Question,
)

MEMORY_BYTES = 64 << 20
"""Memory beside the chunks that a question is about [bytes]."""
MEMORY_BYTES_MAX = 512 << 20
"""Most memory of a question [bytes]."""
QUESTION_S = 4
"""Processor time of a question [s]."""
DAMAGE = (LookupError, MemoryError, OSError, OverflowError, RuntimeError, TypeError, ValueError)
"""Exceptions that libraries raise for damaged files."""

_MODULES: dict[Kind, str] = {
    "hdf5": "spectrod.formats.export.confined.hdf5",
    "blosc": "spectrod.formats.export.confined.blosc",
    "parquet": "spectrod.formats.export.confined.parquet_events",
}
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_REASON_CHARS_MAX = 500


class QuestionHandler(Protocol):
    """Answers questions about one file."""

    def needs_bytes(self, question: Question) -> int:
        """Return how much memory a question's chunks take, beside ``MEMORY_BYTES``."""

    def answer(self, question: Question, content: bytes) -> tuple[ConfinedAnswer, Content]:
        """Return an answer, and the array that follows it; raises one of ``DAMAGE``."""


def main(kind: Kind, control_fd: int) -> None:
    """Fork a process for each link that arrives."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that end
    open_file = import_module(_MODULES[kind]).open_file
    control, parent = socket.socket(fileno=control_fd), os.getpid()
    while True:
        _, fds, _, _ = socket.recv_fds(control, 1, 2)
        if not fds:
            return
        if os.fork() == 0:
            control.close()
            link, *files = fds
            address_bytes = _address_bytes()
            _confine(parent, address_bytes)
            _serve(Connection(link), open_file(*files), address_bytes)
            os._exit(0)
        for fd in fds:
            os.close(fd)


def _address_bytes() -> int:
    """Return the size of this process's address space; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_bytes().split()[0]
    except FileNotFoundError:
        return 0
    return int(pages) * resource.getpagesize()


def _confine(parent: int, address_bytes: int) -> None:
    """Give up what reading an open file does not need."""
    libc = ctypes.CDLL(None)
    if sys.platform == "linux":
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        libc.prctl(_PR_SET_DUMPABLE, 0)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(0)
    for limit in (
        resource.RLIMIT_NOFILE,
        resource.RLIMIT_FSIZE,
        resource.RLIMIT_CORE,
        resource.RLIMIT_NPROC,
    ):
        resource.setrlimit(limit, (0, 0))
    if address_bytes:
        _bound(resource.RLIMIT_AS, address_bytes + MEMORY_BYTES, address_bytes + MEMORY_BYTES_MAX)


def _serve(link: Connection, handler: QuestionHandler, address_bytes: int) -> None:
    """Answer questions until the link is closed."""
    while True:
        try:
            question = msgspec.msgpack.decode(link.recv_bytes(ANSWER_BYTES_MAX), type=Question)
            content = link.recv_bytes(question.first) if question.what == "decode" else b""
        except (EOFError, OSError):
            return
        if address_bytes:
            memory_bytes = MEMORY_BYTES + handler.needs_bytes(question)
            _bound(resource.RLIMIT_AS, address_bytes + memory_bytes)
        _bound(resource.RLIMIT_CPU, math.ceil(time.process_time()) + QUESTION_S)
        try:
            answer, array = handler.answer(question, content)
        except DAMAGE as error:
            answer, array = ConfinedAnswer(_reason(error)), None
        link.send_bytes(msgspec.msgpack.encode(answer))
        if array is not None:
            link.send_bytes(array)


def _bound(limit: int, soft: int, hard: int | None = None) -> None:
    """Set a limit, which cannot exceed the hard one; set that too, if given."""
    _, before = resource.getrlimit(limit)
    allowed = [one for one in (before, hard) if one is not None and one != resource.RLIM_INFINITY]
    most = min(allowed, default=resource.RLIM_INFINITY)
    resource.setrlimit(limit, (min([soft, *allowed]), most))


def _reason(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "needs more memory than its arrays and chunks have"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(reason.split())[:_REASON_CHARS_MAX]


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(sys.argv[1], int(sys.argv[2]))  # type: ignore[arg-type]
