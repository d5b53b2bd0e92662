"""Settings of features; ``default.toml`` describes each key."""

from functools import partial
from typing import Annotated

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.flag import flag
from spectrod.lib.names import check_name
from spectrod.measure.features.feature_quantities import (
    FORMS,
    SPECTRA,
    parse_features,
)
from spectrod.measure.frames_config import FramesConfig, Frequency
from spectrod.measure.measurement_config import BoundMeter, Cuts, IntervalMeter, MeasuredSignals
from spectrod.measure.quantity_names import check_spectra

FEATURES_DEFAULT = ("centroid", "spread", "rolloff", "flatness", "entropy", "flux")

# Modules that compute are imported where they are needed: most configurations have no features.


class FeaturesConfig(FramesConfig, frozen=True):
    """Features that the daemon publishes."""

    title = "Spectral features"

    low_hz: Annotated[
        Frequency,
        flag(
            "LO",
            "band that counts, as 200 10k, but for indices whose names have their own (all)",
            name="band",
        ),
    ] = 0.0
    quantities: Annotated[
        tuple[str, ...], flag("NAME,...", f"{FORMS} (%(default)s)", name="quantity")
    ] = FEATURES_DEFAULT
    spectra: Annotated[
        tuple[str, ...],
        flag(
            "NAME,...", f"values of each bin, in .nc, .h5 and .parquet: {', '.join(SPECTRA)} (none)"
        ),
    ] = ()

    @property
    def cuts(self) -> Cuts:
        """See ``MeasurementConfig``."""
        return "intervals"

    def check(
        self, fs: float | None = None, channels: int | None = None, *, iq: bool = False
    ) -> None:
        """Check what can be checked without the source; see ``MeasurementConfig``."""
        from spectrod.measure.features.feature_tally import FeatureTally  # noqa: PLC0415

        check_name("name of features", self.name)
        self.check_intervals()
        quantities = parse_features(self.quantities, self.interval_s)
        check_spectra(self.spectra, SPECTRA)
        if fs is not None:
            spec = self.spec(fs, channels or (2 if iq else 1), iq=iq)
            FeatureTally(quantities, spec, self.band_hz(spec), self.spectra)

    def bind(self, signals: MeasuredSignals) -> BoundMeter:
        """Bind to the signals of a source; raises ConfigError if they do not fit."""
        spec = self.spec_of(signals)
        if not self.spectra:
            return BoundMeter(
                signals, partial(self._open, spec), self.facts(spec), self.header_fields(spec)
            )
        from spectrod.measure.features.feature_tally import FeatureTally  # noqa: PLC0415

        tally = FeatureTally((), spec, self.band_hz(spec), self.spectra)
        first = tally.first_bin + (spec.nfft // 2 if spec.iq else 0)
        units = {name: SPECTRA[name] for name in self.spectra}
        frequencies = spec.bin_frequencies[first : first + tally.n_bins]
        of_bins = {
            "spectra": self.spectra,
            "spectra_units": tuple(units.values()),
            "first_bin": tally.first_bin,
            "n_bins": tally.n_bins,
            "center_frequency_hz": spec.center_frequency_hz,
        }
        return BoundMeter(
            signals,
            partial(self._open, spec),
            self.facts(spec, spectra=units, frequencies=frequencies),
            self.header_fields(spec) | of_bins,
        )

    def _open(self, spec: SpectrumSpec, first_sample: int) -> IntervalMeter:
        from spectrod.measure.features.feature_meter import feature_meter  # noqa: PLC0415

        return feature_meter(
            spec,
            self.quantities,
            interval_s=self.interval_s,
            align=self.align,
            time_zone=self.time_zone,
            band_hz=self.band_hz(spec),
            spectra=self.spectra,
            first_sample=first_sample,
        )
