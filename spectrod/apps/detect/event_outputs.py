"""Files of each event: its sound, and its picture."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from spectrod.apps.detect.clips import write_clip
from spectrod.apps.detect.event_folder import EventFolder, EventNames
from spectrod.apps.detect.excerpt import Excerpt
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError
from spectrod.measure.triggers.detection import Detection
from spectrod.source.open_source import Source

if TYPE_CHECKING:
    from spectrod.apps.detect.pictures import EventPictures

_MARGIN_MAX_S = 3600.0


@dataclass(frozen=True, slots=True)
class EventOutputs:
    """What is written of each event, alike for all sources.

    Attributes
    ----------
    clips, pictures : EventFolder or None
        Where they go; None for none.
    margin_s : float
        Sound before and after the event in both, at most an hour [s].
    time_zone : str
        Of the time axes of pictures; empty: UTC.
    names : EventNames
        Names of the files.

    Raises
    ------
    ConfigError
        If the margin is too long.
    """

    clips: EventFolder | None
    pictures: EventFolder | None
    margin_s: float
    time_zone: str = ""
    names: EventNames = field(default_factory=EventNames)

    def __post_init__(self) -> None:
        if self.margin_s > _MARGIN_MAX_S:
            rule = f"must be at most {_MARGIN_MAX_S:g} s"
            raise ConfigError(f"--margin {self.margin_s:g}: {rule}")

    def make_folders(self) -> None:
        """Make the folders, also if there was no event; raises StorageError."""
        for folder in filter(None, (self.clips, self.pictures)):
            folder.made()


def folder_of(path: str | None) -> EventFolder | None:
    """Return the folder that an option names; None without the option."""
    return None if path is None else EventFolder(Path(path))


class SourceOutputs:
    """What is written of each event of a source.

    Parameters
    ----------
    outputs : EventOutputs
        Where the files go.
    reopen : callable
        Returns the source, which has not been started.
    spec : SpectrumSpec
        Its analysis.
    channels : sequence of str
        Name of each signal.

    Raises
    ------
    ConfigError
        If a picture cannot show these spectra.
    """

    def __init__(
        self,
        outputs: EventOutputs,
        reopen: Callable[[], Source],
        spec: SpectrumSpec,
        channels: Sequence[str],
    ) -> None:
        self._outputs, self._reopen = outputs, reopen
        self._pictures: EventPictures | None = None
        if outputs.pictures is not None:
            from spectrod.apps.detect import pictures  # noqa: PLC0415 - it loads what draws

            self._pictures = pictures.EventPictures(
                outputs.pictures, spec, channels, outputs.time_zone
            )

    def write(self, one: Detection) -> None:
        """Write the files of an event.

        Raises
        ------
        InputError
            If the source cannot be read any more.
        StorageError
            If a file cannot be written.
        """
        name = self._outputs.names.next(one)
        if self._outputs.clips is not None:
            write_clip(self._outputs.clips, name, self._excerpt(one), has_utc=one.has_utc)
        if self._pictures is not None:
            self._pictures.write(one, name, self._excerpt(one))

    def _excerpt(self, one: Detection) -> Excerpt:
        return Excerpt(one, self._outputs.margin_s, self._reopen())
