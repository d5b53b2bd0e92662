"""A meter of features of intervals."""

from collections.abc import Sequence

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.measure.features.feature_quantities import parse_features
from spectrod.measure.features.feature_tally import FeatureTally
from spectrod.measure.frame_meter import FrameMeter
from spectrod.measure.intervals import LevelAlign


def feature_meter(  # noqa: PLR0913 - the settings of a meter
    spec: SpectrumSpec,
    names: Sequence[str],
    *,
    interval_s: float,
    align: LevelAlign = "start",
    time_zone: str = "",
    band_hz: tuple[float, float] | None = None,
    spectra: Sequence[str] = (),
    utc_ns: int | None = None,
    first_sample: int = 0,
) -> FrameMeter:
    """Make a meter of features.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the frames: densities of bins, without averaging.
    names : sequence of str
        Names of the features, see ``spectrod.measure.features.feature_quantities``.
    interval_s, align, time_zone, utc_ns, first_sample
        See ``FrameMeter``.
    band_hz, spectra
        See ``FeatureTally``.

    Raises
    ------
    ConfigError
        If a parameter breaks a rule.
    """
    tally = FeatureTally(parse_features(names, interval_s), spec, band_hz, spectra)
    return FrameMeter(
        spec,
        tally,
        interval_s=interval_s,
        align=align,
        time_zone=time_zone,
        utc_ns=utc_ns,
        first_sample=first_sample,
    )
