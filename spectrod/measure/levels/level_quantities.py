"""Names of level quantities, and what each of them needs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from spectrod.dsp.level_terms import LEVEL_NAME
from spectrod.dsp.weighting import Weighting
from spectrod.lib.errors import ConfigError
from spectrod.lib.suggestions import did_you_mean
from spectrod.measure.levels.time_weighting import TimeWeighting
from spectrod.measure.measurement import INTERVAL_MIN_S
from spectrod.measure.quantity_names import parse_names

Kind = Literal[
    "eq", "exposure", "peak_level", "last", "max", "min", "percentile", "period", "loudness",
    "sample",
]  # fmt: skip
Unit = Literal["level", "exposure", "dB", "dBFS", "dBTP", "FS", "LUFS", "LU"]
"""Units of quantities; "level" and "exposure" follow from the channel's calibration."""

QUANTITIES_DEFAULT = ("LAeq", "LAFmax")
BAND_QUANTITIES_DEFAULT = ("LZeq",)
BAND_RANGE_HZ = (20.0, 20000.0)
"""Default of the first and the last nominal mid-band frequency [Hz]."""
BAND_FORMS = "octave, third-octave, octave/6, octave/12 or octave/24"

PERIODS = ("day", "evening", "night")
_DAY_QUANTITIES = ("Lday", "Levening", "Lnight", "Lden")
_LOUDNESS_UNITS: dict[str, Unit] = {
    "LUFS_M": "LUFS",
    "LUFS_Mmax": "LUFS",
    "LUFS_S": "LUFS",
    "LUFS_Smax": "LUFS",
    "LUFS_I": "LUFS",
    "LRA": "LU",
}
_SAMPLE_UNITS: dict[str, Unit] = {
    "peak": "dBFS",
    "true_peak": "dBTP",
    "rms": "FS",
    "crest": "dB",
    "dc": "FS",
}
_LEAST_S = {"LUFS_I": 0.4, "LRA": 3.0, "Lden": 86400.0}
_LEAST_PERCENTILE_S = 1.0
_OF_DAYS = ": a day; values of shorter intervals are a measurement of their own"
_NAME_MAX = 32

_EXCEEDED = re.compile(r"L(\d{1,2}(?:\.\d{1,3})?)")
_SUMS: dict[str, Kind] = {"eq": "eq", "E": "exposure", "peak": "peak_level"}
_EXAMPLES = (
    *(f"LA{end}" for end in ("eq", "E", "peak", "F", "Fmax", "Fmin", "Smax", "F10")),
    *("LCeq", "LCpeak", "LZeq", "L10", "L50", "L90"),
    *_DAY_QUANTITIES,
    *_LOUDNESS_UNITS,
    *_SAMPLE_UNITS,
)

_WORDS_OF_OTHERS = {
    "leq": "LAeq (A-weighted) or LZeq (unweighted)",
    "laeqt": "LAeq",
    "dba": "LAeq (the average) or LAF (the momentary level, F)",
    "dbc": "LCeq or LCpeak",
    "dbz": "LZeq",
    "sel": "LAE",
    "lae": "LAE",
    "lmax": "LAFmax (F) or LASmax (S)",
    "lamax": "LAFmax (F) or LASmax (S)",
    "lmin": "LAFmin (F) or LASmin (S)",
    "lamin": "LAFmin (F) or LASmin (S)",
    "lpeak": "LCpeak or LZpeak",
    "lpk": "LCpeak or LZpeak",
    "lp": "LAF or LZF",
    "spl": "LZeq or LZF",
    "lufs": "LUFS_I (of all), LUFS_M or LUFS_S",
    "lkfs": "LUFS_I (of all), LUFS_M or LUFS_S",
    "tp": "true_peak",
    "dbtp": "true_peak",
    "ldn": "Lden, or Lday and Lnight",
    "ldnt": "Lden, or Lday and Lnight",
}
"""Names that other instruments use, in small letters without marks, and ours for the same."""

FORMS = (
    "L + A, C or Z + eq, E, peak; or + F, S or I, alone or with max, min or a percentage exceeded "
    "(LAFmax, LAF10); L10 means LAF10; " + ", ".join((*_DAY_QUANTITIES, *_LOUDNESS_UNITS))
    + ", " + ", ".join(_SAMPLE_UNITS)
)  # fmt: skip
"""The names, for help texts."""


