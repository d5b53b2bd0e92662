"""Executors: where units are computed."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from spectrod.analysis.parallel import limit_threads
from spectrod.apps.batch.job import Job
from spectrod.apps.batch.plan import Unit
from spectrod.apps.batch.results import UnitRecord
from spectrod.apps.batch.unit import failed
from spectrod.lib.allocator import keep_freed_memory
from spectrod.lib.errors import SpectrodError, bug_error

Compute = Callable[[Job, Unit], UnitRecord]
"""``spectrod.apps.batch.unit.compute_unit``, or a function of a module with its signature."""

LIMIT_MIN_S = 3600.0
LIMIT_FACTOR = 100.0

_POCL_THREADS = "POCL_MAX_PTHREAD_COUNT"


def prepare_process(n_threads: int) -> None:
    """Prepare this process for units, whoever started it; call it before the first one.

    It keeps freed memory (``keep_freed_memory``), whatever its environment says, and NumPy and PoCL
    compute with ``n_threads`` threads; PoCL with those of ``POCL_MAX_PTHREAD_COUNT``, if it is set.
    """
    keep_freed_memory()
    limit_threads(n_threads)
    os.environ.setdefault(_POCL_THREADS, str(n_threads))  # read when a device is first asked for


def limit_s(unit: Unit) -> float:
    """Return how long a unit may take [s]: an hour, or 100 times what is expected."""
    return max(LIMIT_MIN_S, LIMIT_FACTOR * unit.cost_s)


def attempt(compute: Compute, job: Job, unit: Unit) -> UnitRecord:
    """Compute a unit in this process; an exception is the failure of the unit."""
    try:
        return compute(job, unit)
    except SpectrodError as error:
        return failed(job, unit, error)
    except Exception as error:  # noqa: BLE001
        # Last line of defence: one unit must not end the others.
        return failed(job, unit, bug_error(error))


class Executor(Protocol):
    """Computes units, each by ``spectrod.apps.batch.unit.compute_unit`` in some process.

    An executor knows neither plans nor attempts: ``spectrod.apps.batch.run`` gives it the units
    that are due, and gives it again those that failed. Jobs, units and records can be pickled, and
    ``compute_unit`` can be imported by its name.
    """

    def run(self, job: Job, units: Iterable[Unit]) -> Iterator[UnitRecord]:
        """Compute units, and yield the record of each as it is completed, in any order.

        A unit whose process ends, or that exceeds its time, is a record with the state "failed"
        (``spectrod.apps.batch.unit.failed``). Closing the iterator ends what is in progress; a unit
        that has no record then leaves nothing but files under temporary names.
        """
