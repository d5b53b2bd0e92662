"""Minutes of the sound files in a folder by PyPAM, run by its own interpreter: FOLDER OUT.nc."""

import sys
from pathlib import Path

import numpy as np
import xarray
from pyhydrophone.hydrophone import Hydrophone
from pypam.acoustic_file import AcuFile


def main() -> None:
    """Compute the minutes of each file, and write them all."""
    # Full scale is 1 uPa, so levels are those of the samples.
    hydrophone = Hydrophone(
        name="none",
        model="none",
        serial_number=1,
        sensitivity=0.0,
        preamp_gain=0.0,
        Vpp=2.0,
        string_format="%Y%m%d_%H%M%S",
    )
    found = []
    for path in sorted(Path(sys.argv[1]).iterdir()):
        # Minutes from the first sample on: PyPAM takes the time of these names for now.
        sound = AcuFile(path, hydrophone, p_ref=1.0, timezone="UTC", gridded=False)
        minutes = sound.hybrid_millidecade_bands(nfft=sound.fs, binsize=60.0, db=True)
        levels = minutes["millidecade_bands"].values.astype("float32")
        hour = np.full((60, levels.shape[1]), np.nan, np.float32)
        hour[: len(levels)] = levels
        found.append(hour)
    values = xarray.Dataset({"psd": (("time", "frequency"), np.concatenate(found))})
    values.to_netcdf(sys.argv[2], engine="h5netcdf")


main()
