"""Dataset of what a path holds: segments, or a pyramid."""

from pathlib import Path

from xarray import Dataset

from spectrod.formats.dataset.pyramid_dataset import pyramid_dataset
from spectrod.formats.dataset.recording_dataset import recording_dataset
from spectrod.formats.pyramid.pyramid_level import find_pyramid
from spectrod.formats.segment.segment_series import is_segment_name
from spectrod.lib.errors import ConfigError


def stored_dataset(path: Path, *, check: bool, cells: str | None) -> Dataset:
    """Open a pyramid, or a folder with one if no segments lie beside it or cells are named.

    For parameters and errors see ``SpectrodBackend.open_dataset``.
    """
    pyramid = find_pyramid(path)
    if pyramid is not None and (pyramid == path or cells or not _has_segments(path)):
        return pyramid_dataset(pyramid, cells)
    if cells is not None:
        raise ConfigError(f"cells={cells!r}: {path} has no pyramid")
    return recording_dataset(path, check=check)


def _has_segments(folder: Path) -> bool:
    return any(is_segment_name(one) for one in folder.iterdir())
