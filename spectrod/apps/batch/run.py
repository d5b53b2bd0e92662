"""Runs the units of a plan that are due, on any executor: attempts, set aside, stands."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from spectrod.apps.batch.executor import Executor
from spectrod.apps.batch.job import Job
from spectrod.apps.batch.output import JobOutput, output_of
from spectrod.apps.batch.plan import Unit
from spectrod.apps.batch.results import UnitRecord, UnitState, read_record, record_name
from spectrod.apps.batch.unit import stands, unit_digest
from spectrod.lib.backoff import Backoff
from spectrod.lib.errors import BusyError, StorageError, UnavailableError

BACKOFF_FIRST_S, BACKOFF_LAST_S = 1.0, 60.0
"""First and longest pause before units that failed are tried again [s]."""
REFUSED_CODE = 65
"""Exit code of a unit that the plan refuses."""
PASSING_CODES = (UnavailableError.exit_code, StorageError.exit_code)
"""Exit codes of failures whose cause may pass without a change of the input: a package, a device or
a store that is missing, a disk that is full."""


@dataclass(frozen=True, slots=True)
class UnitStatus:
    """Where a unit stands.

    Attributes
    ----------
    unit : Unit
    record : UnitRecord or None
        Its newest record; None if there is none, or the plan refuses the unit.
    state : {"waiting", "done", "partial", "failed"}
        failed: set aside; waiting: to be computed, also after a failed attempt.
    reason : str
        Why it is set aside or partial, or why the last attempt failed.
    exit_code : int
        0 as long as it waits.
    """

    unit: Unit
    record: UnitRecord | None
    state: UnitState | str
    reason: str = ""
    exit_code: int = 0

    @property
    def is_set_aside(self) -> bool:
        """Whether its attempts are used up; of a unit that the plan refuses, False."""
        return self.state == "failed" and self.record is not None

    @property
    def may_pass(self) -> bool:
        """Whether it is set aside for a reason that may be gone when it is tried again."""
        return self.is_set_aside and self.exit_code in PASSING_CODES


def status_of(job: Job, unit: Unit) -> UnitStatus:
    """Return where a unit stands, by its record and its files; raises StorageError."""
    return statuses_of(job, [unit])[0]


def statuses_of(job: Job, units: Sequence[Unit]) -> list[UnitStatus]:
    """Return where units stand, by their records and files; raises StorageError."""
    output = output_of(job.output).snapshot([record_name(unit) for unit in units])
    return [_status(job, output, unit) for unit in units]


def _status(job: Job, output: JobOutput, unit: Unit) -> UnitStatus:
    if unit.refused:
        return UnitStatus(unit, None, "failed", unit.refused, REFUSED_CODE)
    record, digest = read_record(output, unit), unit_digest(job, unit)
    if record is None or record.digest != digest:
        return UnitStatus(unit, None, "waiting")
    if record.state == "failed":
        if record.attempts >= job.attempts:
            return UnitStatus(unit, record, "failed", record.reason, record.exit_code)
        return UnitStatus(unit, record, "waiting", record.reason)
    if not stands(output, record, digest):
        return UnitStatus(unit, record, "waiting", "a file of it is missing or has changed")
    return UnitStatus(unit, record, record.state, record.reason, record.exit_code)


def run_units(
    job: Job,
    executor: Executor,
    units: Sequence[Unit],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[UnitRecord]:
    """Compute units, and those that fail again, up to ``job.attempts`` times each.

    All others are tried before a unit is tried again, and then a pause is made, which doubles each
    time. What another process computes is waited for.

    Parameters
    ----------
    job : Job
    executor : Executor
        Where they are computed.
    units : sequence of Unit
        Those that wait; see ``statuses_of``.
    sleep : callable
        Makes the pauses.

    Yields
    ------
    record : UnitRecord
        Of each attempt; of the last attempt of each unit the state is final.
    """
    by_key = {unit.key: unit for unit in units}
    backoff = Backoff(BACKOFF_FIRST_S, BACKOFF_LAST_S)
    attempts = dict.fromkeys(by_key, 0)
    waiting = list(units)
    while waiting:
        again = []
        for record in executor.run(job, waiting):
            yield record
            is_busy = record.exit_code == BusyError.exit_code
            attempts[record.key] += not is_busy
            tried = max(attempts[record.key], record.attempts)
            if record.state == "failed" and (is_busy or tried < job.attempts):
                again.append(by_key[record.key])
        waiting = again
        if waiting:
            sleep(backoff.next_s())
