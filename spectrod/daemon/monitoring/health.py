"""Whether a daemon is well, with the reasons why not. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from spectrod.lib.stats import Stats

UNWRITABLE: Final = ("full", "failed")
"""States of a recording that cannot be written."""
_NOT_READY: Final = ("starting", "waiting", "failed")


def unready_reasons(stats: Sequence[Stats], troubles: Sequence[str]) -> list[str]:
    """Return why a daemon is not ready; empty if every source delivers and records.

    A source that is paused, or has come to its end, is no reason: somebody wanted that.

    Parameters
    ----------
    stats : sequence of Stats
    troubles : sequence of str
        Configured recordings that cannot be written.
    """
    reasons = [
        _line(f"source {one.name}", one.state, one.capture.waiting_for)
        for one in stats
        if one.state in _NOT_READY
    ]
    return [*reasons, *troubles]


def recorder_troubles(recorders: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a text for each configured recording that cannot be written, from its status."""
    return [
        _line(f"recording {one['name']} of {one['source']}", one["state"], one["error"])
        for one in recorders
        if one["state"] in UNWRITABLE
    ]


def _line(what: str, state: str, why: str) -> str:
    return f"{what}: {state}{f': {why}' if why else ''}"
