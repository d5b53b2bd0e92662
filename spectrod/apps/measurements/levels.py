"""``spectrod levels``: measures sound levels in the time domain."""

import argparse

from spectrod.apps.measurements import intervals
from spectrod.measure.levels.levels_config import LevelsConfig

_SETTINGS = LevelsConfig("levels")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    intervals.add_arguments(parser, _SETTINGS)


def run(args: argparse.Namespace) -> int:
    """Measure to the end of the source or of the duration, or until Ctrl-C."""
    return intervals.run(args, _SETTINGS)
