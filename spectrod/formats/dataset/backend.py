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

    description: ClassVar[str] = "Open spectrod's .spd and folders of them"

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
    ) -> Dataset:
        """Open a recording.

        Parameters
        ----------
        filename_or_obj : path-like
            An ``.spd``, an ``.spd.part`` (up to its last complete record), or a folder of them.
        drop_variables, mask_and_scale, decode_times, concat_characters, decode_coords, \
        use_cftime, decode_timedelta
            See ``xarray.open_dataset``.
        check : bool
            Whether to read all values once, and leave damaged rows out, as
            ``spectrod convert`` does. Otherwise a read of damaged values raises StorageError.

        Returns
        -------
        dataset : Dataset
            Variables and attributes of ``docs/formats.md``, as in NetCDF files.

        Raises
        ------
        InputError
            If there is no recording, or there are several that do not belong together.
        StorageError
            If it cannot be read.
        TypeError
            If it is not a path.
        """
        from spectrod.formats.dataset.recording_dataset import recording_dataset  # noqa: PLC0415

        if not isinstance(filename_or_obj, str | os.PathLike):
            raise TypeError(
                f"{type(filename_or_obj).__name__}: must be the path of a recording of spectrod"
            )
        return decode_cf(
            recording_dataset(Path(filename_or_obj), check=check),
            drop_variables=drop_variables,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )
