"""``spectrod batch plan``, and the plan that ``run`` makes by itself."""

from spectrod.apps.batch.command_text import hours, print_some
from spectrod.apps.batch.job import Job
from spectrod.apps.batch.output import output_of
from spectrod.apps.batch.plan import (
    PLAN_FILE,
    BatchPlan,
    check_plan,
    stored_plan,
    write_plan,
)
from spectrod.apps.batch.planner import changed_files, is_current, plan_job
from spectrod.apps.batch.product_packages import need_packages
from spectrod.lib.errors import InputError, UnavailableError
from spectrod.lib.text import printable

_A_UNIT = {"day": "a day", "hour": "an hour"}


def make_and_write(job: Job) -> BatchPlan:
    """Make the plan of a job, in place of an older one; see ``plan_job`` and ``write_plan``."""
    plan = plan_job(job)
    with output_of(job.output).written(PLAN_FILE) as path:
        write_plan(path, plan)
    return plan


def up_to_date_plan(job: Job, *, needs_packages: bool) -> BatchPlan:
    """Return the plan of a job; make it where there is none, or where inputs or job have changed.

    Inputs that cannot be listed now, as those of a card that is not there, leave a plan as it is.
    What was planned, and why, is printed.

    Parameters
    ----------
    job : Job
    needs_packages : bool
        Whether units are computed with the packages of this process, which then must be there.

    Raises
    ------
    InputError
        If there is no plan, and an input cannot be listed.
    StorageError
        If a plan is damaged, or cannot be written.
    UnavailableError
        If a package is missing, or a store does not answer.
    """
    with output_of(job.output).fetched(PLAN_FILE) as path:
        before = stored_plan(path)
        if before is not None and _stands(before, job):
            check_plan(path, before, job)
            return before
    if needs_packages:
        need_packages(job, for_merge=False)
    plan = make_and_write(job)
    if before is None:
        print_findings(job, plan, is_all=False)
    elif before.head.job_digest != job.plan_digest:
        print("planned again: inputs, times or the unit of the job have changed")
    elif changes := changed_files(before, plan):
        print(f"planned again: files: {changes}")
    print_totals(job, plan)
    return plan


def _stands(plan: BatchPlan, job: Job) -> bool:
    try:
        return is_current(plan, job)
    except (InputError, UnavailableError) as error:
        print(printable(f"{error}: the plan that there is counts"))
        return True


def print_findings(job: Job, plan: BatchPlan, *, is_all: bool) -> None:
    """Print what the owner of the inputs should know: the first lines, or all."""
    lines = [f"{one.deployment}: {one.kind}: {one.text}" for one in plan.findings]
    lines += [f"{unit.key}: refused: {unit.refused}" for unit in plan.units if unit.refused]
    with_units = {unit.deployment for unit in plan.units}
    lines += [
        f"{one.name}: no units: none of its files has sound that counts, from begin to end"
        for one in job.deployments
        if one.name not in with_units
    ]
    print_some(lines, is_all=is_all, command="plan")


def print_totals(job: Job, plan: BatchPlan) -> None:
    """Print the line of a plan."""
    head, place = plan.head, output_of(job.output).place(PLAN_FILE)
    print(
        f"{printable(place)}: {head.n_units} units of {_A_UNIT[head.unit]}, "
        f"{head.n_pieces} pieces, {hours(head.sound_s)} of sound, about {hours(head.cost_s)} of "
        "processor time"
    )
