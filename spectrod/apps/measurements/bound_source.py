"""The source of the command line with the meter that its flags ask for."""

import argparse
from typing import NamedTuple

import msgspec

from spectrod.apps.measurements.local_days import local_days
from spectrod.apps.measurements.measured_source import MeasuredSource, open_measured
from spectrod.apps.measurements.setting_flags import given_settings
from spectrod.lib.errors import ConfigError
from spectrod.measure.levels.levels_config import LevelsConfig
from spectrod.measure.measurement_config import BoundMeter, MeasurementConfig


class BoundSource(NamedTuple):
    """An open source, the settings of its measurement, and what makes its meter."""

    measured: MeasuredSource
    settings: MeasurementConfig
    meter: BoundMeter


def bind(args: argparse.Namespace, defaults: MeasurementConfig) -> BoundSource:
    """Open the source, and bind the settings of the command line to it.

    Raises
    ------
    SpectrodError
        If a flag is wrong, the source cannot be opened, or they do not fit.
    """
    given = given_settings(args, type(defaults))
    measured = open_measured(args)
    if measured.source.is_iq and not defaults.takes_iq:
        what = defaults.title.lower()
        raise ConfigError(f"{args.source}: has pairs of I and Q, which have no {what}")
    measured.check_zone(given.get("time_zone"))
    if isinstance(defaults, LevelsConfig):
        given |= local_days(given, measured)
    given["align"] = measured.align(given.get("align"))
    settings = msgspec.structs.replace(defaults, **given)
    return BoundSource(measured, settings, settings.bind(measured.signals))
