"""Findings, and the probes that make them."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final, Literal

from spectrod.lib.errors import InternalError, SpectrodError, UnavailableError
from spectrod.lib.worker import Worker

FindingState = Literal["ok", "warn", "fail"]

_LIMIT_S: Final = 90.0
"""Time limit of a probe, longer than those of the commands and processes that it waits for [s]."""


@dataclass(frozen=True, slots=True)
class Finding:
    """State of one part of the machine.

    Attributes
    ----------
    part : str
        The part, in one or two words.
    state : {"ok", "warn", "fail"}
        ``warn``: works, but worse than it could; ``fail``: does not work.
    text : str
        What was found, in one line.
    why : str
        Why it matters, in one line; empty if ok.
    command : str
        Command that mends it, or shows more; empty if ok or if there is none.
    exit_code : int
        Of a failure, as that of ``SpectrodError``; else 0.
    """

    part: str
    state: FindingState
    text: str
    why: str = ""
    command: str = ""
    exit_code: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


Probe = Callable[[], Iterable[Finding]]


def ok(part: str, text: str) -> Finding:
    """Return a finding of a part that works."""
    return Finding(part, "ok", text)


def warn(part: str, text: str, why: str, command: str = "") -> Finding:
    """Return a finding of a part that works worse than it could."""
    return Finding(part, "warn", text, why, command)


def fail(
    part: str, text: str, why: str, command: str = "", error: type[SpectrodError] = UnavailableError
) -> Finding:
    """Return a finding of a part that does not work, with the exit code of an error."""
    return Finding(part, "fail", text, why, command, error.exit_code)


def examine(probes: Mapping[str, Probe], limit_s: float = _LIMIT_S) -> Sequence[Finding]:
    """Run probes at the same time; return their findings in the order of the probes.

    A probe that has not ended after the limit [s] fails, and its thread is left behind: a disk that
    does not answer cannot be waited for.
    """
    found: dict[str, list[Finding]] = {part: [] for part in probes}
    workers = {}
    for part, probe in probes.items():
        workers[part] = Worker(part, partial(_run, probe, found[part]))
        workers[part].start()
    deadline_s = time.monotonic() + limit_s
    findings: list[Finding] = []
    for part, worker in workers.items():
        has_ended = worker.wait(max(0.0, deadline_s - time.monotonic()))
        findings += tuple(found[part])
        if not has_ended:
            why = "something that it asks does not answer, such as a disk or a driver"
            findings.append(fail(part, f"no result within {limit_s:g} s", why))
        elif worker.failure is not None:
            why = "a defect of this command"
            findings.append(fail(part, str(worker.failure), why, error=InternalError))
    return findings


def _run(probe: Probe, found: list[Finding]) -> None:
    for finding in probe():
        found.append(finding)  # noqa: PERF402 - what was found before an error stays
