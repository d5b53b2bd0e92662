"""Makes the plan of a job from the files that its deployments have now."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence

from spectrod.apps.batch.cutting import units_of
from spectrod.apps.batch.job import DIGEST_CHARS, Job
from spectrod.apps.batch.plan import BatchPlan, InputFinding, Unit, make_plan
from spectrod.apps.batch.scan import InputListing, ScannedFile, finding, list_inputs, scan
from spectrod.apps.batch.unit_settings import SOFTWARE
from spectrod.source.store.urls import is_url

_Key = tuple[int, int, str]


def plan_job(job: Job, note: Callable[[str], None] = lambda _: None) -> BatchPlan:
    """List the files of all deployments, read their headers, and cut them into units.

    A file that changes while they are read is planned as it is then; ``is_current`` then is False.

    Parameters
    ----------
    job : Job
    note : callable
        Called with the name of each deployment before it is searched.

    Raises
    ------
    InputError
        If an input cannot be read, or has no sound files.
    """
    units: list[Unit] = []
    findings: list[InputFinding] = []
    owners: dict[_Key, str] = {}
    listings = list_all(job)
    listed_digest = inputs_digest(listings)
    for deployment in job.deployments:
        note(deployment.name)
        files, about = scan(deployment, listings[deployment.name])
        cut, more = units_of(job, deployment, files)
        units += cut
        findings += [*about, *more]
        findings += _shared(job, deployment.name, files, owners)
    return make_plan(job, SOFTWARE, units, findings, listed_digest)


def is_current(plan: BatchPlan, job: Job) -> bool:
    """Return whether a plan is of a job as it is now, and of the files that its inputs have now.

    Raises
    ------
    InputError, UnavailableError
        See ``list_inputs``; of a plan of another job, nothing is listed.
    """
    return plan.head.job_digest == job.plan_digest and plan.head.inputs_digest == inputs_digest(
        list_all(job)
    )


def list_all(job: Job) -> dict[str, InputListing]:
    """List the files of each deployment, by its name; see ``list_inputs`` for errors."""
    return {one.name: list_inputs(one) for one in job.deployments}


def inputs_digest(listings: Mapping[str, InputListing]) -> str:
    """Return the digest of the names, sizes and times of change of all files; none is opened.

    Of files of stores the address alone counts: each would be a request.
    """
    found = hashlib.sha256()
    for name, listing in listings.items():
        for path in listing.paths:
            found.update(repr((name, path, _state(path))).encode(errors="surrogateescape"))
    return found.hexdigest()[:DIGEST_CHARS]


def _state(path: str) -> tuple[int, int] | None:
    if is_url(path):
        return None
    try:
        status = os.stat(path)  # noqa: PTH116 - half the time of Path.stat, of 600,000 files
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def changed_files(before: BatchPlan, after: BatchPlan) -> str:
    """Return how many files of a plan are new, gone and changed since; empty for none."""
    old, new = _files_of(before), _files_of(after)
    counts = {
        "new": len(new.keys() - old.keys()),
        "gone": len(old.keys() - new.keys()),
        "changed": sum(old[path] != new[path] for path in old.keys() & new.keys()),
    }
    return ", ".join(f"{n} {what}" for what, n in counts.items() if n)


def _files_of(plan: BatchPlan) -> dict[str, tuple[int, int, str]]:
    """Return the identity of each file of a plan; of one that is left out, why."""
    found = {one.path: (0, 0, one.text) for one in plan.findings}
    pieces = (piece for unit in plan.units for piece in unit.pieces)
    return found | {one.path: (one.size, one.mtime_ns, one.digest) for one in pieces}


def _shared(
    job: Job, name: str, files: Sequence[ScannedFile], owners: dict[_Key, str]
) -> list[InputFinding]:
    """Find files that earlier deployments have as well; both have them in their results."""
    shared: dict[str, list[ScannedFile]] = {}
    for file in files:
        key = file.recorded.utc_ns, file.print_.size, file.print_.digest
        owner = owners.setdefault(key, name)
        if owner != name:
            shared.setdefault(owner, []).append(file)
    findings = []
    for owner, some in shared.items():
        first = some[0]
        text = (
            f"{first.path}: of its files, {len(some)} are also in deployments.{owner}: one "
            "recorder in two deployments?"
        )
        start_ns, duration_s = first.recorded.utc_ns, sum(one.n_samples / one.fs for one in some)
        findings.append(
            finding(job.deployment(name), "duplicate", first.path, text, start_ns, duration_s)
        )
    return findings
