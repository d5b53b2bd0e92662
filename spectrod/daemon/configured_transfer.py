"""Transfer functions of a source, as the configuration defines them."""

from collections.abc import Sequence
from typing import Any

from spectrod.config.measure_settings import TransferConfig
from spectrod.dsp.calibration import ChannelCalibration
from spectrod.lib.errors import ConfigError
from spectrod.measure.transfer.calibrated import common_unit
from spectrod.measure.transfer.transfer_function import bins_within
from spectrod.measure.transfer.transfer_meter import (
    TransferIntervalMeter,
    TransferSettings,
    transfer_meter,
)
from spectrod.measure.transfer.transfer_quantities import SPECTRA_UNITS


class ConfiguredTransfer:
    """The pairs of one table of transfer functions of a source.

    Parameters
    ----------
    config : TransferConfig
    fs : float
        Sample rate [Hz].
    names : sequence of str
        Name of each channel of the source.
    calibrations : sequence of (ChannelCalibration or None)
        Calibration of each channel.
    iq : bool
        Whether each two channels are I and Q.

    Attributes
    ----------
    spec : SpectrumSpec
        Definition of the frames of the reference and the responses.
    names : tuple of str
        Name of the channel of each response.
    calibrations : tuple of (ChannelCalibration or None)
        Calibration of each response.

    Raises
    ------
    ConfigError
        If the source does not have the channels, or their units differ.
    """

    def __init__(
        self,
        config: TransferConfig,
        fs: float,
        names: Sequence[str],
        calibrations: Sequence[ChannelCalibration | None],
        *,
        iq: bool,
    ) -> None:
        config.check(fs, len(names), iq=iq)
        self._config = config
        self._channels = config.pairs(len(names))
        self.spec = config.pair_spec(fs, len(names))
        self._reference = names[config.reference]
        self.names = tuple(names[one] for one in self._channels[1:])
        self._all = tuple(calibrations[one] for one in self._channels)
        self.calibrations = self._all[1:]
        for name, one in zip(self.names, self.calibrations, strict=True):
            try:
                common_unit([self._all[0], one])
            except ConfigError as error:
                raise ConfigError(f"{self._reference}, {name}: {error}") from error
        self._settings = TransferSettings(
            self._channels,
            len(names),
            config.quantities,
            config.spectra,
            config.averaging_s,
            config.band_hz(self.spec),
            config.delay_samples,
            self._all,
        )

    def open(self, first_sample: int) -> TransferIntervalMeter:
        """Make a meter from the index of its first sample."""
        return transfer_meter(
            self.spec,
            self._settings,
            interval_s=self._config.interval_s,
            align=self._config.align,
            first_sample=first_sample,
        )

    @property
    def constants(self) -> dict[str, Any]:
        """The fields of headers that define the pairs, the averages and the values of bins."""
        config, reference = self._config, self._all[0]
        found: dict[str, Any] = {
            "reference": self._reference,
            "reference_cal_id": None if reference is None else reference.cal_id,
            "averaging": config.averaging,
            "averaging_s": config.averaging_s or None,
            "delay_samples": config.delay_samples,
        }
        if not config.spectra:
            return found
        chosen = bins_within(self.spec.frequencies, config.band_hz(self.spec))
        return found | {
            "spectra": config.spectra,
            "spectra_units": tuple(SPECTRA_UNITS[name] for name in config.spectra),
            "first_bin": chosen.start,
            "n_bins": chosen.stop - chosen.start,
        }
