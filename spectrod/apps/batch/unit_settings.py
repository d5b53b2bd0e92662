"""What the products of a unit have in common: signals, calibrations and names."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import spectrod
from spectrod.apps.batch.job import Deployment, Job
from spectrod.apps.batch.plan import Unit
from spectrod.apps.batch.result_paths import result_path
from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.description import Description
from spectrod.lib.names import name_channels
from spectrod.measure.measurement_config import MeasuredSignals
from spectrod.source.files.speakers import find_speakers

SOFTWARE = f"spectrod {spectrod.__version__}"


@dataclass(frozen=True, slots=True)
class UnitSettings:
    """What the products of a unit have in common.

    Attributes
    ----------
    job : Job
    deployment : Deployment
    unit : Unit
    signals : tuple of str
        Names of the analysed channels.
    calibrations : tuple of (ChannelCalibration or None)
        Calibration of each of them; empty without.
    """

    job: Job
    deployment: Deployment
    unit: Unit
    signals: tuple[str, ...]
    calibrations: tuple[ChannelCalibration | None, ...]

    @property
    def fs(self) -> float:
        """Sample rate [Hz]."""
        return self.unit.fs

    @property
    def measured(self) -> MeasuredSignals:
        """The analysed channels, for tables of measurements."""
        calibrations = self.calibrations or (None,) * len(self.signals)
        return MeasuredSignals(self.deployment.name, self.fs, self.signals, calibrations)

    @property
    def speakers(self) -> tuple[str, ...]:
        """Speakers of the analysed channels, by the first file; empty if unknown."""
        found = find_speakers(self.unit.pieces[0].path) if self.unit.pieces else ()
        numbers = self.deployment.select or range(self.unit.channels)
        return tuple(found[k] for k in numbers) if len(found) == self.unit.channels else ()

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes of data files: the operator's, and times that depend on the inputs alone.

        So the same inputs give the same bytes: a file is dated by its newest input.
        """
        newest_ns = max((piece.mtime_ns for piece in self.unit.pieces), default=0)
        dated = f"{np.datetime64(newest_ns // NS_PER_S, 's')}Z"
        return {
            "history": f"computed by {SOFTWARE} from files of {dated} and before",
            "date_created": dated,
            **self.job.attributes,
            **self.deployment.site.attributes,
        }

    def path(self, folder: Path, suffix: str) -> Path:
        """Return the path of a file of the unit in a folder."""
        return folder / f"{self.deployment.name}_{self.unit.name}{suffix}"

    def result_path(self, product: str, name: str) -> str:
        """Return the path of a file of the unit in the results."""
        return result_path(self.job.layout, product, self.deployment.name, self.unit.name, name)

    def describe(self, spec: SpectrumSpec) -> Description:
        """Describe rows of a spec."""
        about = Description(spec, self.deployment.name, self.signals, SOFTWARE)
        return replace(about, attributes=self.attributes)


def settings_of(job: Job, unit: Unit) -> UnitSettings:
    """Return the settings of a unit.

    Raises
    ------
    ConfigError
        If channels, their names or the calibration do not fit the files.
    """
    from spectrod.config.config import SourceConfig  # noqa: PLC0415
    from spectrod.dsp.calibration import calibration_of  # noqa: PLC0415
    from spectrod.source.channels import select_channels  # noqa: PLC0415

    one = job.deployment(unit.deployment)
    selected = select_channels(SourceConfig(select=one.select), unit.channels)
    names = name_channels(one.channel_names, len(selected))
    calibrations = calibration_of(
        one.calibration or None, len(selected), one.channel_names, one.select
    )
    return UnitSettings(job, one, unit, names, calibrations)
