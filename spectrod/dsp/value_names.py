"""Names of values of spectra: of variables, for persons, and their units in UDUNITS."""

from spectrod.dsp.spectrum import SpectrumSpec

KINDS = {
    # (output, scaling): name, long name, and UDUNITS unit; full scale counts as dimensionless.
    ("power", "density"): ("psd", "power spectral density", "Hz-1"),
    ("power", "spectrum"): ("power", "mean square", "1"),
    ("power", "dbfs"): ("level", "level", "0.1 lg(re 0.5)"),
    # UDUNITS has no roots of units.
    ("complex", "density"): ("amplitude_density", "spectral density of amplitude", "FS/Hz^0.5"),
    ("complex", "spectrum"): ("amplitude", "complex amplitude", "1"),
}


def values_name(spec: SpectrumSpec) -> str:
    """Return the name of the variable of the values."""
    return KINDS[spec.output, spec.scaling][0]


def long_name(spec: SpectrumSpec) -> str:
    """Return the long name of the values."""
    return KINDS[spec.output, spec.scaling][1]
