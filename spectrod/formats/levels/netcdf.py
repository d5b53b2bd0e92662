"""Levels as NetCDF4, by CF 1.11; .h5 files have the same content."""

from contextlib import closing
from pathlib import Path

import numpy as np

from spectrod.formats.export.disk import Disk
from spectrod.formats.export.layout import EPOCH, Variable, plain
from spectrod.formats.export.netcdf import NetcdfStore, need_netcdf
from spectrod.formats.levels.description import FLAGS, LevelDescription
from spectrod.formats.levels.writer import LevelWriter
from spectrod.levels import LevelQuantity, LevelRow
from spectrod.units import NS_PER_S

_COMPRESSION = 1
_CHUNK_ROWS = 256
_MEASURED = {"coverage_content_type": "physicalMeasurement"}
_QUALITY = {"coverage_content_type": "qualityInformation"}


class LevelNetcdfWriter(LevelWriter):
    """Writes levels to a NetCDF4 file; see ``LevelWriter`` for parameters and errors."""

    def _open(self, part: Path) -> None:
        need_netcdf()
        disk = self._stack.enter_context(closing(Disk(part)))
        self._store = NetcdfStore(disk, _COMPRESSION)
        self._stack.callback(self._store.release)
        n = len(self.description.channels)
        for variable in _variables(self.description):
            if variable.data is not None:
                self._store.create(variable, variable.data.shape, variable.data.shape[1:])
            else:
                row = (n,) if len(variable.dims) == 2 else ()
                self._store.create(variable, (_CHUNK_ROWS, *row), row)
        self._store.annotate({"Conventions": "CF-1.11, ACDD-1.3", **self.description.attributes()})
        self._rows: list[LevelRow] = []

    def _write(self, row: LevelRow) -> None:
        self._rows.append(row)
        if len(self._rows) == _CHUNK_ROWS:
            self._append()

    def _close(self) -> None:
        if self._rows:
            self._append()
        self._store.close()

    def _append(self) -> None:
        about, rows = self.description, self._rows
        if about.has_utc:
            times_ns = [row.begin_utc_ns or 0 for row in rows]
        else:
            times_ns = [round(row.first_sample * NS_PER_S / about.fs) for row in rows]
        values = np.array([row.values for row in rows])
        parts = {
            "time": np.array(times_ns) / NS_PER_S,
            "t_utc_ns": np.array(times_ns, np.int64),
            "effort": np.array([row.duration_s for row in rows]),
            "flags": np.array([row.flags for row in rows]),
        }
        for k, one in enumerate(about.quantities):
            parts[one.name] = values[:, k, 0] if one.is_of_all_channels else values[:, k]
        self._store.append(parts)
        self._rows = []


def _variables(about: LevelDescription) -> list[Variable]:
    names = np.array([plain(name) for name in about.channels], dtype=object)
    units = np.array([plain(unit) for unit in about.units], dtype=object)
    if about.has_utc:
        time = {"standard_name": "time", "units": f"seconds {EPOCH}", "calendar": "standard"}
        exact = {"units": f"nanoseconds {EPOCH}", "calendar": "standard"}
    else:
        time, exact = {"units": "s", "comment": "the date is unknown"}, {"units": "ns"}
    what = "time of an interval's first sample"
    flags = {
        "long_name": "flags of the interval",
        "flag_masks": np.array([int(flag) for flag in FLAGS], np.uint8),
        "flag_meanings": " ".join(FLAGS.values()),
        "coordinates": "channel_name",
        **_QUALITY,
    }
    effort = {"long_name": "duration of the measured samples", "units": "s", **_QUALITY}
    return [
        Variable("channel_name", ("channel",), "str", {"long_name": "name of the channel"}, names),
        Variable(
            "channel_unit",
            ("channel",),
            "str",
            {"long_name": "unit of the channel's levels"},
            units,
        ),
        Variable("time", ("time",), "<f8", {"long_name": what, "axis": "T", **time}),
        Variable("t_utc_ns", ("time",), "<i8", {"long_name": what, **exact}),
        Variable("effort", ("time",), "<f8", effort),
        Variable("flags", ("time", "channel"), "<u1", flags),
        *(_values(one, about) for one in about.quantities),
    ]


def _values(quantity: LevelQuantity, about: LevelDescription) -> Variable:
    unit = about.unit(quantity)
    attributes = {
        "long_name": f"{quantity.name} in {unit}",
        # UDUNITS has no names of levels: spectrod_unit has the reference.
        "units": "1",
        "spectrod_unit": unit,
        **_MEASURED,
    }
    if quantity.is_of_all_channels:
        return Variable(quantity.name, ("time",), "<f8", attributes)
    attributes["coordinates"] = "channel_name channel_unit"
    return Variable(quantity.name, ("time", "channel"), "<f8", attributes)
