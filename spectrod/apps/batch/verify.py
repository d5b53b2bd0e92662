"""Checks results: files against their records, inputs against the plan, units computed again."""

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from spectrod.apps.batch.job import Job
from spectrod.apps.batch.output import output_of
from spectrod.apps.batch.plan import Unit
from spectrod.apps.batch.results import OutputFile, UnitRecord
from spectrod.apps.batch.run import UnitStatus
from spectrod.apps.batch.unit import compute_unit, file_digest
from spectrod.apps.batch.unit_samples import UnitSamples
from spectrod.lib.errors import SpectrodError, StorageError
from spectrod.recording.inputs import open_recording

_READ_PRODUCTS = ("spectra",)
"""Products whose files are recordings of spectra, which can be opened as such."""


def file_problems(job: Job, record: UnitRecord) -> Iterator[str]:
    """Yield what is wrong with the files of a result: missing, changed, or not readable."""
    output = output_of(job.output)
    for one in record.outputs:
        try:
            with output.fetched(one.path) as path:
                _check_file(path, one)
        except SpectrodError as error:
            yield str(error)


def _check_file(path: Path, output: OutputFile) -> None:
    if file_digest(path) != (output.size, output.sha256):
        raise StorageError(f"{path}: is not what was computed: its content has changed")
    if output.product in _READ_PRODUCTS:
        open_recording(path).close()


def input_problems(unit: Unit) -> Iterator[str]:
    """Yield why the inputs of a unit are not those of the plan any more; nothing if they are."""
    try:
        UnitSamples(unit).check()
    except SpectrodError as error:
        yield str(error)


def choose(statuses: Sequence[UnitStatus], n_units: int, seed: int) -> list[UnitStatus]:
    """Choose units with results at random, always the same ones for a seed."""
    computed = [one for one in statuses if one.record is not None and one.record.is_computed]
    return random.Random(seed).sample(computed, min(n_units, len(computed)))  # noqa: S311


def recomputed_problems(job: Job, unit: Unit, record: UnitRecord) -> Iterator[str]:
    """Compute a unit again, elsewhere, and yield the files that differ by any bit."""
    with tempfile.TemporaryDirectory(prefix="spectrod-verify-") as folder:
        again = compute_unit(msgspec.structs.replace(job, output=folder), unit)
    if again.state == "failed":
        yield f"{unit.key}: computed again: {again.reason}"
        return
    if again.engine != record.engine:
        yield (
            f"{unit.key}: computed again by {again.engine}, before by {record.engine}: their last "
            "digits differ; name the engine in the job"
        )
        return
    before = {one.path: one.sha256 for one in record.outputs}
    after = {one.path: one.sha256 for one in again.outputs}
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            yield f"{path}: computed again it differs"
