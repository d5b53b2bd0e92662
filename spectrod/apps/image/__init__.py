"""Pictures in the frequency domain: files, filters and spectra; above ``spectrod.fft``."""
