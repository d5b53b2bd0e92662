"""NetCDF files whose bytes are those of their content."""

from contextlib import closing, nullcontext

import numpy as np

from spectrod.formats.export.disk import Disk
from spectrod.formats.export.layout import Variable
from spectrod.formats.export.netcdf import NetcdfStore


def stored(path, holding=lambda _: nullcontext()):
    """Write rows of a time axis and its bounds while something holds what it likes."""
    with closing(Disk(path)) as disk:
        store = NetcdfStore(disk, 1)
        for variable, row in (
            (Variable("time", ("time",), "<f8"), ()),
            (Variable("time_bnds", ("time", "bnds"), "<f8"), (2,)),
            (Variable("effort", ("time",), "<f4"), ()),
        ):
            store.create(variable, (60, *row), row)
        begin = 60.0 * np.arange(1440)
        bounds = np.stack([begin, begin + 60.0], axis=1)
        for part in np.array_split(np.arange(1440), 3):
            effort = np.full(len(part), 60, np.float32)
            with holding(store):
                store.append({"time": begin[part], "time_bnds": bounds[part], "effort": effort})
        store.close()
    return path.read_bytes()


def test_the_same_rows_make_the_same_bytes(tmp_path):
    """Also where another thread holds an array for a while, as Dask's profiler does."""

    def holding(store):
        return nullcontext(store._file["time"]._h5ds)

    assert stored(tmp_path / "held.nc", holding) == stored(tmp_path / "plain.nc")
