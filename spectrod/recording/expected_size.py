"""How much space a recording will need, before it begins."""

from spectrod.config.settings import RecordingConfig
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.values.measurement_description import MeasurementDescription

_DAY_S = 86400.0
_ROW_BYTES = 96
"""Bytes of a row beside its values, if it comes alone; see docs/recorder.md."""
_LINE_BYTES = 60
"""Bytes of a line of a measurement beside its values."""
_VALUE_BYTES = 20
"""Bytes of a named value: 17 digits, sign, point and comma."""
_SAMPLE_BYTES = {"wav": 4, "flac": 3}
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def day_bytes(
    config: RecordingConfig, spec: SpectrumSpec, values: MeasurementDescription | None = None
) -> float:
    """Return the largest size of the files of a whole day, without the pyramid [bytes].

    FLAC is counted as if it compressed nothing. With ``values``, the rows are measurements.
    """
    if values is None:
        rows = 1.0 / spec.row_s * (_ROW_BYTES + 4 * spec.n_signals * spec.n_values)
    else:
        n_values = len(values.quantities) + len(values.bands.named_quantities)
        n_cells = n_values * len(values.channels)
        rows = 1.0 / values.interval_s * (_LINE_BYTES + _VALUE_BYTES * n_cells)
    samples = spec.fs * spec.channels * _SAMPLE_BYTES.get(config.samples, 0)
    return _DAY_S * (rows * config.spectra + samples)


def space_text(
    config: RecordingConfig, spec: SpectrumSpec, values: MeasurementDescription | None = None
) -> str:
    """Return what a recording will need, and how long files are kept, for its first report."""
    n_bytes = day_bytes(config, spec, values)
    part = " of recording" if config.schedule or config.on_s or config.triggers else ""
    needs = f"needs up to {_in_units(n_bytes)} a day{part}"
    if config.keep_days or config.keep_mb or config.when_full == "delete":
        return needs
    return f"{needs}, until less than min_free_mb={config.min_free_mb:g} is free"


def _in_units(n_bytes: float) -> str:
    least, unit = next((one for one in _UNITS if n_bytes >= one[0]), (1.0, "bytes"))
    two_digits = float(f"{n_bytes / least:.2g}")
    return f"{two_digits:g} {unit}"