@dataclass(frozen=True, slots=True)
class LevelQuantity:
    """One named value of an interval.

    Attributes
    ----------
    name : str
        Its name, such as ``LAFmax``.
    kind : str
        What is computed: the mean square ("eq"), its integral ("exposure"), the largest magnitude
        of the weighted signal ("peak_level"), the last value, the maximum, the minimum or a
        percentile of the time-weighted level, the mean square of a part of the day ("period"),
        loudness, or a property of the samples.
    unit : str
        See ``Unit``.
    weighting : {"A", "C", "Z"}
        Frequency weighting of levels.
    time : {"F", "S", "I"} or None
        Time weighting, if it has one.
    percent : float
        Part of the time for which a percentile is exceeded [%].
    """

    name: str
    kind: Kind
    unit: Unit
    weighting: Weighting = "Z"
    time: TimeWeighting | None = None
    percent: float = 0.0

    @property
    def least_interval_s(self) -> float:
        """Shortest interval that holds the quantity [s]."""
        if self.kind == "percentile":
            return _LEAST_PERCENTILE_S
        return _LEAST_S.get(self.name, INTERVAL_MIN_S)

    @property
    def is_of_all_channels(self) -> bool:
        """Whether its value is one of all channels together."""
        return self.kind == "loudness"


def parse_quantity(name: str) -> LevelQuantity:
    """Return the quantity of a name.

    Raises
    ------
    ConfigError
        If there is none.
    """
    if name in _DAY_QUANTITIES:
        return LevelQuantity(name, "period", "level", "A")
    if name in _LOUDNESS_UNITS:
        return LevelQuantity(name, "loudness", _LOUDNESS_UNITS[name])
    if name in _SAMPLE_UNITS:
        return LevelQuantity(name, "sample", _SAMPLE_UNITS[name])
    exceeded = _EXCEEDED.fullmatch(name)
    if exceeded is not None:
        return LevelQuantity(name, "percentile", "level", "A", "F", _percent(name, exceeded[1]))
    match = LEVEL_NAME.fullmatch(name)
    if match is None or (match["extreme"] and match["percent"]):
        raise ConfigError(
            f"quantity={name!r}: must be a level such as LAeq, LAFmax, L10, LCpeak, LUFS_I, "
            f"true_peak{_hint(name)}"
        )
    return _level(name, match)


def _hint(name: str) -> str:
    """Return what an unknown name probably means, to append to an error."""
    plain = re.sub(r"[^a-z0-9]", "", name[:_NAME_MAX].lower())
    if plain in _WORDS_OF_OTHERS:
        return f"; did you mean {_WORDS_OF_OTHERS[plain]}?"
    return did_you_mean(name, _EXAMPLES)


def _level(name: str, match: re.Match[str]) -> LevelQuantity:
    weighting: Weighting = match["weighting"]  # type: ignore[assignment]  # of the expression
    if match["sum"]:
        unit: Unit = "exposure" if match["sum"] == "E" else "level"
        return LevelQuantity(name, _SUMS[match["sum"]], unit, weighting)
    time: TimeWeighting = match["time"]  # type: ignore[assignment]  # of the expression
    if match["percent"]:
        percent = _percent(name, match["percent"])
        return LevelQuantity(name, "percentile", "level", weighting, time, percent)
    kind: Kind = match["extreme"] or "last"  # type: ignore[assignment]  # of the expression
    return LevelQuantity(name, kind, "level", weighting, time)


def _percent(name: str, text: str) -> float:
    percent = float(text)
    if percent <= 0.0:
        raise ConfigError(f"quantity={name!r}: must name a percentage above 0 and below 100")
    return percent


def parse_quantities(
    names: Sequence[str], interval_s: float, *, days: bool = False
) -> tuple[LevelQuantity, ...]:
    """Return the quantities of an interval, in the given order.

    Parameters
    ----------
    names : sequence of str
        1 to ``QUANTITIES_MAX`` different names.
    interval_s : float
        Length of the interval [s].
    days : bool
        Whether days are measured beside intervals, and have the quantities of days.

    Raises
    ------
    ConfigError
        If a name is unknown or given twice, or the interval is too short for a quantity.
    """
    quantities = parse_names(names, interval_s, parse_quantity)
    for quantity in quantities:
        is_measured = days and quantity.kind == "period"
        if interval_s < quantity.least_interval_s and not is_measured:
            raise ConfigError(
                f"{quantity.name} needs at least {quantity.least_interval_s:g} s"
                f"{_OF_DAYS if quantity.name == 'Lden' else ''}",
                interval_s=interval_s,
            )
    return quantities
