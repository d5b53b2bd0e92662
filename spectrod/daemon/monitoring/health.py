"""Whether a daemon is well, with the reasons why not. Pure."""

from collections.abc import Sequence
from typing import Final

from spectrod.lib.stats import Stats

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
    reasons = [_reason(one) for one in stats if one.state in _NOT_READY]
    return [*reasons, *troubles]


def _reason(one: Stats) -> str:
    why = one.capture.waiting_for
    return f"source {one.name}: {one.state}{f': {why}' if why else ''}"
