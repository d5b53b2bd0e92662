"""Peers of ``hostile_run.py`` that listen: a subscriber that checks each row, a new one."""

import time
from multiprocessing.connection import Connection
from typing import Any

from spectrod.apps.bench.accounting import Audit, Listened, check_recording
from spectrod.client import subscribe
from spectrod.lib.errors import SpectrodError

__all__ = ["Audit", "Listened", "check_recording", "listen", "wait_for_row"]

_WAIT_S = 0.1


def listen(pipe: Connection, endpoint: str, options: dict[str, Any]) -> None:
    """Subscribe to all spectra until a stop; send the counts of each phase at its end.

    The pipe says ``"next"`` where a phase ends and ``"end"`` after the last.
    """
    with subscribe(endpoint, "spec/", **options) as frames:
        next(frames)
        pipe.send("ready")
        audit, word = Audit(), ""
        while word != "end":
            try:
                frame = frames.receive(_WAIT_S)
            except SpectrodError as error:  # the next call goes on
                audit.phase.errors.append(str(error))
                frame = None
            if frame is not None:
                audit.take(frame)
            if pipe.poll():
                word = pipe.recv()
                pipe.send(audit.phase.facts())
                audit.phase = Listened()


def wait_for_row(endpoint: str, options: dict[str, Any], timeout_s: float) -> float:
    """Return how long a new subscriber waits for its first row [s]; at most the time limit."""
    begin_s = time.monotonic()
    with subscribe(endpoint, "spec/", **options) as frames:
        while (left_s := begin_s + timeout_s - time.monotonic()) > 0:
            try:
                if frames.receive(left_s) is not None:
                    break
            except SpectrodError:  # refused for now: the next call tries again
                continue
    return time.monotonic() - begin_s
