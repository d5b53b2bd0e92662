"""A meter of tones of intervals, and of their tracks."""

from collections.abc import Sequence

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.measure.frame_meter import FrameMeter
from spectrod.measure.intervals import LevelAlign
from spectrod.measure.quantity_names import known_quantities
from spectrod.measure.tones.tone_quantities import UNITS
from spectrod.measure.tones.tone_tally import ToneSettings, ToneTally


def tone_meter(  # noqa: PLR0913 - the settings of a meter
    spec: SpectrumSpec,
    names: Sequence[str],
    *,
    interval_s: float,
    align: LevelAlign = "start",
    time_zone: str = "",
    settings: ToneSettings | None = None,
    utc_ns: int | None = None,
    first_sample: int = 0,
    next_identity: list[int] | None = None,
) -> FrameMeter:
    """Make a meter of tones.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the frames: densities of bins, without averaging.
    names : sequence of str
        Names of the values, see ``spectrod.measure.tones.tone_quantities``.
    interval_s, align, time_zone, utc_ns, first_sample
        See ``FrameMeter``.
    settings, next_identity
        See ``ToneTally``.

    Raises
    ------
    ConfigError
        If a parameter breaks a rule.
    """
    quantities = known_quantities(names, interval_s, UNITS)
    tally = ToneTally(quantities, spec, interval_s, settings or ToneSettings(), next_identity)
    return FrameMeter(
        spec,
        tally,
        interval_s=interval_s,
        align=align,
        time_zone=time_zone,
        utc_ns=utc_ns,
        first_sample=first_sample,
    )
