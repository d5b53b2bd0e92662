"""Descriptions of rows of named values, from the meters that measure them."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

import spectrod
from spectrod.config.measure_settings import FeaturesConfig, FramesConfig, TransferConfig
from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.spectrum import Align, SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.formats.values.value_description import LevelDescription
from spectrod.measure.features.feature_quantities import SPECTRA
from spectrod.measure.features.feature_tally import FeatureTally
from spectrod.measure.interval_row import NamedQuantity
from spectrod.measure.levels import LevelMeter
from spectrod.measure.levels.equalizer import response_notes
from spectrod.measure.transfer.transfer_function import bins_within
from spectrod.measure.transfer.transfer_quantities import SPECTRA_UNITS


class FramesMeter(Protocol):
    """Measures values of frames in intervals."""

    quantities: tuple[NamedQuantity, ...]
    spec: SpectrumSpec
    interval_s: float
    align: Align


@dataclass(frozen=True, slots=True)
class MeasuredSignals:
    """The signals whose values are measured.

    Attributes
    ----------
    source : str
        Description of the source.
    channels : tuple of str
        Names of the channels.
    calibrations : tuple of (ChannelCalibration or None)
        Calibration of each channel.
    has_utc : bool
        Whether the time of the samples is known.
    """

    source: str
    channels: tuple[str, ...]
    calibrations: tuple[ChannelCalibration | None, ...]
    has_utc: bool

    def levels(self, meter: LevelMeter, time_zone: str) -> LevelDescription:
        """Describe sound levels in a time zone; empty without."""
        responses = [one.response if one else None for one in self.calibrations]
        about = self._of(meter.quantities, meter.fs, meter.interval_s, meter.align)
        notes = tuple(response_notes(responses, meter.fs))
        return replace(about, time_zone=time_zone, notes=notes, bands=meter.bands)

    def frames(self, title: str, meter: FramesMeter, settings: FramesConfig) -> LevelDescription:
        """Describe values of frames with these settings."""
        spec = meter.spec
        low_hz, high_hz = settings.limits_hz(spec)
        about = self._of(meter.quantities, spec.fs, meter.interval_s, meter.align)
        return replace(
            about,
            title=title,
            extra={
                "window": spec.window,
                "win_length": spec.win_length,
                "hop": spec.hop,
                "nfft": spec.nfft,
                "low_hz": low_hz,
                "high_hz": high_hz,
                **self._of_pairs(settings),
            },
            spectra=tuple(_spectra(settings)),
            spectra_units=tuple(_spectra(settings).values()),
            frequencies=_frequencies(settings, spec),
        )

    def _of_pairs(self, settings: FramesConfig) -> dict[str, str | float]:
        """Return what else defines transfer functions; nothing for other products."""
        if not isinstance(settings, TransferConfig):
            return {}
        average = {"averaging_s": settings.averaging_s} if settings.averaging_s else {}
        return {
            "reference_channel": settings.reference,  # a number from 0: channels are the responses
            "responses": ", ".join(self.channels),
            "averaging": settings.averaging,
            **average,
            "delay_samples": settings.delay_samples,
        }

    def _of(
        self, quantities: tuple[NamedQuantity, ...], fs: float, interval_s: float, align: str
    ) -> LevelDescription:
        return LevelDescription(
            source=self.source,
            channels=self.channels,
            quantities=quantities,
            calibrations=self.calibrations,
            fs=fs,
            interval_s=interval_s,
            align=align,
            time_zone="",
            has_utc=self.has_utc,
            software=f"spectrod {spectrod.__version__}",
        )


def _spectra(settings: FramesConfig) -> dict[str, str]:
    """Return the units of values of bins by their names."""
    match settings:
        case FeaturesConfig():
            return {name: SPECTRA[name] for name in settings.spectra}
        case TransferConfig():
            return {name: SPECTRA_UNITS[name] for name in settings.spectra}
    return {}


def _frequencies(settings: FramesConfig, spec: SpectrumSpec) -> Float64Array:
    """Return the frequencies of values of bins [Hz]; none without any."""
    if not _spectra(settings):
        return np.empty(0)
    if isinstance(settings, TransferConfig):
        return spec.frequencies[bins_within(spec.frequencies, settings.band_hz(spec))]
    tally = FeatureTally((), spec, settings.band_hz(spec), tuple(_spectra(settings)))
    first = tally.first_bin + (spec.nfft // 2 if spec.iq else 0)
    return spec.bin_frequencies[first : first + tally.n_bins]
