"""Output formats by suffix; the writer of a format is imported when needed."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from spectrod.errors import ConfigError
from spectrod.formats.description import Description, RowWriter, SampleWriter
from spectrod.suggestions import did_you_mean

if TYPE_CHECKING:
    from spectrod.formats.picture.plan import PicturePlan

Kind = Literal["picture", "rows", "samples"]

_SUFFIXES: dict[Kind, tuple[str, ...]] = {
    "picture": (".png", ".jpg", ".jpeg", ".webp", ".pgm", ".svg", ".pdf"),
    "rows": (".spd", ".nc", ".h5", ".zarr", ".npz", ".npy", ".csv"),
    "samples": (".wav", ".flac", ".sigmf-meta", ".sigmf-data"),
}
KINDS: dict[str, Kind] = {one: kind for kind, known in _SUFFIXES.items() for one in known}
"""Kind of each suffix, in lower case."""

_SIGMF = (".sigmf-meta", ".sigmf-data")
"""The two files of a SigMF recording; either name stands for both."""

_OF_LEVELS = (".npz", ".csv")
"""Data files that hold level statistics if the view is "spd"."""


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """Return what a file of this name contains.

    Raises
    ------
    ConfigError
        If its suffix is unknown; the text lists the known ones.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in KINDS:
        rule = f"suffix must be one of {', '.join(KINDS)}{did_you_mean(suffix, KINDS)}"
        raise ConfigError(f"{os.fspath(path)}: {rule}")
    return KINDS[suffix]


def check_outputs(paths: list[str], source: Path | None = None) -> None:
    """Check that each output has its own file and none is the input; raises ConfigError."""
    seen = set()
    given = _as_one(source.resolve()) if source else None
    for path in paths:
        target = _as_one(Path(path).resolve())
        if target in seen:
            raise ConfigError(f"{path}: must be named once")
        if given in (target, target.with_name(target.name + ".part")):
            raise ConfigError(f"{path}: must be another file than the one that is read")
        if target.suffix.lower() == ".spd" and given == target.parent:
            raise ConfigError(f"{path}: must not lie in the folder that is read")
        seen.add(target)


def _as_one(path: Path) -> Path:
    """Return one name for both files of a SigMF recording."""
    return path.with_suffix(_SIGMF[0]) if path.suffix.lower() in _SIGMF else path


@dataclass(frozen=True, slots=True)
class Plan:
    """Content and options of outputs.

    Attributes
    ----------
    pictured, data : Description
        Descriptions of the rows in pictures and in data files.
    picture : PicturePlan
        Plan of pictures.
    subtype : str
        Sample format of sound files, see ``SoundWriter``.
    export : dict
        Options of data files, by the names of ``ExportOptions``.
    is_copy : bool
        Whether the rows also exist elsewhere, so that aborted segments can be deleted.
    """

    pictured: Description
    data: Description
    picture: "PicturePlan"
    subtype: str = ""
    export: dict[str, Any] = field(default_factory=dict)
    is_copy: bool = False


def make_rows(path: Path, plan: Plan) -> RowWriter:
    """Start a picture or a file of spectra.

    Raises
    ------
    ConfigError
        If the suffix is not one of these, or the plan does not match it.
    StorageError
        If no file can be made at this path.
    UnavailableError
        If the format needs a package that is not installed.
    """
    is_picture = kind_of(path) == "picture"
    if plan.picture.view == "spd" and (is_picture or path.suffix.lower() in _OF_LEVELS):
        from spectrod.formats.longterm.sink import SpdSink  # noqa: PLC0415

        return SpdSink(path, plan.pictured, plan.picture.options)
    if is_picture:
        return _make_picture(path, plan)
    if path.suffix.lower() == ".spd":
        from spectrod.formats.segment.writer import SegmentWriter  # noqa: PLC0415

        return SegmentWriter(path, plan.data, is_copy=plan.is_copy)
    from spectrod.formats.export import make_export  # noqa: PLC0415
    from spectrod.formats.export.options import ExportOptions  # noqa: PLC0415

    return make_export(path, plan.data, ExportOptions(**plan.export))


def _make_picture(path: Path, plan: Plan) -> RowWriter:
    how, about = plan.picture, plan.pictured
    if how.seconds_per_pixel:
        from spectrod.formats.picture.tiles import TiledPicture  # noqa: PLC0415

        return TiledPicture(path, how, about.spec, about.software)
    from spectrod.formats.picture.sink import PictureSink  # noqa: PLC0415

    made = PictureSink(path, how.options, how.paint, about.spec, about.software)
    made.origin_sample = how.origin_sample
    return made


def make_samples(path: Path, plan: Plan) -> SampleWriter:
    """Start a sound file or a SigMF recording; raises the errors of ``make_rows``."""
    from spectrod.formats.sound import SoundOptions, SoundWriter  # noqa: PLC0415

    about = plan.data
    options = SoundOptions(
        source=about.source,
        software=about.software,
        is_copy=plan.is_copy,
        has_utc=about.has_utc,
    )
    if path.suffix.lower() in _SIGMF:
        from spectrod.formats.sound.sigmf import SigmfWriter  # noqa: PLC0415

        return SigmfWriter(path, about.spec, plan.subtype, options)
    return SoundWriter(path, about.spec.fs, about.spec.channels, plan.subtype, options)
