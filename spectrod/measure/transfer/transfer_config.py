"""Settings of transfer functions; ``default.toml`` describes each key."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from msgspec import Meta

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError
from spectrod.lib.flag import flag
from spectrod.lib.names import check_name
from spectrod.measure.frames_config import FramesConfig, Frequency
from spectrod.measure.measurement import INTERVAL_MAX_S
from spectrod.measure.measurement_config import BoundMeter, IntervalMeter, MeasuredSignals
from spectrod.measure.quantity_names import check_spectra, known_quantities
from spectrod.measure.transfer.transfer_quantities import (
    SPECTRA_UNITS,
    UNITS,
)

if TYPE_CHECKING:
    from spectrod.measure.transfer.transfer_meter import TransferSettings

Averaging = Literal["mean", "exponential"]

TRANSFER_DEFAULT = (
    "delay",
    "level_difference",
    "mean_coherence",
    "significant_coherence",
    "averages",
)
TRANSFER_SPECTRA_DEFAULT = ("coherence", "h1", "h1_phase")
PAIRS_MAX = 64
"""Maximum number of responses of a reference."""
PAIR_VALUES_MAX = 1 << 20
"""Maximum number of values of a frame of a reference and its responses, and of a row's values of
bins of all responses: at most 200 MB of memory."""
DELAY_MAX_SAMPLES = 1 << 16
"""Maximum delay that is removed from a running source [samples]."""

# Modules that compute are imported where they are needed: most configurations have no transfer
# functions.


class TransferConfig(FramesConfig, frozen=True):
    """Transfer functions from a reference to its responses that the daemon publishes."""

    title = "Transfer functions"
    depends_on_channels = True

    low_hz: Annotated[
        Frequency,
        flag(
            "LO",
            "band of the delay, the level difference and the rows of --interval, as 100 4k (all)",
            name="band",
        ),
    ] = 0.0
    reference: Annotated[int, Meta(ge=0), flag("N", "channel of the input (%(default)s)")] = 0
    responses: Annotated[
        tuple[Annotated[int, Meta(ge=0)], ...],
        flag(
            "N,...",
            "channel of the output, or with --interval several (%(default)s)",
            name="response",
        ),
    ] = ()
    """Channels of the responses; none named: all but the reference."""
    quantities: Annotated[
        tuple[str, ...], flag("NAME,...", f"{', '.join(UNITS)} (%(default)s)", name="quantity")
    ] = TRANSFER_DEFAULT
    spectra: Annotated[
        tuple[str, ...],
        flag(
            "NAME,...",
            f"values of each bin, in .nc, .h5 and .parquet: {', '.join(SPECTRA_UNITS)} (none)",
        ),
    ] = TRANSFER_SPECTRA_DEFAULT
    averaging: Annotated[
        Averaging,
        flag(
            "",
            "over the frames of an interval, or over all frames (%(default)s)",
            choices=get_args(Averaging),
        ),
    ] = "mean"
    averaging_s: Annotated[
        float,
        Meta(ge=0, le=INTERVAL_MAX_S),
        flag("TIME", "time constant of an exponential average"),
    ] = 0.0
    """Time constant of an exponential average [s]; 0 for a mean."""
    delay_samples: Annotated[
        int,
        Meta(ge=-DELAY_MAX_SAMPLES, le=DELAY_MAX_SAMPLES),
        flag("N", "delay of the responses that is removed first (%(default)s)"),
    ] = 0
    """Delay of the responses that is removed first [samples]."""

    def check(
        self, fs: float | None = None, channels: int | None = None, *, iq: bool = False
    ) -> None:
        """Check what can be checked without the source; see ``MeasurementConfig``."""
        check_name("name of transfer functions", self.name)
        self.check_intervals()
        known_quantities(self.quantities, self.interval_s, UNITS)
        check_spectra(self.spectra, SPECTRA_UNITS)
        self._check_averaging()
        self._check_responses()
        if iq:
            raise ConfigError(
                "I/Q samples have no transfer functions; name other sources", sources=...
            )
        if channels is not None:
            self.pairs(channels)
        if fs is not None:
            self.pair_spec(fs, max(2, channels or 1 + len(self.responses)))

    def pairs(self, channels: int) -> tuple[int, ...]:
        """Return the channel of the reference and of each response; raises ConfigError."""
        if channels < 2:
            raise ConfigError(
                "a source of 1 channel has no transfer functions; name sources of two or more",
                sources=...,
            )
        for key, values in (("reference", (self.reference,)), ("responses", self.responses)):
            for value in values:
                if value >= channels:
                    raise ConfigError(
                        f"{key}={value}: must be a channel from 0 to {channels - 1} of the source",
                        key,
                    )
        all_others = tuple(one for one in range(channels) if one != self.reference)
        found = self.responses or all_others
        if len(found) > PAIRS_MAX:
            raise ConfigError(f"{len(found)} channels: must be at most {PAIRS_MAX}", responses=...)
        return self.reference, *found

    def pair_spec(self, fs: float, channels: int) -> SpectrumSpec:
        """Return the definition of the frames of a reference and its responses.

        Parameters
        ----------
        fs : float
            Sample rate [Hz].
        channels : int
            Number of channels of the source.

        Raises
        ------
        ConfigError
            If a rule is broken.
        """
        n = len(self.responses) or min(channels - 1, PAIRS_MAX)
        spec = self.spec(fs, 1 + n)
        frames_s = (spec.win_length + spec.hop) / fs
        if self.averaging == "mean" and self.interval_s < frames_s:
            raise ConfigError(
                f"must hold two frames, {frames_s:g} s: the coherence of one is always 1",
                interval_s=self.interval_s,
            )
        if self.averaging == "exponential" and self.averaging_s * fs < spec.hop:
            raise ConfigError(
                f"must be at least hop={spec.hop} of {spec.hop / fs:g} s",
                "hop",
                averaging_s=self.averaging_s,
            )
        self._check_size(spec)
        return spec

    def bind(self, signals: MeasuredSignals) -> BoundMeter:
        """Bind to the signals of a source; rows are of the responses.

        Raises
        ------
        ConfigError
            If the source does not have the channels, or their units differ.
        """
        from spectrod.measure.transfer.calibrated import common_unit  # noqa: PLC0415
        from spectrod.measure.transfer.transfer_function import bins_within  # noqa: PLC0415
        from spectrod.measure.transfer.transfer_meter import TransferSettings  # noqa: PLC0415

        n_channels = len(signals.channels)
        self.check(signals.fs, n_channels, iq=signals.is_iq)
        channels = self.pairs(n_channels)
        spec = self.pair_spec(signals.fs, n_channels)
        names = [signals.channels[one] for one in channels]
        calibrations = tuple(signals.calibrations[one] for one in channels)
        for name, one in zip(names[1:], calibrations[1:], strict=True):
            try:
                common_unit([calibrations[0], one])
            except ConfigError as error:
                raise ConfigError(f"{names[0]}, {name}: {error}") from error
        band_hz = self.band_hz(spec)
        settings = TransferSettings(
            channels,
            n_channels,
            self.quantities,
            self.spectra,
            self.averaging_s,
            band_hz,
            self.delay_samples,
            calibrations,
        )
        units = {name: SPECTRA_UNITS[name] for name in self.spectra}
        chosen = bins_within(spec.frequencies, band_hz)
        reference = calibrations[0]
        fields = self.header_fields(spec) | {
            "reference": names[0],
            "reference_cal_id": None if reference is None else reference.cal_id,
            "averaging": self.averaging,
            "averaging_s": self.averaging_s or None,
            "delay_samples": self.delay_samples,
        }
        of_bins = {
            "spectra": self.spectra,
            "spectra_units": tuple(units.values()),
            "first_bin": chosen.start,
            "n_bins": chosen.stop - chosen.start,
        }
        return BoundMeter(
            replace(signals, channels=tuple(names[1:]), calibrations=calibrations[1:]),
            partial(self._open, spec, settings),
            self.facts(
                spec,
                self._attributes(names[1:]),
                units,
                spec.frequencies[chosen] if units else None,
            ),
            fields | of_bins if units else fields,
        )

    def _attributes(self, responses: Sequence[str]) -> dict[str, str | float]:
        average = {"averaging_s": self.averaging_s} if self.averaging_s else {}
        return {
            "reference_channel": self.reference,  # a number from 0: channels are the responses
            "responses": ", ".join(responses),
            "averaging": self.averaging,
            **average,
            "delay_samples": self.delay_samples,
        }

    def _open(
        self, spec: SpectrumSpec, settings: "TransferSettings", first_sample: int
    ) -> IntervalMeter:
        from spectrod.measure.transfer.transfer_meter import transfer_meter  # noqa: PLC0415

        return transfer_meter(
            spec,
            settings,
            interval_s=self.interval_s,
            align=self.align,
            time_zone=self.time_zone,
            first_sample=first_sample,
        )

    def _check_averaging(self) -> None:
        if (self.averaging == "exponential") != (self.averaging_s > 0.0):
            rule = "above 0 with averaging='exponential', and 0 with 'mean'"
            raise ConfigError(f"must be {rule}", "averaging", averaging_s=self.averaging_s)

    def _check_responses(self) -> None:
        if len(self.responses) > PAIRS_MAX:
            n = len(self.responses)
            raise ConfigError(f"{n} channels: must be at most {PAIRS_MAX}", responses=...)
        for value in self.responses:
            if value == self.reference:
                raise ConfigError("must be another channel than reference", responses=value)
            if self.responses.count(value) > 1:
                raise ConfigError("is given twice", responses=value)

    def _check_size(self, spec: SpectrumSpec) -> None:
        from spectrod.measure.transfer.transfer_function import bins_within  # noqa: PLC0415

        chosen = bins_within(spec.frequencies, self.band_hz(spec))
        n_table = (spec.channels - 1) * len(self.spectra) * (chosen.stop - chosen.start)
        n = max(n_table, spec.channels * spec.n_bins)
        if n > PAIR_VALUES_MAX:
            raise ConfigError(
                f"{spec.channels - 1} responses, win_length={spec.win_length}: {n} values of bins; "
                f"must be at most {PAIR_VALUES_MAX}",
                "win_length",
            )
