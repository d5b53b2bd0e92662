"""Checks the tables of a job against the rates and channels of its files, before all units."""

from collections import Counter
from collections.abc import Iterator, Sequence

from spectrod.apps.batch.job import Job, ProductName
from spectrod.apps.batch.plan import Unit
from spectrod.apps.batch.products import check_product
from spectrod.apps.batch.unit_settings import UnitSettings, settings_of
from spectrod.lib.errors import ConfigError, SettingsError


def check_settings(job: Job, units: Sequence[Unit]) -> None:
    """Check that each product of a job can be made of most units of each deployment.

    The rate and the channels that most units of a deployment have count: a day of others fails by
    itself, and does not keep the rest from being computed.

    Parameters
    ----------
    job : Job
    units : sequence of Unit
        Of its plan; those that the plan refuses do not count.

    Raises
    ------
    ConfigError
        If not; it has a line for each deployment and product, with the rate, value and rule.
    """
    lines: list[str] = []
    for deployment in job.deployments:
        own = [one for one in units if one.deployment == deployment.name and not one.refused]
        layouts = Counter((one.fs, one.channels) for one in own)
        for layout, _ in layouts.most_common(1):
            unit = next(one for one in own if (one.fs, one.channels) == layout)
            where = f"deployments.{deployment.name}, {unit.fs:g} Hz"
            lines += (f"{where}: {mistake}" for mistake in _mistakes(job, unit))
    if lines:
        raise SettingsError(lines)


def _mistakes(job: Job, unit: Unit) -> Iterator[str]:
    try:
        settings = settings_of(job, unit)
    except ConfigError as error:
        yield str(error)
        return
    for product in job.products:
        yield from _mistakes_of(settings, product)


def _mistakes_of(settings: UnitSettings, product: ProductName) -> Iterator[str]:
    try:
        check_product(settings, product)
    except ConfigError as error:
        yield from (f"{product}: {line}" for line in error.lines)
