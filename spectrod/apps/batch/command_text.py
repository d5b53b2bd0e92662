"""Texts that the commands of ``spectrod batch`` share."""

from collections.abc import Sequence

from spectrod.apps.batch.run import UnitStatus
from spectrod.lib.text import printable

LISTED_MAX = 20
"""Most findings and failed units that are printed without ``--all``."""


def hours(seconds: float) -> str:
    """Return a duration in hours, or in seconds below one."""
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds:.0f} s"


def print_some(lines: Sequence[str], *, is_all: bool, command: str) -> None:
    """Print the first lines, and how many more ``command --all`` lists."""
    shown = lines if is_all else lines[:LISTED_MAX]
    for line in shown:
        print(printable(line))
    if len(lines) > len(shown):
        print(f"and {len(lines) - len(shown)} more ({command} --all lists them)")


def counted(statuses: Sequence[UnitStatus]) -> str:
    """Return how many units are in each state, and what was computed of them how fast."""
    counts = {
        state: sum(one.state == state for one in statuses)
        for state in ("done", "partial", "failed", "waiting")
    }
    text = ", ".join(f"{n} {state}" for state, n in counts.items() if n) or "none"
    records = [one.record for one in statuses if one.record is not None and one.record.is_computed]
    processor_s = sum(one.costs.processor_s for one in records)
    sound_s = sum(one.read_samples / one.fs for one in records)
    speed = f", {sound_s / processor_s:.0f} x real time of a core" if processor_s else ""
    return f"units: {text} of {len(statuses)}; {hours(sound_s)} of sound{speed}"
