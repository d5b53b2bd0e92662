"""The time zones that the file of a job says: those of its recorders, and that of its tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spectrod.apps.web.archive.archive_index import topic_name
from spectrod.lib.time_zones import find_zone

_TABLES: Final = ("picture", "levels", "features", "detect")
"""Tables of a job that have a zone, in this order."""


@dataclass(frozen=True, slots=True)
class JobZones:
    """Time zones of sources, names of the IANA database.

    Attributes
    ----------
    usual : str
        Zone of sources that have none of their own; empty: none is known.
    own : mapping of str to str
        Zone of a source by its name in topics.
    """

    usual: str = ""
    own: Mapping[str, str] = field(default_factory=dict)

    def of(self, source: str) -> str:
        """Return the zone of a source; empty: none is known."""
        return self.own.get(source, self.usual)


def job_zones(job: Mapping[str, Any]) -> JobZones:
    """Return the zones that a job says.

    Parameters
    ----------
    job : mapping
        Its file, parsed; other keys, and values of other types, are left alone.

    Raises
    ------
    ConfigError
        If a zone is not in this machine's database.
    """
    found = [zone for name in _TABLES if (zone := _zone(job.get(name), name))]
    deployments = job.get("deployments")
    named = deployments.items() if isinstance(deployments, dict) else ()
    own = {topic_name(name): _zone(table, f"deployments.{name}") for name, table in named}
    return JobZones(found[0] if found else "", {name: zone for name, zone in own.items() if zone})


def _zone(table: object, name: str) -> str:
    zone = table.get("time_zone") if isinstance(table, dict) else None
    return find_zone(zone, f"{name}.time_zone").key if isinstance(zone, str) and zone else ""
