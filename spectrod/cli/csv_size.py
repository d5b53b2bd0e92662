"""A hint before a CSV file becomes very large."""

from spectrod.dsp.spectrum import SpectrumSpec

_LARGE_BYTES = 10**9
"""Size from which on there is a hint."""

_VALUE_BYTES = {"dbfs": 10.2, "density": 13.6, "spectrum": 13.6}
"""Mean length of a value and its comma, of noise."""

_ROW_BYTES = 60.0
"""Length of the numbers before the values of a row."""


def csv_bytes(spec: SpectrumSpec, n_rows: float) -> float:
    """Estimate the size of a CSV file of spectra.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the rows.
    n_rows : float
        Number of rows.

    Returns
    -------
    n_bytes : float
        Size without the header: within a tenth for noise, too large for silence.
    """
    return n_rows * (_ROW_BYTES + spec.n_signals * spec.n_computed * _VALUE_BYTES[spec.scaling])


def large_csv_hint(spec: SpectrumSpec, n_samples: int | None) -> str:
    """Return a hint of one line if a CSV file will have more than 1 GB; else an empty text.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the rows.
    n_samples : int or None
        Samples per channel in the file; None if unknown.
    """
    if n_samples is None:
        return ""
    n_rows = float(n_samples / spec.row_step)
    n_bytes = csv_bytes(spec, n_rows)
    if n_bytes < _LARGE_BYTES:
        return ""
    return (
        f".csv: will have about {n_bytes / 1e9:.2g} GB: {n_rows:.0f} rows of "
        f"{spec.n_signals * spec.n_computed} values as text; --hop, --averaging, --rate-hz or "
        "--bands make fewer, and .npz or .nc take a third of it"
    )
