"""Features of spectra: the shape of a row, and acoustic indices under their published names."""
