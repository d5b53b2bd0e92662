"""Spectrogram pictures: pixels from spectra, axes and lettering around them."""
