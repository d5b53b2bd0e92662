"""``spectrod features``: measures features of spectra and acoustic indices of intervals."""

import argparse

from spectrod.apps.measurements import intervals
from spectrod.measure.features.features_config import FeaturesConfig

_SETTINGS = FeaturesConfig("features")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    intervals.add_arguments(parser, _SETTINGS)


def run(args: argparse.Namespace) -> int:
    """Measure to the end of the source or of the duration, or until Ctrl-C."""
    return intervals.run(args, _SETTINGS)
