"""Writers of outputs: the options of all, and what starts a file of each content."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectrod.formats.description import Description, RowWriter, SampleWriter
from spectrod.formats.export.export_options import ExportOptions
from spectrod.lib.errors import ConfigError, StorageError, storage_errors
from spectrod.lib.output_formats import format_named, format_of, load, suffixes

if TYPE_CHECKING:
    from spectrod.formats.picture.plan import PicturePlan

_MILLIDECADE = "spectrod.formats.export.millidecade:MillidecadeWriter"


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
        if given is not None and target in given.parents:
            raise ConfigError(f"{path}: must not be a folder that {source} lies in")
        if target.suffix.lower() == ".spd" and given == target.parent:
            raise ConfigError(f"{path}: must not lie in the folder that is read")
        seen.add(target)


def make_folders(paths: Iterable[str]) -> None:
    """Make the folders of outputs that a person has named; raises StorageError."""
    for path in paths:
        folder = Path(path).parent
        if folder.is_file():
            raise StorageError(f"{folder}: must be a folder, it is a file")
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)


def _as_one(path: Path) -> Path:
    """Return one name for both files of a SigMF recording."""
    found = format_named(path.suffix)
    return path if found is None or found.is_one_file else path.with_suffix(found.suffix)


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
    how = format_of(path)
    if plan.picture.view == "spd" and (how.content == "picture" or how.holds_levels):
        from spectrod.formats.longterm.longterm_sink import SpdSink  # noqa: PLC0415

        return SpdSink(path, plan.pictured, plan.picture.options)
    if how.content == "picture":
        picture: RowWriter = load(how.writer)(path, plan)
        return picture
    return make_data(path, plan.data, ExportOptions(**plan.export, is_copy=plan.is_copy))


def make_data(path: Path, description: Description, options: ExportOptions) -> RowWriter:
    """Start a file of spectra in the format of its suffix; raises the errors of ``make_rows``."""
    how = format_of(path)
    if how.content != "rows":
        known = ", ".join(suffixes(lambda one: one.content == "rows"))
        raise ConfigError(f"{path}: suffix must be one of {known}")
    entry_point = how.writer
    # A segment keeps all rows, beside the daily files of a profile.
    if options.profile and not how.recovery:
        if how.suffix != ".nc":
            raise ConfigError(f"{path}: profile={options.profile!r}: must be a .nc file")
        entry_point = _MILLIDECADE
    writer: RowWriter = load(entry_point)(path, description, options)
    return writer


def make_picture(path: Path, plan: Plan) -> RowWriter:
    """Start a picture, or a row of tiles if its width follows from its length."""
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
    from spectrod.formats.sound import SoundOptions  # noqa: PLC0415

    about = plan.data
    options = SoundOptions(
        source=about.source,
        software=about.software,
        is_copy=plan.is_copy,
        has_utc=about.has_utc,
    )
    writer: SampleWriter = load(format_of(path).writer)(path, about.spec, plan.subtype, options)
    return writer
