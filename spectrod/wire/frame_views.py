"""What matplotlib and xarray get of a message with a spectrum."""

from typing import TYPE_CHECKING, Any

import numpy as np

from spectrod.dsp.level_drawing import draw_spectrum
from spectrod.dsp.units import Float64Array, power_to_level
from spectrod.lib.errors import InputError
from spectrod.lib.optional_packages import need
from spectrod.lib.text import printable

if TYPE_CHECKING:
    from spectrod.wire.schema import BandFrame, Frame, Meta


def frequencies_of(frame: "BandFrame", meta: "Meta") -> Float64Array:
    """Return the centre of each band [Hz]; raises InputError for the description of others."""
    of_frame, of_meta = (one.partition("/")[2] for one in (frame.topic, meta.topic))
    if of_frame != of_meta or len(meta.f) != len(frame.values):
        raise InputError(
            f"{printable(meta.topic)}: {len(meta.f)} bands: must describe the "
            f"{len(frame.values)} of {printable(frame.topic)}"
        )
    return meta.f


def draw(frame: "Frame | BandFrame", ax: Any, f: Float64Array) -> Any:
    """Draw the levels of a message over frequency; see ``Frame.plot``."""
    unit = printable(frame.header.unit)
    values = np.asarray(frame.values, np.float64)
    if not unit.startswith("dB"):
        values, unit = power_to_level(values, 1.0), f"dB re {unit}"
    is_log = frame.topic.startswith("bands/") and bool(f[0] > 0.0)
    return draw_spectrum(ax, f, values, f"level [{unit}]", is_log=is_log)


def data_array(frame: "Frame | BandFrame", f: Float64Array) -> Any:
    """Return the values, which are not copied, as ``xarray.DataArray``; see ``Frame.to_xarray``."""
    xarray = need("xarray", "xarray")
    h = frame.header
    utc = {"standard_name": "time", "long_name": "UTC of the first sample"}
    return xarray.DataArray(
        frame.values,
        {
            "frequency": ("frequency", f, {"units": "Hz", "long_name": "frequency"}),
            "time": ((), np.datetime64(h.t_utc_ns, "ns"), utc),
            "sample_index": ((), h.sample_index, {"long_name": "index of the first sample"}),
        },
        ("frequency",),
        frame.product,
        {
            "long_name": "level" if h.unit.startswith("dB") else "power",
            "units": h.unit,
            "reference_level": h.ref,
            "source": frame.source,
            "channel": frame.channel,
            "sampling_frequency": h.fs,
            "window": h.window,
            "win_length": h.win_length,
            "hop": h.hop,
            "nfft": h.nfft,
        },
    )
