"""The engine ``spectrod`` of ``xarray.open_dataset``.

xarray loads it by its entry point, also for files of others: so it imports no more of spectrod than
it needs to know its files.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from xarray import Dataset, decode_cf
from xarray.backends import BackendEntrypoint

_SUFFIXES = (".spd", ".spd.part")


class SpectrodBackend(BackendEntrypoint):
    """Opens a recording of spectra; values are read when they are used."""

    description: ClassVar[str] = "Open spectrod's .spd, folders of them, and pyramids"

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return whether a name is that of a segment; a folder needs ``engine="spectrod"``."""
        return isinstance(filename_or_obj, str | os.PathLike) and str(
            filename_or_obj
        ).lower().endswith(_SUFFIXES)

    def open_dataset(  # type: ignore[override]  # noqa: PLR0913  # the arguments that xarray has
        self,
        filename_or_obj: str | os.PathLike[Any],
        *,
        drop_variables: str | Iterable[str] | None = None,
        mask_and_scale: bool = True,
        decode_times: Any = True,
        concat_characters: bool = True,
        decode_coords: Any = True,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        check: bool = False,
        cells: str | None = None,
    ) -> Dataset:
        """Open a recording.

        Parameters
        ----------
        filename_or_obj : path-like
            An ``.spd``, an ``.spd.part`` (up to its last complete record), a folder of them; a
            pyramid, or a folder with one and no segments.
        drop_variables, mask_and_scale, decode_times, concat_characters, decode_coords, \
        use_cftime, decode_timedelta
            See ``xarray.open_dataset``.
        check : bool
            Whether to read all values once, and leave damaged rows out, as
            ``spectrod convert`` does. Otherwise a read of damaged values raises StorageError.
            Of segments alone: a damaged cell of a pyramid is always missing.
        cells : str, optional
            Which cells of a pyramid: ``10ms``, ``50ms``, ``250ms``, ``1s``, ``5s``, ``15s``,
            ``1min``, ``5min``, ``15min``, ``1h``, ``4h`` or ``1d``, of those that it has; by
            default the shortest of which there are at most 100 000.

        Returns
        -------
        dataset : Dataset
            Variables and attributes of ``docs/formats.md``, as in NetCDF files; of a pyramid
            those of ``docs/long-term.md``, a row for each cell, NaN where there are no rows.

        Raises
        ------
        ConfigError
            If a pyramid has no such cells, or too many, or a recording has no pyramid.
        InputError
            If there is no recording, or there are several that do not belong together.
        StorageError
            If it cannot be read.
        TypeError
            If it is not a path.
        """
        from spectrod.formats.dataset.stored_dataset import stored_dataset  # noqa: PLC0415

        if not isinstance(filename_or_obj, str | os.PathLike):
            raise TypeError(
                f"{type(filename_or_obj).__name__}: must be the path of a recording of spectrod"
            )
        return decode_cf(
            stored_dataset(Path(filename_or_obj), check=check, cells=cells),
            drop_variables=drop_variables,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )
