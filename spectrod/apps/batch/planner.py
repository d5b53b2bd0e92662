"""Makes the plan of a job from the files that its deployments have now."""

from collections.abc import Callable, Sequence

from spectrod.apps.batch.cutting import units_of
from spectrod.apps.batch.job import Job
from spectrod.apps.batch.plan import BatchPlan, InputFinding, Unit, make_plan
from spectrod.apps.batch.products import SOFTWARE
from spectrod.apps.batch.scan import ScannedFile, finding, scan

_Key = tuple[int, int, str]


def plan_job(job: Job, note: Callable[[str], None] = lambda _: None) -> BatchPlan:
    """List the files of all deployments, read their headers, and cut them into units.

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
    for deployment in job.deployments:
        note(deployment.name)
        files, about = scan(deployment)
        cut, more = units_of(job, deployment, files)
        units += cut
        findings += [*about, *more]
        findings += _shared(job, deployment.name, files, owners)
    return make_plan(job, SOFTWARE, units, findings)


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
